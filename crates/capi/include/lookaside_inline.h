/* The hit path of the Search Lookaside Buffer, compiled into your code: no call but, every 1024 lookups, one to tell the
 * counts; your comparison and your hash are inlined. For C11 and C++ of GCC and Clang.
 *
 *     lookaside_session *s = lookaside_inline_attach(b);      // once a thread; NULL if the library's layout is another
 *     entry = lookaside_inline_get(b, s, my_hash(key), key, my_match);
 *
 * It does what SLB_get does, under the same conditions (lookaside.h): under SLB_lock, or pinned, or alone. The hash is what
 * keyhash would return. What misses is emitted as ever. For a lookaside_owned: pass it as `b`, and
 * lookaside_owned_attach(b, LOOKASIDE_INLINE_LAYOUT) as `s`.
 *
 * What is read here is frozen in crates/capi/src/layout.rs:
 *
 *     b -> { layout, policy, mark bits, 0, mark, lines } -> pointer -> { base, count } -> lines of 64 bytes:
 *
 *      0        8                                      56        63  64
 *     +--------+--------+-- . . . --+--------+--------+-----------+--+
 *     | slot 0 | slot 1 |           | slot 5 | slot 6 | counters  |  |     a slot: 16 bits of hash over 48 of address
 *     +--------+--------+-- . . . --+--------+--------+-----------+--+
 */
#ifndef LOOKASIDE_INLINE_H
#define LOOKASIDE_INLINE_H

#include "lookaside.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#define LOOKASIDE_INLINE_LAYOUT 1

#if LOOKASIDE_INLINE_LAYOUT != LOOKASIDE_LAYOUT
#error "lookaside_inline.h and lookaside.h are of different versions"
#endif

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct lookaside_inline_lines {
    const unsigned char *base;
    uint64_t count;
} lookaside_inline_lines;

typedef struct lookaside_inline_prefix {
    uint32_t layout;
    uint32_t policy;
    uint32_t mark_bits;
    uint32_t reserved;
    uint64_t mark;
    lookaside_inline_lines *const *lines;
} lookaside_inline_prefix;

/* In neither standard, but in both compilers. */
__extension__ typedef unsigned __int128 lookaside_inline_wide;

/* This thread's session: good until the thread ends, or the buffer does. */
static inline lookaside_session *lookaside_inline_attach(SLB *b) {
    return lookaside_attach(b, LOOKASIDE_INLINE_LAYOUT);
}

/* A caller's hash as the table sees it. */
static inline uint64_t lookaside_inline_hash(const void *b, uint64_t hash) {
    const lookaside_inline_prefix *prefix = (const lookaside_inline_prefix *)b;
    lookaside_inline_wide product =
        (lookaside_inline_wide)(hash ^ UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xd6e8feb86659fd93);
    hash = (uint64_t)product ^ (uint64_t)(product >> 64);
    return hash << prefix->mark_bits >> prefix->mark_bits | prefix->mark;
}

/* The line of a hash that lookaside_inline_hash gave. */
static inline const uint64_t *lookaside_inline_line(const void *b, uint64_t hash) {
    const lookaside_inline_prefix *prefix = (const lookaside_inline_prefix *)b;
    /* Acquire pairs with the release of whoever resizes. */
    const lookaside_inline_lines *lines = __atomic_load_n(prefix->lines, __ATOMIC_ACQUIRE);
    return (const uint64_t *)(const void *)(lines->base + 64 * (((hash & UINT64_C(0xffffffff)) * lines->count) >> 32));
}

/* The slots whose tag may be that of a hash: of slot n, the bits 2n and 2n + 1. A hint: look again at the slot itself. */
static inline unsigned lookaside_inline_slots(const uint64_t *line, uint64_t hash) {
#if defined(__x86_64__)
    /* Loads that race with writers of whole words: made in assembly, where each half is what some store wrote. */
    __m128i a, b, c, d;
    __asm__("movdqa (%4), %0\n\tmovdqa 16(%4), %1\n\tmovdqa 32(%4), %2\n\tmovdqa 48(%4), %3"
            : "=&x"(a), "=&x"(b), "=&x"(c), "=&x"(d)
            : "r"(line), "m"(*(const unsigned char(*)[64])(const void *)line));
    __m128i low = _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(a), _mm_castsi128_ps(b), _MM_SHUFFLE(3, 1, 3, 1)));
    __m128i high = _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(c), _mm_castsi128_ps(d), _MM_SHUFFLE(3, 1, 3, 1)));
    __m128i tags = _mm_packs_epi32(_mm_srai_epi32(low, 16), _mm_srai_epi32(high, 16));
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi16(tags, _mm_set1_epi16((short)(hash >> 48)))) & 0x3fffu;
#else
    unsigned set = 0;
    for (int slot = 0; slot < 7; slot++) {
        set |= (unsigned)((__atomic_load_n(line + slot, __ATOMIC_RELAXED) ^ hash) >> 48 == 0) * 3u << (2 * slot);
    }
    return set;
#endif
}

/* A random number; its high bits are the best. */
static inline uint64_t lookaside_inline_random(lookaside_session *s) {
    s->random ^= s->random << 13, s->random ^= s->random >> 7, s->random ^= s->random << 17;
    return s->random * UINT64_C(0x2545f4914f6cdd1d);
}

/* Warms a slot that was hit: by one, to `most`; or, at 255, cools another that is not cold. */
static inline void lookaside_inline_raise(lookaside_session *s, const uint64_t *line, int slot, unsigned most) {
    uint64_t *place = (uint64_t *)(uintptr_t)(line + 7);
    uint64_t counters = __atomic_load_n(place, __ATOMIC_RELAXED);
    if ((counters >> (8 * slot) & 0xff) < most) {
        __atomic_store_n(place, counters + (UINT64_C(1) << (8 * slot)), __ATOMIC_RELAXED);
    } else if (most == 255) {
        int start = (int)((lookaside_inline_random(s) >> 32) * 7 >> 32);
        for (int step = 0; step < 7; step++) {
            int other = (start + step) % 7;
            if (other != slot && (counters >> (8 * other) & 0xff) != 0) {
                __atomic_store_n(place, counters - (UINT64_C(1) << (8 * other)), __ATOMIC_RELAXED);
                return;
            }
        }
    }
}

/* Warms a slot that was hit. Policy 0: one hit in eight is looked at, and raises the counter ever more rarely, to 15; decided
 * before the line is looked at, so that no guess waits for it. Policy 1: every hit. Policy 2: none. */
static inline void lookaside_inline_warm(const void *b, lookaside_session *s, const uint64_t *line, int slot) {
    uint32_t policy = ((const lookaside_inline_prefix *)b)->policy;
    if (policy == 0) {
        uint64_t number = lookaside_inline_random(s);
        if (__builtin_expect(number >> 61 == 0, 0)) {
            uint64_t counters = __atomic_load_n(line + 7, __ATOMIC_RELAXED);
            unsigned temperature = (unsigned)(counters >> (8 * slot)) & 0xff;
            unsigned rarely = temperature > 3 ? temperature - 3 : 0;
            /* A newcomer may begin above 15, and then stays there. */
            if (temperature < 15 && number << 3 >> 1 >> (63 - rarely) == 0) lookaside_inline_raise(s, line, slot, 15);
        }
    } else if (policy == 1) {
        lookaside_inline_raise(s, line, slot, 255);
    }
}

/* Whether the next lookup asks the table. */
static inline int lookaside_inline_asks(const void *b, lookaside_session *s) {
    if (__builtin_expect(s->left == 0, 0)) lookaside_turn((const SLB *)b, s);
    s->left--;
    if (__builtin_expect(s->uses_table == 0, 0)) {
        s->bypassed++;
        return 0;
    }
    return 1;
}

/* The entry of a key in the line of its hash (lookaside_inline_hash), or NULL. */
static inline void *lookaside_inline_find(const void *b, lookaside_session *s, uint64_t hash, void *key,
                                          bool (*match)(void *entry, void *key)) {
    const uint64_t *line = lookaside_inline_line(b, hash);
    for (unsigned set = lookaside_inline_slots(line, hash); set != 0; set &= set - 1, set &= set - 1) {
        int slot = __builtin_ctz(set) / 2;
        /* Acquire pairs with the release of the emission: the entry is seen as it was then. */
        uint64_t word = __atomic_load_n(line + slot, __ATOMIC_ACQUIRE);
        void *entry = (void *)(uintptr_t)(word & UINT64_C(0xffffffffffff));
        if ((word ^ hash) >> 48 == 0 && entry != NULL && match(entry, key)) {
            lookaside_inline_warm(b, s, line, slot);
            s->hits++;
            return entry;
        }
    }
    s->misses++;
    return NULL;
}

/* As SLB_get. */
static inline void *lookaside_inline_get(const void *b, lookaside_session *s, uint64_t hash, void *key,
                                         bool (*match)(void *entry, void *key)) {
    if (!lookaside_inline_asks(b, s)) return NULL;
    return lookaside_inline_find(b, s, lookaside_inline_hash(b, hash), key, match);
}

/* For batches. Asks for the line of a hash (lookaside_inline_hash). */
static inline void lookaside_inline_prefetch(const void *b, uint64_t hash) {
    __builtin_prefetch(lookaside_inline_line(b, hash));
}

/* For batches. The entry that is likely to be that of a hash (lookaside_inline_hash), to prefetch it; or NULL. */
static inline void *lookaside_inline_peek(const void *b, uint64_t hash) {
    const uint64_t *line = lookaside_inline_line(b, hash);
    unsigned set = lookaside_inline_slots(line, hash);
    if (set == 0) return NULL;
    uint64_t word = __atomic_load_n(line + __builtin_ctz(set) / 2, __ATOMIC_ACQUIRE);
    return (void *)(uintptr_t)(word & UINT64_C(0xffffffffffff));
}

#if defined(__cplusplus)
} /* extern "C" */
#endif

#endif /* LOOKASIDE_INLINE_H */
