/* The library's hit path and the one of lookaside_inline.h are written twice. Here both are given the same lines, and
 * must ask about the same entries in the same order, give the same answer, and warm the same slots as often. So must
 * their batches. */
#include <string.h>

#include "check.h"
#include "lookaside_inline.h"

enum { SLOTS = 7, MOST_ASKED = 16 };

static uint64_t state = 88172645463325252u;
static uint64_t next(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state * UINT64_C(0x2545f4914f6cdd1d);
}

/* What was asked about, and what is the answer. Entries are addresses that nobody follows. */
static void *asked[MOST_ASKED];
static int times_asked;
static void *wanted;
static bool match(void *entry, void *key) {
    CHECK(key != NULL && times_asked < MOST_ASKED);
    asked[times_asked++] = entry;
    return entry == wanted;
}
static uint64_t hash(void *key) { return *(uint64_t *)key; }

static SLB *create(size_t size, uint32_t counters, uint32_t newcomer, uint32_t indexes) {
    lookaside_options options;
    lookaside_default_options(&options, sizeof options);
    options.size = size, options.match = match, options.keyhash = hash, options.entryhash = hash;
    options.counters = counters, options.newcomer = newcomer, options.indexes = indexes;
    options.monitor = false, options.layout = LOOKASIDE_INLINE_LAYOUT, options.pages = LOOKASIDE_PAGES_BASE;
    SLB *b = lookaside_create(&options);
    CHECK(b != NULL);
    return b;
}

/* Lines of any content: tags of few kinds, addresses among which are none, whatever lies where. */
static void slots(void) {
    SLB *b = create(64, LOOKASIDE_COUNT_NEVER, 1, 1);
    lookaside_session *s = lookaside_inline_attach(b);
    for (int turn = 0; turn < 200000; turn++) {
        uint64_t key = next(), sealed = lookaside_inline_hash(b, key), tag = sealed >> 48;
        uint64_t *line = (uint64_t *)(uintptr_t)lookaside_inline_line(b, sealed);
        uint64_t tags[] = {tag, tag, tag, tag ^ 1, tag ^ 0x8000, ~tag, 0, 0xffff, 0x7fff, 0x8000};
        for (int slot = 0; slot < SLOTS; slot++) {
            uint64_t address = next() % 3 == 0 ? 0 : (next() % 4 + 1) << (next() % 46);
            line[slot] = (tags[next() % 10] & 0xffff) << 48 | address;
        }
        line[7] = next() >> 8;
        uint64_t counters = line[7];
        wanted = next() % 3 == 0 ? NULL : (void *)(uintptr_t)(line[next() % SLOTS] & UINT64_C(0xffffffffffff));
        times_asked = 0;
        void *found = SLB_get(b, &key);
        int times = times_asked;
        void *before[MOST_ASKED];
        memcpy(before, asked, sizeof before);
        times_asked = 0;
        CHECK(lookaside_inline_get(b, s, key, &key, match) == found);
        CHECK(times_asked == times && memcmp(asked, before, (size_t)times * sizeof *asked) == 0);
        /* In batches the first is asked about before the others, and once more if it is not the one. */
        void *keys[] = {&key}, *entries[] = {&key};
        times_asked = 0;
        CHECK(lookaside_get_many(b, keys, 1, entries, NULL) == (found != NULL) && entries[0] == found);
        int times_in_batch = times_asked;
        void *before_in_batch[MOST_ASKED];
        memcpy(before_in_batch, asked, sizeof asked);
        CHECK(times_in_batch == (times > 0 && before[0] != wanted ? 1 + times : times));
        times_asked = 0, entries[0] = &key;
        CHECK(lookaside_inline_get_many(b, s, keys, 1, entries, 88, hash, match) == (found != NULL));
        CHECK(entries[0] == found);
        CHECK(times_asked == times_in_batch);
        CHECK(memcmp(asked, before_in_batch, (size_t)times_asked * sizeof *asked) == 0);
        /* What a hint may say wrongly, nobody is asked about: neither empty slots nor other tags. */
        int expected = 0;
        for (int slot = 0; slot < SLOTS; slot++) {
            void *entry = (void *)(uintptr_t)(line[slot] & UINT64_C(0xffffffffffff));
            if (line[slot] >> 48 != tag || entry == NULL) continue;
            CHECK(expected < times && before[expected] == entry);
            expected++;
            if (entry == wanted) break;
        }
        CHECK(expected == times && (found != NULL) == (times > 0 && before[times - 1] == wanted));
        CHECK(line[7] == counters); /* Policy 2 writes nothing. */
    }
    SLB_destroy(b);
}

/* Where an entry lies that the library put in: tables of any number of lines, and of several indexes. */
static void lines(void) {
    size_t sizes[] = {64, 128, 192, 64 * 1000, 64 * 1023 + 63, 1 << 20};
    for (int i = 0; i < 6; i++) {
        for (uint32_t indexes = 1; indexes <= 256; indexes *= 4) {
            SLB *b = create(sizes[i], LOOKASIDE_COUNT_FALLING, 1, indexes), *c = NULL;
            for (uint32_t more = 1; more < indexes; more++) {
                if (c) SLB_destroy(c);
                CHECK((c = lookaside_share(b, match, hash, hash)) != NULL);
            }
            SLB *both[] = {b, c};
            for (int which = 0; which < (c ? 2 : 1); which++) {
                lookaside_session *s = lookaside_inline_attach(both[which]);
                for (int turn = 0; turn < 500; turn++) {
                    uint64_t key = turn % 2 ? next() : (uint64_t)turn;
                    SLB_emit(both[which], &key);
                    wanted = &key, times_asked = 0;
                    CHECK(lookaside_inline_get(both[which], s, key, &key, match) == &key);
                    times_asked = 0;
                    CHECK(SLB_get(both[which], &key) == &key);
                    SLB_invalidate(both[which], &key);
                    times_asked = 0;
                    CHECK(lookaside_inline_get(both[which], s, key, &key, match) == NULL);
                }
            }
            if (c) SLB_destroy(c);
            SLB_destroy(b);
        }
    }
}

/* Batches of any length, in which some keys have entries. */
static bool is_key(void *entry, void *key) { return entry == key; }
static void batches(void) {
    enum { MOST = 50 };
    SLB *b = create(64 * 8, LOOKASIDE_COUNT_FALLING, 1, 1);
    lookaside_session *s = lookaside_inline_attach(b);
    static uint64_t all[MOST];
    void *keys[MOST], *entries[MOST], *expected[MOST];
    for (int turn = 0; turn < 3000; turn++) {
        size_t count = next() % (MOST + 1), found = 0;
        for (size_t i = 0; i < MOST; i++) all[i] = next() % 64, keys[i] = all + i, entries[i] = expected[i] = NULL;
        for (size_t i = 0; i < MOST; i += 2) lookaside_emit_key(b, keys[i], keys[i], NULL);
        for (size_t i = 0; i < count; i++) {
            expected[i] = lookaside_inline_get(b, s, all[i], keys[i], is_key);
            found += expected[i] != NULL;
        }
        CHECK(lookaside_inline_get_many(b, s, keys, count, entries, 1, hash, is_key) == found);
        CHECK(memcmp(entries, expected, sizeof entries) == 0);
        for (size_t i = 0; i < MOST; i++) SLB_invalidate(b, keys[i]);
    }
    /* Each lookup is counted once, as a hit or as a miss. */
    lookaside_turn(b, s, 1);
    lookaside_counts counts, more;
    lookaside_get_counts(b, &counts, sizeof counts);
    for (size_t i = 0; i < MOST; i++) all[i] = next(), entries[i] = NULL;
    for (size_t i = 0; i < MOST; i += 5) lookaside_emit_key(b, keys[i], keys[i], NULL);
    size_t found = lookaside_inline_get_many(b, s, keys, MOST, entries, 8, hash, is_key);
    lookaside_turn(b, s, 1);
    lookaside_get_counts(b, &more, sizeof more);
    CHECK(found == MOST / 5 && more.hits - counts.hits == found && more.misses - counts.misses == MOST - found);
    SLB_destroy(b);
}

struct warmed {
    long raised[SLOTS];  /* By one, which. */
    long lowered[SLOTS];
};

/* Hits a slot of a line whose counters are `counters` so many times, each time anew. */
static struct warmed hit(SLB *b, bool inlined, uint64_t counters, int slot, long times) {
    struct warmed warmed = {0};
    uint64_t key = 5, sealed = lookaside_inline_hash(b, key);
    uint64_t *line = (uint64_t *)(uintptr_t)lookaside_inline_line(b, sealed);
    lookaside_session *s = lookaside_inline_attach(b);
    for (int other = 0; other < SLOTS; other++) line[other] = (sealed >> 48 ^ (other == slot ? 0 : 1)) << 48 | 0x1000;
    wanted = (void *)(uintptr_t)0x1000;
    for (long i = 0; i < times; i++) {
        line[7] = counters, times_asked = 0;
        CHECK((inlined ? lookaside_inline_get(b, s, key, &key, match) : SLB_get(b, &key)) == wanted);
        uint64_t now = line[7];
        for (int other = 0; other < SLOTS; other++) {
            int before = counters >> (8 * other) & 0xff, after = now >> (8 * other) & 0xff;
            CHECK(after == before || after == before + 1 || after == before - 1);
            warmed.raised[other] += after > before, warmed.lowered[other] += after < before;
        }
        CHECK(now >> 56 == counters >> 56);
    }
    return warmed;
}

/* Whether two counts out of as many are of one probability: within six standard deviations. */
static bool alike(double a, double b) {
    double difference = a - b;
    return difference * difference <= 36 * (a + b) + 36;
}

static void counters(void) {
    /* The highest byte is no counter's. */
    uint64_t others[] = {0, UINT64_C(0xa5ff020000640103), UINT64_C(0x8001000000000001), UINT64_C(0x00ffffffffffffff)};
    for (uint32_t policy = 0; policy <= 2; policy++) {
        SLB *b = create(64, policy, 1, 1);
        for (int which = 0; which < 4; which++) {
            for (int slot = 0; slot < SLOTS; slot++) {
                for (int temperature = 0, step; temperature < 256; temperature += step) {
                    step = temperature < 17 || temperature > 250 ? 1 : 26;
                    if (slot % 3 && temperature % 5) continue; /* Not all of the many. */
                    /* Which of others is cooled is drawn at random: that takes many hits to be seen. */
                    long times = policy == LOOKASIDE_COUNT_EVERY_HIT && temperature == 255 ? 1 << 15 : 100;
                    uint64_t at = others[which] & ~(UINT64_C(0xff) << (8 * slot));
                    at |= (uint64_t)temperature << (8 * slot);
                    struct warmed library = hit(b, false, at, slot, times), inlined = hit(b, true, at, slot, times);
                    for (int other = 0; other < SLOTS; other++) {
                        CHECK(library.raised[other] == inlined.raised[other]);
                        CHECK(alike((double)library.lowered[other], (double)inlined.lowered[other]));
                        CHECK(other == slot || library.raised[other] == 0);
                    }
                    /* And as layout.rs says it is. */
                    int warmest = policy == LOOKASIDE_COUNT_NEVER ? 0 : policy == LOOKASIDE_COUNT_EVERY_HIT ? 255 : 15;
                    CHECK(library.raised[slot] == (temperature < warmest ? times : 0));
                    long lowered = 0;
                    for (int other = 0; other < SLOTS; other++) lowered += inlined.lowered[other];
                    bool full = policy == LOOKASIDE_COUNT_EVERY_HIT && temperature == 255;
                    uint64_t rest = at & ~(UINT64_C(0xff) << (8 * slot)) & UINT64_C(0x00ffffffffffffff);
                    CHECK(lowered == (full && rest ? times : 0) && inlined.lowered[slot] == 0);
                }
            }
        }
        SLB_destroy(b);
    }
}

/* A newcomer goes over the first slot from the hash's own on whose counter is zero, in a full line, and nothing else
 * changes; or nothing does, and the caller is told. */
static void cold(void) {
    for (uint8_t newcomer = 0; newcomer < 2; newcomer++) {
        lookaside_options options;
        lookaside_default_options(&options, sizeof options);
        options.size = 64, options.match = match, options.keyhash = hash, options.entryhash = hash;
        options.newcomer = newcomer, options.monitor = false, options.layout = LOOKASIDE_INLINE_LAYOUT;
        options.pages = LOOKASIDE_PAGES_BASE;
        lookaside_owned *o = lookaside_owned_create(&options);
        CHECK(o != NULL);
        lookaside_session *s = lookaside_owned_attach(o, LOOKASIDE_INLINE_LAYOUT);
        int entered = 0;
        for (int turn = 0; turn < 200000; turn++) {
            uint64_t key = next(), before[8];
            uint64_t *line = (uint64_t *)(uintptr_t)lookaside_inline_line(o, key);
            for (int slot = 0; slot < SLOTS; slot++) {
                line[slot] = next() % 9 == 0 ? 0 : next();
                uint8_t *counter = (uint8_t *)(line + 7) + slot;
                *counter = (uint8_t)(next() % 3 == 0 ? next() : next() % 3);
            }
            memcpy(before, line, sizeof before);
            uint64_t address = next() % 20 == 0 ? (next() % 2 ? 0 : UINT64_C(1) << 48) : next() >> 16;
            const uint8_t *counters = (const uint8_t *)(before + 7);
            int expected = SLOTS;
            for (int step = 7; step >= 0; step--) {
                int slot = (int)((key + (uint64_t)step) & 7);
                if (slot < SLOTS && counters[slot] == 0) expected = slot;
            }
            bool enters = newcomer == 0 && before[6] != 0 && expected < SLOTS && address - 1 < UINT64_C(0xffffffffffff);
            uint64_t replaced = s->replaced;
            CHECK(lookaside_inline_enter_cold(s, line, key, (void *)(uintptr_t)address) == enters);
            CHECK(s->replaced == replaced + enters);
            if (enters) before[expected] = key >> 48 << 48 | address;
            CHECK(memcmp(before, line, sizeof before) == 0);
            entered += enters;
        }
        CHECK(newcomer == 0 ? entered > 50000 : entered == 0);
        lookaside_owned_destroy(o);
    }
}

int main(void) {
    slots();
    cold();
    lines();
    batches();
    counters();
    puts("inline_rule: both do the same");
}
