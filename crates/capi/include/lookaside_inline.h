/* The hit path of the Search Lookaside Buffer, compiled into your code: your comparison and your hash are inlined.
 * Calls remain for one lookup in eight, if it is a hit, to warm its entry (not where every hit counts), and every 1024
 * lookups, to tell the counts. For C11 and C++ of GCC and Clang.
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
 *     b -> { layout, others, mark, lines } -> pointer -> { base, count } -> lines of 64 bytes:
 *
 *      0        8                                      56        63  64
 *     +--------+--------+-- . . . --+--------+--------+-----------+--+
 *     | slot 0 | slot 1 |           | slot 5 | slot 6 | counters  |  |     a slot: 16 bits of hash over 48 of address
 *     +--------+--------+-- . . . --+--------+--------+-----------+--+
 */
#ifndef LOOKASIDE_INLINE_H
#define LOOKASIDE_INLINE_H

#include "lookaside.h"

/* Vector instructions compare the tags of a line at once: on x86-64, which has had SSE2 from the start.
 * LOOKASIDE_PORTABLE, if it is defined before this, forces what all other processors do: one word after the other. So
 * does the thread sanitizer, which knows atomic loads. */
#if defined(__x86_64__) && !defined(LOOKASIDE_PORTABLE) && !defined(__SANITIZE_THREAD__)
#define LOOKASIDE_INLINE_SSE2
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef LOOKASIDE_INLINE_SSE2
#endif
#endif
#endif

#if defined(LOOKASIDE_INLINE_SSE2)
#include <emmintrin.h>
#endif

#define LOOKASIDE_INLINE_LAYOUT 7

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

/* A caller's hash as the table sees it. */
LOOKASIDE_INLINE_ALWAYS uint64_t lookaside_inline_hash(const void *b, uint64_t hash) {
    const lookaside_inline_prefix *prefix = (const lookaside_inline_prefix *)b;
    uint64_t folded = lookaside_inline_fold(hash ^ UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd6e8feb86659fd93));
    return (lookaside_inline_fold(folded, UINT64_C(0x243f6a8885a308d3)) & prefix->others) | prefix->mark;
}

/* The line of a hash that lookaside_inline_hash gave. */
LOOKASIDE_INLINE_ALWAYS const uint64_t *lookaside_inline_line(const void *b, uint64_t hash) {
    const lookaside_inline_prefix *prefix = (const lookaside_inline_prefix *)b;
    /* Acquire pairs with the release of whoever resizes. */
    const lookaside_inline_lines *lines = __atomic_load_n(prefix->lines, __ATOMIC_ACQUIRE);
    return (const uint64_t *)(const void *)(lines->base + 64 * (((hash & UINT64_C(0xffffffff)) * lines->count) >> 32));
}

/* The slots whose tag may be that of a hash: of slot n, bit 2n + 1. A hint: look again at the slot itself.
 *
 * The loads race with writers, who store words whole. The languages have atomic loads for that, of a word each, and
 * none of a vector. These are volatile: both compilers make each of them once and as it is written, and neither takes
 * what a volatile load races with for undefined (LLVM: "target-dependent"; GCC: as the hardware does it). On this
 * hardware each aligned half is what some store wrote. Were it torn, nothing would be lost but a hint: whoever follows
 * it loads the slot by itself, atomically, and looks at the tag again; and a slot whose tag is read wrongly is being
 * written just now, so that to miss it is as good.
 *
 * Rejected: assembly, as it was before. It has one encoding, and the compiler chooses another with -mavx: a legacy
 * instruction then waits for the upper halves of the registers, and a batch takes ten times as long. Eight atomic loads
 * that are moved into
 * vectors: twice the instructions. */
LOOKASIDE_INLINE_ALWAYS unsigned lookaside_inline_slots(const uint64_t *line, uint64_t hash) {
#if defined(LOOKASIDE_INLINE_SSE2)
    /* The high halves of four words, twice. */
    const volatile __m128i *words = (const volatile __m128i *)(const void *)line;
    __m128i first = words[0], second = words[1], third = words[2], fourth = words[3];
    __m128i low = _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(first), _mm_castsi128_ps(second), 0xdd));
    __m128i high = _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(third), _mm_castsi128_ps(fourth), 0xdd));
    /* Of each word two parts are compared, of which the higher is the tag; and of eight words only seven are slots. */
    __m128i tag = _mm_shuffle_epi32(_mm_shufflelo_epi16(_mm_cvtsi64_si128((long long)hash), 0xff), 0);
    __m128i same = _mm_packs_epi16(_mm_cmpeq_epi16(low, tag), _mm_cmpeq_epi16(high, tag));
    return (unsigned)_mm_movemask_epi8(same) & 0x2aaau;
#else
    unsigned set = 0;
    for (int slot = 0; slot < 7; slot++) {
        set |= (unsigned)((__atomic_load_n(line + slot, __ATOMIC_RELAXED) ^ hash) >> 48 == 0) << (2 * slot + 1);
    }
    return set;
#endif
}

/* The entry in a slot, if its tag is that of the hash; or NULL. */
LOOKASIDE_INLINE_ALWAYS void *lookaside_inline_entry(const uint64_t *line, unsigned slot, uint64_t hash) {
    /* Acquire pairs with the release of the emission: the entry is seen as it was then. */
    uint64_t word = __atomic_load_n(line + slot, __ATOMIC_ACQUIRE);
    /* With the right tag, only the address is left of it; with another one, more than an address may have. */
    uint64_t address = word ^ (hash >> 48 << 48);
    return address - 1 < UINT64_C(0xffffffffffff) ? (void *)(uintptr_t)address : NULL;
}

/* A hit where every hit counts, as in the paper: warms its slot at once, unless that is another's by now; of a full
 * counter it cools another that is not cold, the first from a random one on. */
LOOKASIDE_INLINE_ALWAYS void lookaside_inline_count(lookaside_session *s, const uint64_t *line, uint64_t hash,
                                                    unsigned slot) {
    uint64_t *counters = (uint64_t *)(uintptr_t)(line + 7);
    uint64_t temperatures = __atomic_load_n(counters, __ATOMIC_RELAXED);
    if (lookaside_inline_entry(line, slot, hash) == NULL) return;
    if ((temperatures >> (8 * slot) & 0xff) != 0xff) {
        temperatures += UINT64_C(1) << (8 * slot);
    } else {
        const uint64_t low = UINT64_C(0x007f7f7f7f7f7f7f);
        uint64_t others = temperatures & ~(UINT64_C(0xff) << (8 * slot));
        /* The highest bit of each counter that is not zero. */
        uint64_t warm = (((others & low) + low) | others) & UINT64_C(0x0080808080808080);
        if (warm == 0) return;
        s->random += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t number = ((s->random ^ s->random >> 32) * UINT64_C(0xd6e8feb86659fd93)) >> 32;
        unsigned start = 8 * (unsigned)((number * 7) >> 32);
        uint64_t from_start = warm >> start;
        unsigned cooled = from_start != 0 ? start + (unsigned)__builtin_ctzll(from_start)
                                          : (unsigned)__builtin_ctzll(warm);
        temperatures -= UINT64_C(1) << (cooled - 7);
    }
    /* No read-modify-write: two hits at once may count as one. */
    __atomic_store_n(counters, temperatures, __ATOMIC_RELAXED);
}

/* Has the slot of a hit in this line, or in that of the hash if it is NULL, warmed if its lookup is one of those that
 * count: by its number, of those that asked last together `later` before the last, so that no guess of the processor
 * waits for the line. */
LOOKASIDE_INLINE_ALWAYS void lookaside_inline_hit(const void *b, lookaside_session *s, const uint64_t *line,
                                                  uint64_t hash, unsigned slot, int32_t later) {
    int32_t left = s->left + later;
    if (__builtin_expect(left > s->due, 1)) return;
    if (s->every_hit) {
        /* `due` stays: what is left is at it or below, and falls; a new turn moves both. */
        lookaside_inline_count(s, line != NULL ? line : lookaside_inline_line(b, hash), hash, slot);
    } else {
        lookaside_warm((const SLB *)b, s, hash, slot, left);
    }
}

/* Whether the next so many lookups, 1024 at most, ask the table. Counts them: those that are no misses are hits. Where
 * they ask, one comparison: the fewer instructions a lookup takes, the more of them wait for memory at once. */
LOOKASIDE_INLINE_ALWAYS int lookaside_inline_asks(const void *b, lookaside_session *s, int32_t lookups) {
    int32_t left = s->left - lookups;
    s->left = left;
    if (__builtin_expect(left >= 0, 1)) return 1;
    if (left >= LOOKASIDE_OFF && left <= LOOKASIDE_OFF + 1024) return 0;
    s->left = left + lookups;
    lookaside_turn((const SLB *)b, s, (uint32_t)lookups);
    s->left -= lookups;
    return s->uses_table != 0;
}

/* The entry of a key in the line of its hash (lookaside_inline_hash), or NULL; of the lookups that asked last together
 * it is `later` before the last. */
LOOKASIDE_INLINE_ALWAYS void *lookaside_inline_find(const void *b, lookaside_session *s, uint64_t hash, void *key,
                                                    bool (*match)(void *entry, void *key), int32_t later) {
    const uint64_t *line = lookaside_inline_line(b, hash);
    for (unsigned set = lookaside_inline_slots(line, hash); set != 0; set &= set - 1) {
        unsigned slot = (unsigned)__builtin_ctz(set) / 2;
        void *entry = lookaside_inline_entry(line, slot, hash);
        if (entry != NULL && match(entry, key)) {
            lookaside_inline_hit(b, s, line, hash, slot, later);
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
    return lookaside_inline_find(b, s, lookaside_inline_hash(b, hash), key, match, 0);
}

/* The entry that is likely to be that of a hash (lookaside_inline_hash), and its slot; or NULL. Whoever finds that it
 * is tells lookaside_inline_hit. */
LOOKASIDE_INLINE_ALWAYS void *lookaside_inline_peek(const void *b, uint64_t hash, unsigned *slot) {
    const uint64_t *line = lookaside_inline_line(b, hash);
    for (unsigned set = lookaside_inline_slots(line, hash); set != 0; set &= set - 1) {
        *slot = (unsigned)__builtin_ctz(set) / 2;
        void *entry = lookaside_inline_entry(line, *slot, hash);
        if (entry != NULL) return entry;
    }
    return NULL;
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
    for (size_t i = 0; i < count; i++) {
        hashes[i] = lookaside_inline_hash(b, hash(keys[i]));
        __builtin_prefetch(lookaside_inline_line(b, hashes[i]));
    }
    for (size_t i = 0; i < count; i++) {
        const char *entry = (const char *)(entries[i] = lookaside_inline_peek(b, hashes[i], slots + i));
        if (entry == NULL) continue;
        /* It may begin anywhere in its first line. */
        for (size_t offset = 0; offset < entry_bytes; offset += 64) __builtin_prefetch(entry + offset);
        __builtin_prefetch(entry + entry_bytes - 1);
    }
    for (size_t i = 0; i < count; i++) {
        int32_t later = (int32_t)(count - 1 - i);
        if (entries[i] != NULL && match(entries[i], keys[i])) {
            /* What was peeked at is an answer of that moment: it need not be looked for again. */
            lookaside_inline_hit(b, s, NULL, hashes[i], slots[i], later);
        } else {
            /* Behind another with the same tag, or put there since, or not there. */
            entries[i] = lookaside_inline_find(b, s, hashes[i], keys[i], match, later);
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
