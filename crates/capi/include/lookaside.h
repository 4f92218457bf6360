/* Made by cbindgen from crates/capi of Lookaside: do not edit.
 *
 * The Search Lookaside Buffer: a small table of pointers to hot entries, in front of any index. A lookup asks the
 * buffer first; what it does not have is searched in the index, and offered:
 *
 *     entry = SLB_get(b, key);
 *     if (!entry && (entry = search(index, key))) SLB_emit(b, entry);
 *
 * An entry is whatever pointer your index finds, of 48 bits at most. The buffer remembers where entries are, and never
 * frees or copies them: you tell it when one goes, changes or moves. Of the ways to do that, choose one for all
 * threads:
 *
 * 1. ALONE. One thread at a time uses the buffer and the index (or a lock of yours sees to it). SLB_get, SLB_emit,
 *    lookaside_get_many; SLB_invalidate or SLB_update with each change of the index, before an entry is freed.
 *    Several threads that only look up may do so under a lock that they share and that writers have for themselves.
 *    lookaside_owned_* is this way at its fastest, for a buffer that only ever one thread uses.
 *
 * 2. LOCKS, the paper's protocol.
 *        look up:  SLB_lock(b, key); SLB_get; search the index; SLB_emit; use the entry; SLB_unlock(b, key);
 *        write:    SLB_lock(b, key); change the index; SLB_invalidate or SLB_update; SLB_unlock(b, key);
 *                  free the old entry.
 *    SLB_lock comes before any lock of the index, and SLB_unlock after them. Batches have no place here.
 *
 * 3. TICKETS. Hits take no lock.
 *        look up:  lookaside_pin(b);
 *                  entry = lookaside_get(b, key, &ticket);
 *                  if (!entry && (entry = search(index, key))) lookaside_emit_ticket(b, entry, ticket);
 *                  use the entry; (more lookups;) lookaside_unpin(b);
 *        write:    lookaside_write_begin(b, key); change the index; lookaside_write_end(b, key, new entry or NULL);
 *                  lookaside_retire(b, old entry, free function, context);
 *    The index must itself be safe to search while it is written, and whatever a search can still reach must not be
 *    freed but by retirement. Retire only after the write has ended.
 *
 * Locks and tickets may be mixed on one buffer, if whoever removes entries retires them, and whoever searches the index
 * has pinned, under a lock as well. Telling of a key without its lock takes that lock meanwhile: who has that of one
 * key and tells of another can wait for ever for one who does the same the other way round.
 *
 * An entry's key never changes while the buffer may have the entry. Callbacks call no function of the same buffer. A
 * C++ exception that leaves a callback ends the process. So does want of the small memory that a handle takes, or a
 * thread for itself at its first call: "without memory" below means that of tables. Compile lookups into your own code
 * with lookaside_inline.h, or use lookaside.hpp in C++17.
 */


#ifndef LOOKASIDE_H
#define LOOKASIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The version of the layout that `lookaside_inline.h` knows.
#define LOOKASIDE_LAYOUT 8

// Where a session counts lookups down to that do not ask the table.
#define LOOKASIDE_OFF -1073741824

// Every emission enters, or a share of them; a newcomer takes the place of the coldest.
#define LOOKASIDE_ADMIT_SAMPLED 0

// The paper's: a share of the emissions is logged, and a key is admitted that stands in the Log Table often enough.
#define LOOKASIDE_ADMIT_LOGGED 1

// Hits warm their entry until it is as warm as any becomes, after 15: then hot lines stay clean. A newcomer's victim
// cools all others by what it was warm.
#define LOOKASIDE_COUNT_FALLING 0

// The paper's: every hit counts.
#define LOOKASIDE_COUNT_EVERY_HIT 1

// Hits write nothing; victims are drawn at random.
#define LOOKASIDE_COUNT_NEVER 2

// 2 MiB pages where the kernel can assemble them.
#define LOOKASIDE_PAGES_TRANSPARENT 0

// 4 KiB pages.
#define LOOKASIDE_PAGES_BASE 1

// 2 MiB pages set aside by the operator, or else smaller ones.
#define LOOKASIDE_PAGES_2M 2

// 1 GiB pages set aside by the operator, or else smaller ones.
#define LOOKASIDE_PAGES_1G 3

// A search lookaside buffer in front of one index.
typedef struct SLB SLB;

// A buffer that one thread has for itself. For `lookaside_inline.h` it is an SLB.
typedef struct lookaside_owned lookaside_owned;

// Whether `entry` is the entry of `key`. Called with no lock of the library held but those that the caller took.
//
// It must not call functions of the same buffer, and must not let an exception out: that ends the process.
typedef bool (*matchfunc)(void *entry, void *key);

// The hash of a key, or of an entry's key: equal for a key and its entry. It need not be a good one, only different
// for different keys: the library mixes it.
//
// It must not call functions of the same buffer, and must not let an exception out: that ends the process.
typedef uint64_t (*hashfunc)(void *opaque);

// The moment at which an index is searched. Good for one emission. An odd one is good for none.
typedef uint64_t lookaside_ticket;

// Frees an entry; `context` is what lookaside_retire() was given. It may be called by any thread that uses the buffer,
// in lookaside_pin(), lookaside_unpin(), lookaside_refresh(), lookaside_retire(), lookaside_reclaim(),
// lookaside_resize(), SLB_destroy(), or as a thread ends. It must not call functions of the same buffer, nor wait for
// a lock that somebody has who calls one.
typedef void (*lookaside_freefunc)(void *entry, void *context);

// What a thread keeps for one buffer. `lookaside_inline.h` uses these fields; nobody else should.
//
// A lookup first takes one from `left`. It asks the table if that is not below zero then. It does not if that is
// LOOKASIDE_OFF to LOOKASIDE_OFF + 1024; otherwise it gives the one back, calls lookaside_turn(), and takes it again:
// then it asks if `uses_table` is not zero. Of those that ask, `misses` are no hits.
typedef struct lookaside_session {
    // Lookups until the next turn; that and LOOKASIDE_OFF if they are not to ask the table.
    int32_t left;
    // Whether lookups ask the table: the monitor's decision.
    uint32_t uses_table;
    // Lookups that were not answered, since the last turn.
    uint64_t misses;
    // A hit warms its slot while that is less warm than this; 256 if one that is as warm as can be cools another
    // (LOOKASIDE_COUNT_EVERY_HIT).
    uint32_t warmest;
    // Zero.
    uint32_t reserved;
    // Where the header's own stream of random numbers is.
    uint64_t random;
    // In that of a lookaside_owned: where its lines are, and how many.
    const uint8_t *base;
    // See `base`.
    uint64_t count;
    // In that of a lookaside_owned: whether what is emitted enters at once, in the place of the coldest where there is
    // no room, whose temperature is then taken from the others'.
    uint32_t enters;
    // How warm it begins.
    uint32_t newcomer;
    // Those that the header put into free slots, since the last turn.
    uint32_t filled;
    // And into the slots of others.
    uint32_t replaced;
} lookaside_session;

// What can be chosen. Fill it with lookaside_default_options() or lookaside_paper_options() and change what you like.
typedef struct lookaside_options {
    // Bytes of this struct as the caller knows it: newer libraries add fields at the end, and older ones accept those
    // that are zero.
    size_t struct_size;
    // Bytes of the Cache Table, 64 at least. A Log Table comes on top.
    size_t size;
    // As in SLB_create(); may be NULL, for those who look up by `lookaside_inline.h` only: no entry then matches.
    matchfunc match;
    // As in SLB_create(); may be NULL: all keys then have one hash.
    hashfunc keyhash;
    // As in SLB_create(); may be NULL, for those who emit by lookaside_emit_key() only.
    hashfunc entryhash;
    // Share of the emissions that are logged, or enter: above 0, at most 1.
    double sampling;
    // LOOKASIDE_ADMIT_...
    uint32_t admission;
    // How often a key must have been logged before the emission that admits it: 0 to 14.
    uint32_t threshold;
    // Bytes of the Log Table for each of the Cache Table: 1 to 64.
    uint32_t log_ratio;
    // LOOKASIDE_COUNT_...
    uint32_t counters;
    // The count that a newcomer begins with: 0 to 255.
    uint32_t newcomer;
    // LOOKASIDE_PAGES_...
    uint32_t pages;
    // Indexes that the buffer can stand before, 1 to 256: see lookaside_share().
    uint32_t indexes;
    // Bytes at the beginning of an entry that a batch asks for ahead: the key at least, at most 4096.
    uint32_t entry_bytes;
    // Whether the monitor watches, and switches the table off where it does not pay.
    bool monitor;
    // The layout of the buckets that the caller's `lookaside_inline.h` knows, or 0 if it has none.
    uint32_t layout;
    // Whether each bit of a hash depends on the whole key, as in a random number, so that hashes are used as they are:
    // wyhash, XXH3 and SipHash are such, integers that are their own hashes are not. A lie costs hits.
    bool avalanching;
} lookaside_options;

// What has happened, as far as the threads have told: each tells every 1024 lookups, when it ends, and here.
typedef struct lookaside_counts {
    // Lookups that the table answered.
    uint64_t hits;
    // Lookups that went on to the index.
    uint64_t misses;
    // Lookups that did not ask the table, because the monitor had switched it off.
    uint64_t bypassed;
    // Entries offered.
    uint64_t emissions;
    // Of these, entries that were put in.
    uint64_t admissions;
    // Of those, entries that took another's place.
    uint64_t evictions;
    // Emissions dropped because a write came between, or another thread was faster.
    uint64_t refused_tickets;
    // Writes that told the table.
    uint64_t invalidations;
    // Slots that they cleared.
    uint64_t cleared;
    // Entries that the tables have room for.
    uint64_t capacity;
    // Bytes of the tables.
    uint64_t bytes;
} lookaside_counts;

// What the monitor has found.
typedef struct lookaside_verdict {
    // Cost of a lookup by itself without the table by its cost with it; 0 before there were enough trials.
    double gain;
    // Trials made.
    uint64_t trials;
    // How often it has switched.
    uint64_t switches;
    // Whether it watches at all.
    bool watching;
    // Whether lookups one at a time use the table.
    bool on;
    // Whether lookups in batches use it.
    bool on_in_batches;
    // Zeroes, for what newer libraries may say.
    uint8_t reserved[5];
    // As `gain`, of lookups in batches.
    double gain_in_batches;
} lookaside_verdict;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a buffer in front of one index. `size` is the bytes of the Cache Table, at least 64; locks and what else is
// needed come on top. What admits entries by default has no Log Table; see lookaside_paper_options() for the paper's.
// The monitor is on: now and then lookups miss on purpose, for a trial; see lookaside_monitor().
//
// NULL if a callback is NULL, if `size` is less than 64 or absurd, or without memory: lookaside_last_error() says why.
//
// # Safety
// `matchfunc` gets what was emitted and what was looked up; `keyhash` and `entryhash` agree on a key and its entry.
struct SLB *SLB_create(size_t size,
                       matchfunc match,
                       hashfunc keyhash,
                       hashfunc entryhash);

// Ends a buffer. What was retired to it is freed before this returns, by callbacks in this thread; where indexes share
// it (lookaside_share()), as the last of them is ended. Other threads must have made their last call; they need not
// have ended. NULL: nothing.
//
// # Safety
// `b` is not used after this.
void SLB_destroy(struct SLB *b);

// The entry emitted for a key, or NULL: then search the index. NULL `b` or `key`: NULL.
//
// Under SLB_lock() for the key, nothing more is needed, and the entry may be used until SLB_unlock(). Without it,
// other threads may use the buffer only if this one has called lookaside_pin(): the entry may be used until
// lookaside_unpin(), and whoever removes an entry frees it through lookaside_retire(). Where only one thread uses the
// buffer, neither is needed.
//
// # Safety
// `key` is a key for the callbacks of `b`, and this thread has the lock, or a pin, or is alone.
void *SLB_get(struct SLB *b,
              const void *key);

// Offers an entry that was found in the index; the buffer decides whether it enters. Does nothing if `b` or `entry` is
// NULL, or if the address of `entry` needs more than 48 bits: it is refused, never cut.
//
// Under SLB_lock() for the entry's key, from before the search of the index, this is the paper's protocol. Without the
// lock it is right only where nobody can change the index between the search and this call: where one thread is alone,
// or searches under a lock of the index that writers take too. Otherwise use lookaside_emit_ticket().
//
// # Safety
// `entry` is an entry for the callbacks of `b`, alive, and what the index has. This thread has the lock, or has called
// lookaside_pin(), or is alone: others may resize.
void SLB_emit(struct SLB *b,
              void *entry);

// Forgets the entry of a key, which is being removed from the index. NULL `b` or `key`: nothing.
//
// Under SLB_lock() for the key: call it before SLB_unlock(); before or after the index changes is the same. Without
// the lock: call it *after* the index has changed; until it returns, other threads may still be given the old entry,
// and when it has returned none will be, and tickets taken before are void. (Where that interval matters, use
// lookaside_write_begin().) Only then free the entry: if threads pin, through lookaside_retire().
//
// # Safety
// `key` is a key for the callbacks of `b`.
void SLB_invalidate(struct SLB *b,
                    const void *key);

// Tells that the entry of a key is now another: changed, or moved. If the buffer has the old one, or had it when this
// thread began the write (by lookaside_write_begin(), or by SLB_invalidate() under the lock), it now has the new one;
// otherwise nothing enters. If `entry` is NULL or needs more than 48 bits, the old one is forgotten and that is all.
// NULL `b` or `key`: nothing.
//
// With and without SLB_lock(): as SLB_invalidate(). Without, nobody else may write the same key from before the index
// is changed until this returns, or an entry could come back that has gone already: lookaside_write_begin() sees to
// that. The old entry, if it is another, is to be freed as said there.
//
// # Safety
// `key` is a key, and `entry` an entry, for the callbacks of `b`; `entry` is what the index has.
void SLB_update(struct SLB *b,
                const void *key,
                void *entry);

// Takes the lock of a key's stripe, one of 1024, waiting for whoever has it. NULL `b` or `key`: nothing.
//
// Take it before any lock of the index, and give it back after those. A thread that has it may take it again, and
// gives it back as often. Threads that take the locks of several keys at once can deadlock: keys of one stripe look
// like any others.
//
// # Safety
// `key` is a key for the callbacks of `b`.
void SLB_lock(struct SLB *b,
              const void *key);

// Gives back what SLB_lock() took. Nothing if this thread does not have it, or if `b` or `key` is NULL.
//
// # Safety
// `key` is a key for the callbacks of `b`.
void SLB_unlock(struct SLB *b, const void *key);

// As SLB_get(); on a miss, `*ticket` is what to emit with, if the index is searched after this: see
// lookaside_ticket_take(). On a hit `*ticket` is good for nothing. NULL `b` or `key`: NULL, and a ticket that is good
// for nothing. `ticket` may be NULL.
//
// # Safety
// As SLB_get(). `ticket` is NULL or points to a ticket.
void *lookaside_get(struct SLB *b,
                    const void *key,
                    lookaside_ticket *ticket);

// A ticket for a key: to be taken before the index is searched for it. It is void if a write of the key's stripe is
// going on. NULL `b` or `key`: a void one.
//
// # Safety
// `key` is a key for the callbacks of `b`.
lookaside_ticket lookaside_ticket_take(struct SLB *b,
                                       const void *key);

// Offers an entry that was found in the index after `ticket` was taken for its key. Dropped if a write of the key's
// stripe has begun since; so the buffer cannot be given what the index no longer has. Otherwise as SLB_emit().
//
// # Safety
// `entry` is an entry for the callbacks of `b`, alive; this thread has pinned since before the search, or is alone.
void lookaside_emit_ticket(struct SLB *b,
                           void *entry,
                           lookaside_ticket ticket);

// As lookaside_emit_ticket(), or as SLB_emit() if `ticket` is NULL; but the hash is that of `key`, so that `entryhash`
// is not called. NULL `key`: nothing.
//
// # Safety
// As those. `key` is the key of `entry`; `ticket` is NULL or points to a ticket.
void lookaside_emit_key(struct SLB *b,
                        const void *key,
                        void *entry,
                        const lookaside_ticket *ticket);

// Begins a write of a key: takes its lock, as SLB_lock(), and forgets its entry. To be called before the index is
// changed. NULL `b` or `key`: nothing.
//
// From here to lookaside_write_end() no thread is given the key's entry, and no ticket is good; whoever was given it
// before may still use it while it is pinned.
//
// # Safety
// `key` is a key for the callbacks of `b`.
void lookaside_write_begin(struct SLB *b,
                           const void *key);

// Ends a write, after the index has changed. `entry` is what the index now has for the key: it enters if the old one
// was there, as with SLB_update(); NULL if there is none, or if it shall not enter. Only after this retire the old
// entry. NULL `b` or `key`, or no lock of this thread on the key: nothing.
//
// # Safety
// As SLB_update().
void lookaside_write_end(struct SLB *b,
                         const void *key,
                         void *entry);

// Pins: entries that this thread is given, by the buffer or the index, are not freed by lookaside_retire() before it
// unpins. Pins nest. Hold a pin for as many lookups as you like, but not for ever: what others retire meanwhile waits.
// NULL: nothing.
//
// # Safety
// `b` is NULL, or a buffer.
void lookaside_pin(struct SLB *b);

// Unpins. Nothing if this thread has not pinned, or if `b` is NULL.
//
// # Safety
// `b` is NULL, or a buffer; this thread no longer uses what it was given since it pinned.
void lookaside_unpin(struct SLB *b);

// Unpins and pins again, so that what was retired can be freed: for threads that stay pinned. Nothing if this thread
// has not pinned, or has pinned more than once; or if `b` is NULL.
//
// # Safety
// As lookaside_unpin().
void lookaside_refresh(struct SLB *b);

// Frees an entry, by `free(entry, context)`, when every thread that is pinned now has unpinned: at the latest in
// SLB_destroy(). The entry is in the index no more, and the buffer was told: after SLB_invalidate(), SLB_update(),
// lookaside_write_end() or SLB_unlock(). Nothing if `b`, `entry` or `free` is NULL.
//
// # Safety
// Nobody can find the entry any more, and nobody else frees it. `free` may be called in any thread that uses the
// buffer.
void lookaside_retire(struct SLB *b,
                      void *entry,
                      lookaside_freefunc free,
                      void *context);

// Frees now what was retired, by whichever thread, and that nobody holds back by a pin. Without this a thread does it
// by and by, when it unpins or refreshes: then at most 64 entries that it has retired wait, and none longer than two
// refreshes, unless another thread is pinned for so long. NULL: nothing.
//
// # Safety
// `b` is NULL, or a buffer.
void lookaside_reclaim(struct SLB *b);

// The entries of `count` keys: `entries[i]` becomes that of `keys[i]`, or NULL. How many were found. Lines are asked
// for ahead, those of the table for sixteen keys, then those of their entries: the largest gain that there is. Needs a
// pin, or to be alone.
//
// If `tickets` is not NULL, `tickets[i]` becomes what to emit with where `entries[i]` is NULL. A NULL key has no
// entry. If `b`, `keys` or `entries` is NULL: 0, and nothing is written.
//
// # Safety
// As SLB_get(). The arrays have `count` elements each, and do not overlap.
size_t lookaside_get_many(struct SLB *b,
                          void *const *keys,
                          size_t count,
                          void **entries,
                          lookaside_ticket *tickets);

// This thread's session for lookups by `lookaside_inline.h`, which passes the version of the layout that it knows.
// Good until the thread ends or the buffer does, for this thread only. NULL if `b` is NULL, or if the library's layout
// is another: lookaside_last_error() says so.
//
// # Safety
// `b` is NULL, or a buffer.
struct lookaside_session *lookaside_attach(struct SLB *b,
                                           uint32_t layout);

// For `lookaside_inline.h`: tells what a session counted, and asks the monitor, before a call of so many lookups.
// Nothing if either is NULL.
//
// # Safety
// `session` is this thread's for `b`.
void lookaside_turn(const struct SLB *b,
                    struct lookaside_session *session,
                    uint32_t lookups);

// What measured best, as SLB_create() has it: no Log Table, every emission enters, counters that rise to 15, a table
// of one size, and the monitor on. `size` and the callbacks are for the caller to fill in. `bytes` is
// sizeof *options as the caller knows it. Nothing if `options` is NULL.
//
// # Safety
// `options` is NULL, or points to `bytes` bytes.
void lookaside_default_options(struct lookaside_options *options,
                               size_t bytes);

// The paper to the letter: a Log Table four times the Cache Table, 5 % of the emissions logged, a threshold of three,
// every hit counted, a table of one size, no monitor. The rest as lookaside_default_options().
//
// # Safety
// `options` is NULL, or points to `bytes` bytes.
void lookaside_paper_options(struct lookaside_options *options,
                             size_t bytes);

// Makes a buffer. NULL if `options` is NULL or has a field that cannot be, or without memory: lookaside_last_error()
// says why. To be ended by SLB_destroy().
//
// # Safety
// `options` is NULL, or points to one. For the callbacks: as SLB_create().
struct SLB *lookaside_create(const struct lookaside_options *options);

// The same buffer in front of one more index, with its own callbacks: equal keys of the two never meet. Table, locks,
// pins and counts are shared, and live until the last of them is destroyed; each is ended by SLB_destroy(). Callbacks
// may be NULL as in lookaside_options.
//
// NULL if `b` is NULL, or if it was made for fewer indexes (lookaside_options.indexes, rounded up to a power of two).
// An index that was destroyed does not give its number back.
//
// # Safety
// `b` is NULL, or a buffer. For the callbacks: as SLB_create().
struct SLB *lookaside_share(struct SLB *b,
                            matchfunc match,
                            hashfunc keyhash,
                            hashfunc entryhash);

// Replaces the table by an empty one of `size` bytes, while other threads use it: under locks, or pinned. False if `b`
// is NULL, if this thread holds a lock of the buffer, if `size` is less than 64 or absurd, or without memory:
// lookaside_last_error() says why, and the old one stays.
//
// Takes each lock once, and has them all for a moment. So it must not be called under a lock that others take after
// SLB_lock(), nor while a thread has the locks of two keys. May free what was retired.
//
// # Safety
// `b` is NULL, or a buffer.
bool lookaside_resize(struct SLB *b,
                      size_t size);

// Forgets all entries, while other threads use the buffer: those of all indexes that share it. False, and nothing is
// forgotten, as lookaside_resize() to the size that it has.
//
// # Safety
// `b` is NULL, or a buffer.
bool lookaside_clear(struct SLB *b);

// Why the last call of this thread that can fail did so, in words; empty if none has. Good until the next that fails.
const char *lookaside_last_error(void);

// What has happened so far. `bytes` is sizeof *counts as the caller knows it: newer libraries add fields at the end.
// Needs a pin where others may resize. Nothing if `b` or `counts` is NULL.
//
// # Safety
// `counts` is NULL, or points to `bytes` bytes.
void lookaside_get_counts(struct SLB *b,
                          struct lookaside_counts *counts,
                          size_t bytes);

// Entries that the table holds; counted by walking over it. Needs a pin where others may resize. NULL: 0.
//
// # Safety
// `b` is NULL, or a buffer.
size_t lookaside_occupancy(struct SLB *b);

// The warmest entries of this index, warmest first, and how warm each is (0 to 255): at most `most`; how many. Walks
// over the table. Needs a pin. `temperatures` may be NULL; if `b` or `entries` is, 0.
//
// # Safety
// The arrays have `most` elements each.
size_t lookaside_hottest(struct SLB *b,
                         void **entries,
                         uint8_t *temperatures,
                         size_t most);

// Lets the monitor watch, or not: if not, the table is always used. It is on in a new buffer, unless lookaside_options
// say otherwise. Threads follow within 1024 lookups. NULL: nothing.
//
// # Safety
// `b` is NULL, or a buffer.
void lookaside_monitor(struct SLB *b,
                       bool watching);

// What the monitor has found. `bytes` is sizeof *verdict as the caller knows it. Nothing if `b` or `verdict` is NULL.
//
// # Safety
// `verdict` is NULL, or points to `bytes` bytes.
void lookaside_get_verdict(struct SLB *b,
                           struct lookaside_verdict *verdict,
                           size_t bytes);

// Makes one. NULL as lookaside_create(). lookaside_options.indexes must be 1.
//
// # Safety
// As lookaside_create().
struct lookaside_owned *lookaside_owned_create(const struct lookaside_options *options);

// Ends it. NULL: nothing.
//
// # Safety
// `o` is not used after this.
void lookaside_owned_destroy(struct lookaside_owned *o);

// The entry emitted for a key, or NULL. NULL `o` or `key`: NULL.
//
// # Safety
// `key` is a key for the callbacks of `o`, which no other thread uses meanwhile; so for all that follow.
void *lookaside_owned_get(struct lookaside_owned *o, const void *key);

// As lookaside_get_many(), without tickets.
//
// # Safety
// As lookaside_get_many().
size_t lookaside_owned_get_many(struct lookaside_owned *o, void *const *keys, size_t count, void **entries);

// Offers an entry that was found in the index. Nothing if `o` or `entry` is NULL, or if its address needs more than 48
// bits.
//
// # Safety
// As SLB_emit().
void lookaside_owned_emit(struct lookaside_owned *o,
                          void *entry);

// As lookaside_owned_emit(), but the hash is that of `key`. NULL `key`: nothing.
//
// # Safety
// As lookaside_emit_key().
void lookaside_owned_emit_key(struct lookaside_owned *o, const void *key, void *entry);

// Forgets the entry of a key. To be called before the entry is freed. NULL `o` or `key`: nothing.
//
// # Safety
// As SLB_invalidate().
void lookaside_owned_invalidate(struct lookaside_owned *o, const void *key);

// Tells that the entry of a key is now another, as SLB_update(). NULL `o` or `key`: nothing.
//
// # Safety
// As SLB_update().
void lookaside_owned_update(struct lookaside_owned *o, const void *key, void *entry);

// Replaces the table by an empty one of `size` bytes. False as lookaside_resize().
//
// # Safety
// `o` is NULL, or one of these.
bool lookaside_owned_resize(struct lookaside_owned *o, size_t size);

// Forgets all entries: as lookaside_clear().
//
// # Safety
// `o` is NULL, or one of these.
bool lookaside_owned_clear(struct lookaside_owned *o);

// The session for lookups by `lookaside_inline.h`: as lookaside_attach(), but good until `o` is destroyed.
//
// # Safety
// `o` is NULL, or one of these.
struct lookaside_session *lookaside_owned_attach(struct lookaside_owned *o, uint32_t layout);

// What has happened so far: as lookaside_get_counts().
//
// # Safety
// As lookaside_get_counts().
void lookaside_owned_get_counts(struct lookaside_owned *o, struct lookaside_counts *counts, size_t bytes);

// Entries that the table holds; counted by walking over it. NULL: 0.
//
// # Safety
// `o` is NULL, or one of these.
size_t lookaside_owned_occupancy(struct lookaside_owned *o);

// The warmest entries: as lookaside_hottest(). NULL: 0.
//
// # Safety
// As lookaside_hottest().
size_t lookaside_owned_hottest(struct lookaside_owned *o, void **entries, uint8_t *temperatures, size_t most);

// What the monitor has found: as lookaside_get_verdict().
//
// # Safety
// As lookaside_get_verdict().
void lookaside_owned_get_verdict(struct lookaside_owned *o, struct lookaside_verdict *verdict, size_t bytes);

// Lets the monitor watch, or not: as lookaside_monitor().
//
// # Safety
// `o` is NULL, or one of these.
void lookaside_owned_monitor(struct lookaside_owned *o, bool watching);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LOOKASIDE_H */
