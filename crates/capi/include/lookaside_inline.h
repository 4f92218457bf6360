/* The hit path of the Search Lookaside Buffer, compiled into your code: your comparison and your hash are inlined.
 * One call remains, every 1024 lookups, to tell the counts. For C11 and C++ of GCC and Clang.
 *
 *     lookaside_session *s = lookaside_inline_attach(b);      // once a thread; NULL if the library's layout is another
 *     entry = lookaside_inline_get(b, s, my_hash(key), key, my_match);
 *     found = lookaside_inline_get_many(b, s, keys, count, entries, sizeof(my_entry), my_hash, my_match);
 *
 * They do what SLB_get and lookaside_get_many do, under the same conditions (lookaside.h): pinned, or alone; or, the
 * first, under SLB_lock. The hash is what keyhash would return. What misses is emitted as ever; but nothing needs to
 * be, and no ticket to be taken, while s->uses_table is 0. For a lookaside_owned: pass it as `b`, and
 * lookaside_owned_attach(b, LOOKASIDE_INLINE_LAYOUT) as `s`.
 *
 * What is read here is frozen in crates/capi/src/layout.rs:
 *
 *     b -> { layout, others, mark, lines, mixes } -> pointer -> { base, count } -> lines of 64 bytes:
 *
 *      0        8                                      56        63  64
 *     +--------+--------+-- . . . --+--------+--------+-----------+--+
 *     | slot 0 | slot 1 |           | slot 5 | slot 6 | counters  |  |     a slot: 16 bits of hash over 48 of address
 *     +--------+--------+-- . . . --+--------+--------+-----------+--+
 *
 * Slots are looked at one after the other, as long as it takes: nearly always the first has the tag, or the second, and
 * the processor foresees it. Rejected: comparing all tags of a line at once, by vector instructions. They are fourteen
 * instructions where one slot has three, and the fewer a lookup takes, the more lookups wait for memory at once; and a
 * load of 16 bytes waits for a counter that was just stored into them.
 */
#ifndef LOOKASIDE_INLINE_H
#define LOOKASIDE_INLINE_H

#include "lookaside.h"

#define LOOKASIDE_INLINE_LAYOUT 8

#if LOOKASIDE_INLINE_LAYOUT != LOOKASIDE_LAYOUT
#error "lookaside_inline.h and lookaside.h are of different versions"
#endif

/* Keys whose lines are asked for at once. */
#define LOOKASIDE_INLINE_GROUP 16

/* Also where the compiler finds it long: what is inlined into it depends on that. */
#define LOOKASIDE_INLINE_ALWAYS static inline __attribute__((always_inline))

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct lookaside_inline_lines {
    const unsigned char *base;
    uint64_t count;
} lookaside_inline_lines;

typedef struct lookaside_inline_prefix {
    uint64_t layout;
    uint64_t others;
    uint64_t mark;
    lookaside_inline_lines *const *lines;
    uint64_t mixes;
} lookaside_inline_prefix;

/* In neither standard, but in both compilers. */
__extension__ typedef unsigned __int128 lookaside_inline_wide;

/* This thread's session: good until the thread ends, or the buffer does. */
static inline lookaside_session *lookaside_inline_attach(SLB *b) {
    return lookaside_attach(b, LOOKASIDE_INLINE_LAYOUT);
}

LOOKASIDE_INLINE_ALWAYS uint64_t lookaside_inline_fold(uint64_t number, uint64_t by) {
    lookaside_inline_wide product = (lookaside_inline_wide)number * by;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* A hash that is not known to be even, mixed. */
LOOKASIDE_INLINE_ALWAYS uint64_t lookaside_inline_mix(uint64_t hash) {
    uint64_t folded = lookaside_inline_fold(hash ^ UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd6e8feb86659fd93));
    return lookaside_inline_fold(folded, UINT64_C(0x243f6a8885a308d3));
}

/* A hash of all even bits, with the number of the index in some of them. */
LOOKASIDE_INLINE_ALWAYS uint64_t lookaside_inline_marked(const void *b, uint64_t hash) {
    const lookaside_inline_prefix *prefix = (const lookaside_inline_prefix *)b;
    return (hash & prefix->others) | prefix->mark;
}

/* A caller's hash as the table sees it. */
LOOKASIDE_INLINE_ALWAYS uint64_t lookaside_inline_hash(const void *b, uint64_t hash) {
    const lookaside_inline_prefix *prefix = (const lookaside_inline_prefix *)b;
    return lookaside_inline_marked(b, prefix->mixes ? lookaside_inline_mix(hash) : hash);
}

/* The lines of the table as it is now: for one lookup, or one batch. */
LOOKASIDE_INLINE_ALWAYS const lookaside_inline_lines *lookaside_inline_table(const void *b) {
    /* Acquire pairs with the release of whoever resizes. */
    return __atomic_load_n(((const lookaside_inline_prefix *)b)->lines, __ATOMIC_ACQUIRE);
}

/* The line of a hash that lookaside_inline_hash gave. */
LOOKASIDE_INLINE_ALWAYS const uint64_t *lookaside_inline_line_of(const unsigned char *base, uint64_t count,
                                                                 uint64_t hash) {
    return (const uint64_t *)(const void *)(base + 64 * (((hash & UINT64_C(0xffffffff)) * count) >> 32));
}

LOOKASIDE_INLINE_ALWAYS const uint64_t *lookaside_inline_line(const void *b, uint64_t hash) {
    const lookaside_inline_lines *lines = lookaside_inline_table(b);
    return lookaside_inline_line_of(lines->base, lines->count, hash);
}

/* The entry in a slot, if its tag is that of the hash; or NULL. */
LOOKASIDE_INLINE_ALWAYS void *lookaside_inline_entry(const uint64_t *line, unsigned slot, uint64_t hash) {
    /* Acquire pairs with the release of the emission: the entry is seen as it was then. */
    uint64_t word = __atomic_load_n(line + slot, __ATOMIC_ACQUIRE);
    /* With the right tag, only the address is left of it; with another one, more than an address may have. */
    uint64_t address = word ^ (hash >> 48 << 48);
    return address - 1 < UINT64_C(0xffffffffffff) ? (void *)(uintptr_t)address : NULL;
}

/* A hit of a full counter, as in the paper: cools another that is not cold, the first from a random one on. */
static __attribute__((noinline, cold, unused)) void lookaside_inline_cool(lookaside_session *s, const uint64_t *line,
                                                                          unsigned slot) {
    const uint64_t low = UINT64_C(0x007f7f7f7f7f7f7f);
    uint64_t *counters = (uint64_t *)(uintptr_t)(line + 7);
    uint64_t temperatures = __atomic_load_n(counters, __ATOMIC_RELAXED);
    uint64_t others = temperatures & ~(UINT64_C(0xff) << (8 * slot));
    /* The highest bit of each counter that is not zero. */
    uint64_t warm = (((others & low) + low) | others) & UINT64_C(0x0080808080808080);
    if (warm == 0) return;
    s->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t number = ((s->random ^ s->random >> 32) * UINT64_C(0xd6e8feb86659fd93)) >> 32;
    unsigned start = 8 * (unsigned)((number * 7) >> 32);
    uint64_t from_start = warm >> start;
    unsigned cooled = from_start != 0 ? start + (unsigned)__builtin_ctzll(from_start) : (unsigned)__builtin_ctzll(warm);
    __atomic_store_n(counters, temperatures - (UINT64_C(1) << (cooled - 7)), __ATOMIC_RELAXED);
}

/* Warms the slot of a hit, until it is as warm as any becomes: the line of a hot entry is then no longer written. It
 * may be another's by now, and two hits at once may count as one: a counter costs hits, never an answer. A byte is
 * stored, and no word that others load from waits for it. */
LOOKASIDE_INLINE_ALWAYS void lookaside_inline_warm(lookaside_session *s, const uint64_t *line, unsigned slot) {
    unsigned char *counter = (unsigned char *)(uintptr_t)(line + 7) + slot;
    unsigned char temperature = __atomic_load_n(counter, __ATOMIC_RELAXED);
    /* One comparison for the warmest, which are hit most. */
    if (temperature >= s->warmest) return;
    if (__builtin_expect(temperature == 255, 0)) {
        lookaside_inline_cool(s, line, slot);
    } else {
        __atomic_store_n(counter, (unsigned char)(temperature + 1), __ATOMIC_RELAXED);
    }
}

/* Begins a turn with so many lookups, which have been taken from the one before in vain; whether they ask the table. */
static __attribute__((noinline, cold, unused)) int lookaside_inline_turn(const void *b, lookaside_session *s,
                                                                          int32_t lookups) {
    s->left += lookups;
    lookaside_turn((const SLB *)b, s, (uint32_t)lookups);
    s->left -= lookups;
    return s->uses_table != 0;
}

/* Whether the next so many lookups, 1024 at most, ask the table. Counts them: those that are no misses are hits. Where
 * they ask, one comparison: the fewer instructions a lookup takes, the more of them wait for memory at once. */
LOOKASIDE_INLINE_ALWAYS int lookaside_inline_asks(const void *b, lookaside_session *s, int32_t lookups) {
    int32_t left = s->left - lookups;
    s->left = left;
    if (__builtin_expect(left >= 0, 1)) return 1;
    if (left >= LOOKASIDE_OFF && left <= LOOKASIDE_OFF + 1024) return 0;
    return lookaside_inline_turn(b, s, lookups);
}

/* The entry of a key in the line of its hash, or NULL. */
LOOKASIDE_INLINE_ALWAYS void *lookaside_inline_find_in(lookaside_session *s, const uint64_t *line, uint64_t hash,
                                                       void *key, bool (*match)(void *entry, void *key)) {
    for (unsigned slot = 0; slot < 7; slot++) {
        void *entry = lookaside_inline_entry(line, slot, hash);
        if (entry != NULL && __builtin_expect(match(entry, key), 1)) {
            lookaside_inline_warm(s, line, slot);
            return entry;
        }
    }
    s->misses++;
    return NULL;
}

/* As SLB_get. */
LOOKASIDE_INLINE_ALWAYS void *lookaside_inline_get(const void *b, lookaside_session *s, uint64_t hash, void *key,
                                                   bool (*match)(void *entry, void *key)) {
    if (!lookaside_inline_asks(b, s, 1)) return NULL;
    hash = lookaside_inline_hash(b, hash);
    return lookaside_inline_find_in(s, lookaside_inline_line(b, hash), hash, key, match);
}

/* The entry in the line of a hash that is likely to be that of it, and its slot; or NULL. Whoever finds that it is
 * warms it. */
LOOKASIDE_INLINE_ALWAYS void *lookaside_inline_peek_in(const uint64_t *line, uint64_t hash, unsigned *slot) {
    for (unsigned at = 0; at < 7; at++) {
        void *entry = lookaside_inline_entry(line, at, hash);
        if (entry != NULL) {
            *slot = at;
            return entry;
        }
    }
    return NULL;
}

/* The same of a hash that lookaside_inline_hash gave. */
LOOKASIDE_INLINE_ALWAYS void *lookaside_inline_peek(const void *b, uint64_t hash, unsigned *slot) {
    return lookaside_inline_peek_in(lookaside_inline_line(b, hash), hash, slot);
}

/* Puts an entry in, where the session's thread is alone (lookaside_owned): 1; or 0, and it is to be emitted by a call,
 * for the library decides. Where there is no room it takes the place of the coldest; of several that are as cold, which
 * is as the hash has it. An exchange of the library's would wait for all loads before it, those of the search among
 * them. */
LOOKASIDE_INLINE_ALWAYS int lookaside_inline_enter(lookaside_session *s, const uint64_t *line, uint64_t hash,
                                                   void *entry) {
    uint64_t *words = (uint64_t *)(uintptr_t)line;
    const unsigned char *temperatures = (const unsigned char *)(line + 7);
    uint64_t address = (uint64_t)(uintptr_t)entry, word = (hash >> 48 << 48) | address, cooled = words[7];
    unsigned start = (unsigned)hash & 7, coldest = 255 << 3 | 7, slot;
    if (!s->enters || !s->uses_table || address - 1 >= UINT64_C(0xffffffffffff)) return 0;
    for (slot = 0; slot < 7 && words[slot] != 0; slot++) {
        if (words[slot] == word) return 1;
        /* Behind its temperature, its distance from the start. */
        unsigned rank = (unsigned)temperatures[slot] << 3 | ((slot + start) & 7);
        coldest = rank < coldest ? rank : coldest;
    }
    if (slot < 7) {
        s->filled++;
    } else {
        slot = (coldest - start) & 7;
        cooled -= (coldest >> 3) * UINT64_C(0x0001010101010101);
        s->replaced++;
    }
    words[slot] = word;
    words[7] = (cooled & ~(UINT64_C(0xff) << (8 * slot))) | (uint64_t)s->newcomer << (8 * slot);
    return 1;
}

/* The same after a lookup that has found no such entry, over one that is as cold as a newcomer: nearly every full line
 * has one. 0 where there is none, or where newcomers are not cold: lookaside_inline_enter puts it in. With no search
 * for the least, a miss leaves room for one more lookup among those that wait for memory beside it. */
LOOKASIDE_INLINE_ALWAYS int lookaside_inline_enter_cold(lookaside_session *s, const uint64_t *line, uint64_t hash,
                                                        void *entry) {
    uint64_t *words = (uint64_t *)(uintptr_t)line;
    uint64_t address = (uint64_t)(uintptr_t)entry;
    unsigned start = 8 * ((unsigned)hash & 7);
    /* The last byte is no slot's. */
    uint64_t counters = words[7] | UINT64_C(0xff) << 56;
    uint64_t turned = counters >> start | counters << ((64 - start) & 63);
    /* The highest bit of each byte that is zero, and perhaps of one that is 1 behind such a byte. */
    uint64_t cold = (turned - UINT64_C(0x0101010101010101)) & ~turned & UINT64_C(0x8080808080808080);
    if (!s->enters || !s->uses_table || s->newcomer != 0 || address - 1 >= UINT64_C(0xffffffffffff)) return 0;
    if (words[6] == 0 || cold == 0) return 0;
    words[(((unsigned)__builtin_ctzll(cold) + start) >> 3) & 7] = (hash >> 48 << 48) | address;
    s->replaced++;
    return 1;
}

/* Asks for the lines of an entry, of so many bytes. It may begin anywhere in the first. */
LOOKASIDE_INLINE_ALWAYS void lookaside_inline_fetch(const void *entry, size_t bytes) {
    for (size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch((const char *)entry + offset);
    __builtin_prefetch((const char *)entry + bytes - 1);
}

/* lookaside_inline_get_many for at most LOOKASIDE_INLINE_GROUP keys. */
LOOKASIDE_INLINE_ALWAYS size_t lookaside_inline_get_group(const void *b, lookaside_session *s, void *const *keys,
                                                          size_t count, void **entries, size_t entry_bytes,
                                                          uint64_t (*hash)(void *key),
                                                          bool (*match)(void *entry, void *key)) {
    uint64_t hashes[LOOKASIDE_INLINE_GROUP];
    unsigned slots[LOOKASIDE_INLINE_GROUP];
    size_t found = 0;
    if (!lookaside_inline_asks(b, s, (int32_t)count)) {
        for (size_t i = 0; i < count; i++) entries[i] = NULL;
        return 0;
    }
    const lookaside_inline_lines *lines = lookaside_inline_table(b);
    const unsigned char *base = lines->base;
    const uint64_t number = lines->count;
    for (size_t i = 0; i < count; i++) {
        hashes[i] = lookaside_inline_hash(b, hash(keys[i]));
        __builtin_prefetch(lookaside_inline_line_of(base, number, hashes[i]));
    }
    for (size_t i = 0; i < count; i++) {
        entries[i] = lookaside_inline_peek_in(lookaside_inline_line_of(base, number, hashes[i]), hashes[i], slots + i);
        if (entries[i] != NULL) lookaside_inline_fetch(entries[i], entry_bytes);
    }
    for (size_t i = 0; i < count; i++) {
        const uint64_t *line = lookaside_inline_line_of(base, number, hashes[i]);
        if (entries[i] != NULL && __builtin_expect(match(entries[i], keys[i]), 1)) {
            /* What was peeked at is an answer of that moment: it need not be looked for again. */
            lookaside_inline_warm(s, line, slots[i]);
        } else {
            /* Behind another with the same tag, or put there since, or not there. */
            entries[i] = lookaside_inline_find_in(s, line, hashes[i], keys[i], match);
        }
        found += entries[i] != NULL;
    }
    return found;
}

/* As lookaside_get_many, without tickets; no key is NULL. Of an entry, `entry_bytes` (1 at least) are asked for ahead.
 */
LOOKASIDE_INLINE_ALWAYS size_t lookaside_inline_get_many(const void *b, lookaside_session *s, void *const *keys,
                                                         size_t count, void **entries, size_t entry_bytes,
                                                         uint64_t (*hash)(void *key),
                                                         bool (*match)(void *entry, void *key)) {
    size_t found = 0;
    for (size_t first = 0; first < count; first += LOOKASIDE_INLINE_GROUP) {
        size_t left = count - first, length = left < LOOKASIDE_INLINE_GROUP ? left : LOOKASIDE_INLINE_GROUP;
        found += lookaside_inline_get_group(b, s, keys + first, length, entries + first, entry_bytes, hash, match);
    }
    return found;
}

#undef LOOKASIDE_INLINE_ALWAYS

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* LOOKASIDE_INLINE_H */
