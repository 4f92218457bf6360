/* Every function of lookaside.h and of lookaside_inline.h, from one thread: what it does, and what it does with
 * nothing, with absurd sizes and with addresses of more than 48 bits. */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "lookaside_inline.h"

typedef struct record {
    uint64_t key;
    uint64_t value;
} record;

static int matches_asked;

static bool match(void *entry, void *key) {
    matches_asked++;
    return ((record *)entry)->key == *(uint64_t *)key;
}
/* The worst of hashes: the library is to mix it. */
static uint64_t hash(void *key) { return *(uint64_t *)key; }
/* Nothing of a record at such an address is ever read, but its hash may be asked for. */
static int hashes_asked;
static uint64_t careful_hash(void *entry) {
    hashes_asked++;
    return (uintptr_t)entry >> 48 ? 7 : ((record *)entry)->key;
}

enum { RECORDS = 1000, SIZE = 1 << 20 };
static record records[RECORDS];

/* Without the monitor, whose trials miss on purpose. */
static SLB *create(void) {
    lookaside_options options;
    lookaside_default_options(&options, sizeof options);
    options.size = SIZE, options.match = match, options.keyhash = hash, options.entryhash = hash;
    options.monitor = false;
    SLB *b = lookaside_create(&options);
    CHECK(b != NULL);
    return b;
}

static void nothing(void) {
    uint64_t key = 1;
    void *keys[1] = {&key}, *entries[1] = {&key};
    lookaside_ticket ticket = 2;
    lookaside_counts counts;
    lookaside_verdict verdict;
    lookaside_options options;
    memset(&counts, 0xff, sizeof counts);
    memset(&verdict, 0xff, sizeof verdict);

    CHECK(SLB_create(0, match, hash, hash) == NULL && strstr(lookaside_last_error(), "64"));
    CHECK(SLB_create(63, match, hash, hash) == NULL);
    CHECK(SLB_create(SIZE_MAX, match, hash, hash) == NULL && strstr(lookaside_last_error(), "at most"));
    CHECK(SLB_create(SIZE, NULL, hash, hash) == NULL && strstr(lookaside_last_error(), "callback"));
    CHECK(SLB_create(SIZE, match, NULL, hash) == NULL && SLB_create(SIZE, match, hash, NULL) == NULL);
    SLB_destroy(NULL);
    CHECK(SLB_get(NULL, &key) == NULL);
    SLB_emit(NULL, &records[0]);
    SLB_invalidate(NULL, &key);
    SLB_update(NULL, &key, &records[0]);
    SLB_lock(NULL, &key);
    SLB_unlock(NULL, &key);
    CHECK(lookaside_get(NULL, &key, &ticket) == NULL && (ticket & 1) == 1);
    CHECK(lookaside_get(NULL, &key, NULL) == NULL);
    CHECK((lookaside_ticket_take(NULL, &key) & 1) == 1);
    lookaside_emit_ticket(NULL, &records[0], 0);
    lookaside_emit_key(NULL, &key, &records[0], NULL);
    lookaside_write_begin(NULL, &key);
    lookaside_write_end(NULL, &key, &records[0]);
    lookaside_pin(NULL);
    lookaside_unpin(NULL);
    lookaside_refresh(NULL);
    lookaside_retire(NULL, &records[0], NULL, NULL);
    lookaside_reclaim(NULL);
    CHECK(lookaside_get_many(NULL, keys, 1, entries, NULL) == 0 && entries[0] == &key);
    CHECK(lookaside_attach(NULL, LOOKASIDE_LAYOUT) == NULL);
    lookaside_turn(NULL, NULL, 1);
    lookaside_default_options(NULL, 0);
    lookaside_paper_options(NULL, 0);
    CHECK(lookaside_create(NULL) == NULL && strstr(lookaside_last_error(), "options"));
    CHECK(lookaside_share(NULL, match, hash, hash) == NULL);
    CHECK(!lookaside_resize(NULL, SIZE) && !lookaside_clear(NULL) && !lookaside_owned_clear(NULL));
    lookaside_get_counts(NULL, &counts, sizeof counts);
    lookaside_get_verdict(NULL, &verdict, sizeof verdict);
    CHECK(counts.hits == UINT64_MAX && verdict.trials == UINT64_MAX);
    CHECK(lookaside_occupancy(NULL) == 0 && lookaside_hottest(NULL, entries, NULL, 1) == 0);
    lookaside_monitor(NULL, true);
    CHECK(lookaside_owned_create(NULL) == NULL);
    lookaside_owned_destroy(NULL);
    CHECK(lookaside_owned_get(NULL, &key) == NULL);
    CHECK(lookaside_owned_get_many(NULL, keys, 1, entries) == 0);
    lookaside_owned_emit(NULL, &records[0]);
    lookaside_owned_emit_key(NULL, &key, &records[0]);
    lookaside_owned_invalidate(NULL, &key);
    lookaside_owned_update(NULL, &key, &records[0]);
    CHECK(!lookaside_owned_resize(NULL, SIZE) && lookaside_owned_attach(NULL, LOOKASIDE_LAYOUT) == NULL);
    lookaside_owned_get_counts(NULL, &counts, sizeof counts);
    CHECK(lookaside_owned_occupancy(NULL) == 0);
    lookaside_owned_monitor(NULL, true);
    lookaside_owned_get_verdict(NULL, &verdict, sizeof verdict);
    CHECK(verdict.trials == UINT64_MAX && lookaside_owned_hottest(NULL, entries, NULL, 1) == 0);

    /* The same with a buffer, but no key or entry. */
    SLB *b = SLB_create(SIZE, match, hash, hash);
    CHECK(b != NULL);
    CHECK(SLB_get(b, NULL) == NULL && lookaside_get(b, NULL, &ticket) == NULL);
    SLB_emit(b, NULL);
    SLB_invalidate(b, NULL);
    SLB_update(b, NULL, &records[0]);
    SLB_update(b, &key, NULL);
    SLB_lock(b, NULL);
    SLB_unlock(b, NULL);
    SLB_unlock(b, &key); /* Not locked. */
    lookaside_emit_ticket(b, NULL, 0);
    lookaside_emit_key(b, NULL, &records[0], NULL);
    lookaside_emit_key(b, &key, NULL, NULL);
    lookaside_write_begin(b, NULL);
    lookaside_write_end(b, NULL, &records[0]);
    lookaside_write_end(b, &key, &records[0]); /* Not begun. */
    lookaside_unpin(b);                        /* Not pinned. */
    lookaside_refresh(b);
    lookaside_retire(b, NULL, NULL, NULL);
    lookaside_retire(b, &records[0], NULL, NULL);
    CHECK(lookaside_get_many(b, NULL, 1, entries, NULL) == 0 && lookaside_get_many(b, keys, 1, NULL, NULL) == 0);
    CHECK(lookaside_hottest(b, NULL, NULL, 1) == 0);
    lookaside_get_counts(b, NULL, 8);
    lookaside_get_verdict(b, NULL, 8);
    CHECK(lookaside_occupancy(b) == 0);
    CHECK(lookaside_attach(b, LOOKASIDE_LAYOUT + 1) == NULL && strstr(lookaside_last_error(), "layout"));
    SLB_destroy(b);

    /* Options that cannot be. */
    lookaside_default_options(&options, sizeof options);
    options.size = SIZE;
#define REFUSED(field, impossible, says)                                                     \
    do {                                                                                     \
        lookaside_options other = options;                                                   \
        other.field = impossible;                                                            \
        CHECK(lookaside_create(&other) == NULL && strstr(lookaside_last_error(), says));     \
    } while (0)
    REFUSED(struct_size, sizeof options - 1, "bytes");
    REFUSED(struct_size, 0, "bytes");
    REFUSED(struct_size, SIZE_MAX, "bytes");
    /* A newer caller, who chooses nothing of what this library does not know; and one who does. */
    struct {
        lookaside_options known;
        unsigned char newer[8];
    } later = {options, {0}};
    memset(&later, 0xff, sizeof later);
    lookaside_default_options(&later.known, sizeof later);
    later.known.size = SIZE;
    for (size_t i = 0; i <= sizeof later.newer; i++) {
        if (i > 0) later.newer[i - 1] = 1;
        SLB *made = lookaside_create(&later.known);
        CHECK((made != NULL) == (i == 0) && (made != NULL || strstr(lookaside_last_error(), "newer")));
        SLB_destroy(made);
        if (i > 0) later.newer[i - 1] = 0;
    }
    REFUSED(admission, 2, "admission");
    REFUSED(counters, 3, "counters");
    REFUSED(pages, 4, "pages");
    REFUSED(newcomer, 256, "newcomer");
    REFUSED(sampling, 0.0, "sampling");
    REFUSED(indexes, 0, "indexes");
    REFUSED(indexes, 257, "indexes");
    REFUSED(entry_bytes, 4097, "entry_bytes");
    REFUSED(layout, 99, "layout");
    REFUSED(size, 63, "64");
    options.indexes = 2;
    CHECK(lookaside_owned_create(&options) == NULL && strstr(lookaside_last_error(), "indexes"));
}

static void figure4(void) {
    SLB *b = create();
    for (int locked = 0; locked < 2; locked++) {
        for (int i = 0; i < RECORDS; i++) {
            uint64_t key = (uint64_t)i;
            if (locked) SLB_lock(b, &key), SLB_lock(b, &key); /* Twice is allowed. */
            CHECK(SLB_get(b, &key) == NULL);
            SLB_emit(b, &records[i]);
            CHECK(SLB_get(b, &key) == &records[i]);
            if (locked) SLB_unlock(b, &key), SLB_unlock(b, &key);
        }
        CHECK(lookaside_occupancy(b) == RECORDS);
        for (int i = 0; i < RECORDS; i++) {
            uint64_t key = (uint64_t)i;
            record other = {key, 0};
            if (locked) SLB_lock(b, &key);
            SLB_update(b, &key, &other);
            CHECK(SLB_get(b, &key) == &other);
            SLB_invalidate(b, &key);
            CHECK(SLB_get(b, &key) == NULL);
            if (locked) {
                SLB_update(b, &key, &records[i]); /* It was there when the write began. */
                CHECK(SLB_get(b, &key) == &records[i]);
                SLB_invalidate(b, &key);
                SLB_unlock(b, &key);
            }
            SLB_update(b, &key, &other); /* It is not. */
            CHECK(SLB_get(b, &key) == NULL);
        }
        CHECK(lookaside_occupancy(b) == 0);
    }
    SLB_destroy(b);
}

static void addresses(void) {
    lookaside_options options;
    lookaside_default_options(&options, sizeof options);
    options.size = SIZE, options.match = match, options.keyhash = hash, options.entryhash = careful_hash;
    SLB *b = lookaside_create(&options);
    CHECK(b != NULL);
    uint64_t key = 7;
    SLB_emit(b, &records[7]);
    CHECK(SLB_get(b, &key) == &records[7]);
    SLB_invalidate(b, &key);
    /* The same low bits: cut, it would be found. */
    void *far_away = (void *)((uintptr_t)&records[7] | (uintptr_t)1 << 48);
    void *negative = (void *)((uintptr_t)&records[7] | (uintptr_t)0xffff << 48);
    matches_asked = 0;
    SLB_emit(b, far_away);
    SLB_emit(b, negative);
    lookaside_emit_ticket(b, far_away, lookaside_ticket_take(b, &key));
    lookaside_emit_key(b, &key, far_away, NULL);
    CHECK(SLB_get(b, &key) == NULL && matches_asked == 0 && lookaside_occupancy(b) == 0);
    SLB_emit(b, &records[7]);
    SLB_update(b, &key, far_away); /* The old one is forgotten, and that is all. */
    CHECK(SLB_get(b, &key) == NULL && lookaside_occupancy(b) == 0);
    SLB_destroy(b);
    /* What nobody can find the hash of: no write would find it either. */
    options.entryhash = NULL;
    b = lookaside_create(&options);
    SLB_emit(b, &records[7]);
    lookaside_emit_ticket(b, &records[7], lookaside_ticket_take(b, &key));
    CHECK(lookaside_occupancy(b) == 0);
    lookaside_emit_key(b, &key, &records[7], NULL);
    CHECK(SLB_get(b, &key) == &records[7]);
    SLB_destroy(b);
}

static int freed;
static void count_freed(void *entry, void *context) {
    CHECK(context == &freed && (entry == &records[0] || entry == &records[1]));
    freed++;
}

static void tickets_and_pins(void) {
    SLB *b = create();
    uint64_t key = 5;
    lookaside_ticket ticket;
    CHECK(lookaside_get(b, &key, &ticket) == NULL && (ticket & 1) == 0);
    lookaside_emit_ticket(b, &records[5], ticket);
    CHECK(lookaside_get(b, &key, &ticket) == &records[5] && (ticket & 1) == 1);
    SLB_invalidate(b, &key);

    CHECK(lookaside_get(b, &key, &ticket) == NULL);
    lookaside_write_begin(b, &key);
    CHECK((lookaside_ticket_take(b, &key) & 1) == 1);
    lookaside_write_end(b, &key, NULL);
    lookaside_emit_ticket(b, &records[5], ticket); /* A write came between. */
    CHECK(SLB_get(b, &key) == NULL);
    ticket = lookaside_ticket_take(b, &key);
    lookaside_emit_key(b, &key, &records[5], &ticket);
    CHECK(SLB_get(b, &key) == &records[5]);
    record newer = {5, 1};
    lookaside_write_begin(b, &key);
    CHECK(SLB_get(b, &key) == NULL);
    lookaside_write_end(b, &key, &newer);
    CHECK(SLB_get(b, &key) == &newer);
    lookaside_write_begin(b, &key);
    lookaside_write_end(b, &key, NULL);
    lookaside_write_begin(b, &key);
    lookaside_write_end(b, &key, &newer); /* It was not hot. */
    CHECK(SLB_get(b, &key) == NULL);

    /* Pins nest: nothing that was retired under the first is freed before the last has gone. */
    freed = 0;
    lookaside_pin(b), lookaside_pin(b);
    lookaside_retire(b, &records[0], count_freed, &freed);
    lookaside_unpin(b);
    for (int i = 0; i < 10; i++) lookaside_reclaim(b);
    CHECK(freed == 0);
    lookaside_refresh(b);
    for (int i = 0; i < 10; i++) lookaside_reclaim(b), lookaside_refresh(b);
    CHECK(freed == 1);
    lookaside_retire(b, &records[1], count_freed, &freed);
    SLB_destroy(b); /* Still pinned. */
    CHECK(freed == 2);

    b = create();
    freed = 0;
    lookaside_retire(b, &records[0], count_freed, &freed);
    lookaside_pin(b);
    lookaside_retire(b, &records[1], count_freed, &freed);
    for (int i = 0; i < 10; i++) lookaside_reclaim(b);
    CHECK(freed < 2); /* Pinned. */
    lookaside_unpin(b);
    for (int i = 0; i < 10; i++) lookaside_reclaim(b);
    CHECK(freed == 2);
    SLB_destroy(b);
}

static void batches(void) {
    enum { KEYS = 100 };
    SLB *b = create();
    uint64_t numbers[KEYS];
    void *keys[KEYS], *entries[KEYS];
    lookaside_ticket tickets[KEYS];
    for (int i = 0; i < KEYS; i++) {
        numbers[i] = (uint64_t)i * 3;
        keys[i] = i == 50 ? NULL : &numbers[i];
        if (i % 2 == 0) SLB_emit(b, &records[i * 3]);
    }
    for (int length = 0; length <= KEYS; length++) {
        memset(entries, 0xff, sizeof entries);
        size_t found = lookaside_get_many(b, keys, (size_t)length, entries, length % 2 ? tickets : NULL), expected = 0;
        for (int i = 0; i < length; i++) {
            bool here = i % 2 == 0 && i != 50;
            expected += here;
            CHECK(entries[i] == (here ? &records[i * 3] : NULL));
            if (length % 2) CHECK((tickets[i] & 1) == (here || i == 50));
        }
        CHECK(found == expected);
        if (length < KEYS) CHECK((uintptr_t)entries[length] == UINTPTR_MAX);
    }
    CHECK(lookaside_get_many(b, keys, 3, entries, tickets) == 2);
    lookaside_emit_ticket(b, &records[3], tickets[1]);
    CHECK(SLB_get(b, keys[1]) == &records[3]);
    SLB_destroy(b);
}

/* Through lookaside_inline.h. */
static void *find(SLB *b, lookaside_session *s, uint64_t key) { return lookaside_inline_get(b, s, key, &key, match); }

static void sharing_and_resizing(void) {
    lookaside_options options;
    lookaside_paper_options(&options, sizeof options);
    options.size = SIZE, options.match = match, options.keyhash = hash, options.entryhash = hash, options.indexes = 2;
    size_t capacity = SIZE / 64 * 7;
    SLB *b = lookaside_create(&options), *c = lookaside_share(b, match, hash, hash);
    CHECK(b != NULL && c != NULL);
    CHECK(lookaside_share(b, match, hash, hash) == NULL && strstr(lookaside_last_error(), "taken"));
    record other = {9, 0};
    uint64_t key = 9;
    SLB_emit(b, &records[9]);
    CHECK(SLB_get(c, &key) == NULL);
    SLB_emit(c, &other);
    CHECK(SLB_get(b, &key) == &records[9] && SLB_get(c, &key) == &other);
    lookaside_session *s = lookaside_inline_attach(c);
    CHECK(s != NULL);
    CHECK(find(c, s, 9) == &other && find(b, s, 9) == &records[9]);

    lookaside_counts counts;
    lookaside_get_counts(b, &counts, sizeof counts);
    CHECK(counts.hits == 4 && counts.misses == 1 && counts.emissions == 2 && counts.admissions == 2);
    CHECK(counts.capacity == capacity && counts.bytes == 5 * SIZE);
    struct {
        lookaside_counts known;
        uint64_t newer;
    } later = {.newer = 1};
    lookaside_get_counts(b, &later.known, sizeof later);
    CHECK(later.known.bytes == counts.bytes && later.newer == 0);
    memset(&counts, 0xff, sizeof counts);
    lookaside_get_counts(b, &counts, 8); /* An older caller, who knows the first field only. */
    CHECK(counts.hits == 4 && counts.misses == UINT64_MAX);

    SLB_lock(b, &key);
    CHECK(!lookaside_resize(b, SIZE) && strstr(lookaside_last_error(), "lock"));
    CHECK(!lookaside_clear(b) && strstr(lookaside_last_error(), "lock"));
    SLB_unlock(b, &key);
    CHECK(!lookaside_resize(b, 1));
    CHECK(SLB_get(b, &key) == &records[9]);
    CHECK(lookaside_resize(b, SIZE / 2));
    CHECK(SLB_get(b, &key) == NULL && find(c, s, 9) == NULL);
    SLB_emit(c, &other);
    CHECK(find(c, s, 9) == &other);
    lookaside_get_counts(c, &counts, sizeof counts);
    CHECK(counts.capacity == capacity / 2);
    /* Those of all indexes; the table is as large as it was. */
    CHECK(lookaside_clear(b) && find(c, s, 9) == NULL && lookaside_occupancy(c) == 0);
    lookaside_get_counts(c, &counts, sizeof counts);
    CHECK(counts.capacity == capacity / 2);
    SLB_emit(c, &other);
    SLB_destroy(b);
    CHECK(SLB_get(c, &key) == &other);
    SLB_destroy(c);
}

static void inlined(uint32_t policy) {
    lookaside_options options;
    lookaside_default_options(&options, sizeof options);
    options.size = 64, options.match = match, options.keyhash = hash, options.entryhash = hash;
    options.counters = policy, options.layout = LOOKASIDE_INLINE_LAYOUT, options.monitor = false;
    SLB *b = lookaside_create(&options);
    lookaside_session *s = lookaside_inline_attach(b);
    CHECK(s != NULL);
    void *hottest[7];
    uint8_t temperatures[7];
    for (uint64_t i = 0; i < 7; i++) SLB_emit(b, &records[i]);
    for (int turn = 0; turn < 3000; turn++) {
        for (uint64_t i = 0; i < 10; i++) {
            uint64_t sealed = lookaside_inline_hash(b, i);
            unsigned slot = 7;
            void *likely = lookaside_inline_peek(b, sealed, &slot);
            /* Not compared yet: an entry that is there, and none only for a key that is not. */
            CHECK(likely == NULL ? i >= 7 : (record *)likely >= records && (record *)likely < records + 7);
            CHECK((likely != NULL) == (slot < 7));
            void *expected = i < 7 ? &records[i] : NULL;
            /* The third is asked for more often; both ways find the same. */
            for (int times = 0; times < (i == 3 ? 4 : 1); times++) {
                CHECK(lookaside_inline_get(b, s, i, &i, match) == expected);
            }
            CHECK(SLB_get(b, &i) == expected);
        }
    }
    CHECK(lookaside_hottest(b, hottest, temperatures, 7) == 7);
    if (policy == LOOKASIDE_COUNT_EVERY_HIT) CHECK(temperatures[0] > 250);
    if (policy == LOOKASIDE_COUNT_FALLING) CHECK(temperatures[6] > 5 && temperatures[0] <= 15);
    if (policy == LOOKASIDE_COUNT_NEVER) CHECK(temperatures[0] == 0);
    lookaside_counts counts;
    lookaside_get_counts(b, &counts, sizeof counts);
    CHECK(counts.hits == 3000 * (14 + 3) && counts.misses == 3000 * 6);
    SLB_destroy(b);
}

/* The temperature of a record, where a table holds no more than seven. */
static unsigned temperature_of(SLB *b, const record *which) {
    void *hottest[7];
    uint8_t temperatures[7];
    size_t held = lookaside_hottest(b, hottest, temperatures, 7);
    for (size_t i = 0; i < held; i++) {
        if (hottest[i] == which) return temperatures[i];
    }
    CHECK(!"held");
    return 0;
}

/* A line that counts as the paper's do. */
static lookaside_options one_line_by_the_paper(void) {
    lookaside_options options;
    lookaside_paper_options(&options, sizeof options);
    options.size = 64, options.match = match, options.keyhash = hash, options.entryhash = hash;
    options.layout = LOOKASIDE_INLINE_LAYOUT, options.monitor = false;
    return options;
}

/* As the paper has it: each hit adds one, whichever way it was looked up; where there is no room, it takes one from
 * another. */
static void each_hit_counts(void) {
    lookaside_options options = one_line_by_the_paper();
    SLB *b = lookaside_create(&options);
    lookaside_session *s = lookaside_inline_attach(b);
    CHECK(s != NULL && s->warmest == 256);
    for (uint64_t i = 0; i < 7; i++) SLB_emit(b, &records[i]);
    unsigned expected[7], lost = 0;
    for (int i = 0; i < 7; i++) expected[i] = temperature_of(b, &records[i]);
    for (int turn = 0; turn < 35; turn++) {
        uint64_t all[5] = {3, 4, 9, 3, 5};
        void *keys[5], *entries[5];
        for (int i = 0; i < 5; i++) keys[i] = &all[i];
        CHECK(lookaside_inline_get(b, s, 3, keys[0], match) == &records[3]);
        CHECK(lookaside_inline_get(b, s, 9, keys[2], match) == NULL);
        CHECK(SLB_get(b, keys[0]) == &records[3]);
        CHECK(lookaside_inline_get_many(b, s, keys, 5, entries, sizeof(record), hash, match) == 4);
        CHECK(lookaside_get_many(b, keys, 5, entries, NULL) == 4);
        CHECK(lookaside_inline_get(b, s, 3, keys[0], match) == &records[3]);
        expected[3] += 7, expected[4] += 2, expected[5] += 2;
        /* Wherever a turn ends, and whether or not somebody watches. */
        if (turn % 3 == 1) lookaside_turn(b, s, 1);
        if (turn % 5 == 2) lookaside_monitor(b, turn % 2 == 0);
        for (int i = 0; i < 7; i++) CHECK(temperature_of(b, &records[i]) == expected[i]);
    }
    for (uint64_t key = 3; temperature_of(b, &records[3]) < 255;) {
        CHECK(lookaside_inline_get(b, s, 3, &key, match) != NULL);
    }
    for (uint64_t key = 3, times = 0; times < 20; times++) CHECK(lookaside_inline_get(b, s, 3, &key, match) != NULL);
    for (int i = 0; i < 7; i++) {
        unsigned now = temperature_of(b, &records[i]);
        if (i == 3) {
            CHECK(now == 255);
        } else {
            lost += expected[i] - now;
        }
    }
    CHECK(lost == 20);
    /* Until nobody has any left. */
    for (uint64_t key = 3, times = 0; times < 300; times++) CHECK(lookaside_inline_get(b, s, 3, &key, match) != NULL);
    for (int i = 0; i < 7; i++) CHECK(temperature_of(b, &records[i]) == (i == 3 ? 255 : 0));
    SLB_destroy(b);
}

/* The same, by whom nobody disturbs, and for longer than a turn. */
static void each_hit_of_an_owner_counts(void) {
    lookaside_options options = one_line_by_the_paper();
    lookaside_owned *o = lookaside_owned_create(&options);
    lookaside_session *s = lookaside_owned_attach(o, LOOKASIDE_INLINE_LAYOUT);
    CHECK(s != NULL && s->warmest == 256);
    for (uint64_t key = 0; key < 2; key++) lookaside_owned_emit_key(o, &key, &records[key]);
    void *warmest[2];
    uint8_t temperatures[2];
    for (unsigned times = 2; times <= 255; times++) {
        /* Misses between them, so that a turn ends in the middle. */
        for (uint64_t key = 100; key < 109; key++) CHECK(lookaside_inline_get(o, s, key, &key, match) == NULL);
        uint64_t key = 0;
        void *keys[] = {&key}, *entries[1];
        if (times % 3 == 0) CHECK(lookaside_owned_get_many(o, keys, 1, entries) == 1 && entries[0] == &records[0]);
        else if (times % 3 == 1) CHECK(lookaside_owned_get(o, &key) == &records[0]);
        else CHECK(lookaside_inline_get(o, s, key, &key, match) == &records[0]);
        CHECK(lookaside_owned_hottest(o, warmest, temperatures, 2) == 2 && warmest[0] == &records[0]);
        CHECK(temperatures[0] == times && temperatures[1] == 1);
    }
    uint64_t key = 0;
    CHECK(lookaside_inline_get(o, s, key, &key, match) == &records[0]);
    CHECK(lookaside_owned_hottest(o, warmest, temperatures, 2) == 2 && temperatures[0] == 255 && temperatures[1] == 0);
    lookaside_owned_destroy(o);
}

static void owned(void) {
    lookaside_options options;
    lookaside_default_options(&options, sizeof options);
    options.size = SIZE, options.match = match, options.keyhash = hash, options.entryhash = hash;
    lookaside_owned *o = lookaside_owned_create(&options);
    CHECK(o != NULL);
    lookaside_session *s = lookaside_owned_attach(o, LOOKASIDE_INLINE_LAYOUT);
    CHECK(s != NULL && lookaside_owned_attach(o, 77) == NULL);
    lookaside_owned_monitor(o, false);
    for (int i = 0; i < RECORDS; i++) {
        uint64_t key = (uint64_t)i;
        record other = {key, 0};
        void *keys[2] = {&key, NULL}, *entries[2];
        CHECK(lookaside_owned_get(o, &key) == NULL);
        if (i % 2) lookaside_owned_emit(o, &records[i]);
        else lookaside_owned_emit_key(o, &key, &records[i]);
        CHECK(lookaside_owned_get(o, &key) == &records[i]);
        CHECK(lookaside_inline_get(o, s, key, &key, match) == &records[i]);
        CHECK(lookaside_owned_get_many(o, keys, 2, entries) == 1 && entries[0] == &records[i] && entries[1] == NULL);
        lookaside_owned_update(o, &key, &other);
        CHECK(lookaside_owned_get(o, &key) == &other);
        lookaside_owned_invalidate(o, &key);
        CHECK(lookaside_owned_get(o, &key) == NULL);
        lookaside_owned_update(o, &key, &other);
        CHECK(lookaside_owned_get(o, &key) == NULL);
        lookaside_owned_emit(o, NULL);
        lookaside_owned_emit(o, (void *)((uintptr_t)&other | (uintptr_t)1 << 48));
        lookaside_owned_emit_key(o, NULL, &other);
        lookaside_owned_emit_key(o, &key, &records[i]);
    }
    lookaside_counts counts;
    /* In the middle of a turn: what it was granted and did not use is no hit. */
    lookaside_owned_monitor(o, true);
    lookaside_owned_get_counts(o, &counts, sizeof counts);
    CHECK(counts.hits == RECORDS * 4 && counts.misses == RECORDS * 3 && lookaside_owned_occupancy(o) == RECORDS);
    lookaside_verdict verdict;
    lookaside_owned_get_verdict(o, &verdict, sizeof verdict);
    CHECK(verdict.watching && verdict.on && verdict.on_in_batches && verdict.trials == 0);
    void *warmest = NULL;
    CHECK(lookaside_owned_hottest(o, &warmest, NULL, 1) == 1 && warmest != NULL);
    lookaside_owned_monitor(o, false);
    lookaside_owned_get_verdict(o, &verdict, sizeof verdict);
    CHECK(!verdict.watching && verdict.on);
    uint64_t key = 3;
    CHECK(lookaside_owned_resize(o, 2 * SIZE) && lookaside_owned_get(o, &key) == NULL && !lookaside_owned_resize(o, 0));
    lookaside_owned_emit(o, &records[3]);
    CHECK(lookaside_inline_get(o, s, 3, &key, match) == &records[3]);
    CHECK(lookaside_owned_clear(o) && lookaside_inline_get(o, s, 3, &key, match) == NULL);
    CHECK(lookaside_owned_occupancy(o) == 0);
    lookaside_owned_destroy(o);
}

/* What is known to be even is used as it is. */
static void avalanching(void) {
    lookaside_options options;
    lookaside_default_options(&options, sizeof options);
    options.size = SIZE, options.match = match, options.keyhash = options.entryhash = hash;
    for (int even = 0; even <= 1; even++) {
        options.avalanching = even, options.indexes = 2;
        SLB *b = lookaside_create(&options), *c = lookaside_share(b, match, hash, hash);
        CHECK(b != NULL && c != NULL);
        uint64_t low = 1234567;
        CHECK((lookaside_inline_hash(b, low) == low) == even);
        CHECK((lookaside_inline_hash(c, low) == (low | UINT64_C(1) << 63)) == even);
        record small = {low, 0};
        SLB_emit(b, &small);
        CHECK(SLB_get(b, &low) == &small && SLB_get(c, &low) == NULL);
        SLB_destroy(b), SLB_destroy(c);
    }
}

static void monitor(void) {
    SLB *b = SLB_create(SIZE, match, hash, hash);
    lookaside_verdict verdict;
    lookaside_get_verdict(b, &verdict, sizeof verdict);
    CHECK(verdict.watching && verdict.on && verdict.on_in_batches && verdict.trials == 0);
    /* Told in the middle of a turn: what it was granted and did not use is no hit. */
    uint64_t absent = 0;
    lookaside_counts told;
    CHECK(SLB_get(b, &absent) == NULL);
    lookaside_monitor(b, false);
    lookaside_monitor(b, true);
    lookaside_get_counts(b, &told, sizeof told);
    CHECK(told.hits == 0 && told.misses == 1 && told.bypassed == 0);
    /* An index that answers at once, before which a table can only lose: sooner or later it is switched off. */
    volatile int answer = 0;
    bool off = false;
    for (long done = 0; done < 400000000 && !off; done++) {
        uint64_t key = (uint64_t)done % RECORDS;
        void *entry = SLB_get(b, &key);
        if (entry == NULL) {
            answer++;
            SLB_emit(b, &records[key]);
        } else {
            for (int wait = 0; wait < 100; wait++) answer++; /* A hit that costs. */
        }
        if (done % 100000 == 0) {
            lookaside_get_verdict(b, &verdict, sizeof verdict);
            off = !verdict.on;
        }
    }
    CHECK(off && verdict.switches >= 1 && verdict.trials >= 4);
    /* Batches have not been tried: the same goes for them, by trials of their own. */
    CHECK(verdict.on_in_batches && verdict.gain_in_batches == 0);
    for (long done = 0; done < 400000000 && verdict.on_in_batches; done += 16) {
        uint64_t batch[16];
        void *keys[16], *entries[16];
        for (long i = 0; i < 16; i++) batch[i] = (uint64_t)(done + i) % RECORDS, keys[i] = &batch[i];
        size_t found = lookaside_get_many(b, keys, 16, entries, NULL);
        for (size_t i = 0; i < 100 * found; i++) answer++;
        for (int i = 0; i < 16; i++) {
            if (entries[i] == NULL) SLB_emit(b, &records[batch[i]]);
        }
        if (done % 160000 == 0) lookaside_get_verdict(b, &verdict, sizeof verdict);
    }
    CHECK(!verdict.on_in_batches);
    lookaside_counts counts;
    lookaside_get_counts(b, &counts, sizeof counts);
    CHECK(counts.bypassed > 0 && counts.hits > 0);
    /* While it is off, writes are told all the same: what it replaced is not found when it is on. */
    uint64_t key = 3;
    record other = {key, 0};
    SLB_update(b, &key, &other);
    lookaside_get_verdict(b, &verdict, sizeof verdict);
    CHECK(!verdict.on && !verdict.on_in_batches);
    lookaside_monitor(b, false);
    void *then = SLB_get(b, &key);
    CHECK(then == NULL || then == &other);
    SLB_invalidate(b, &key);
    CHECK(SLB_get(b, &key) == NULL);
    lookaside_get_verdict(b, &verdict, sizeof verdict);
    CHECK(verdict.on && verdict.on_in_batches && !verdict.watching);
    SLB_emit(b, &records[3]);
    CHECK(SLB_get(b, &key) == NULL || SLB_get(b, &key) == &records[3]);
    SLB_emit(b, &records[3]);
    CHECK(SLB_get(b, &key) == &records[3]);
    lookaside_monitor(b, true);
    lookaside_get_verdict(b, &verdict, sizeof verdict);
    CHECK(verdict.watching);
    SLB_destroy(b);
}

static size_t mapped(void) {
    size_t pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm != NULL && fscanf(statm, "%zu", &pages) == 1);
    fclose(statm);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A table that was replaced while its only thread was pinned is unmapped when that has unpinned. */
static void given_back(void) {
    enum { WHOLE = 64 << 20 };
    lookaside_options options;
    lookaside_default_options(&options, sizeof options);
    options.monitor = false, options.pages = LOOKASIDE_PAGES_BASE;
    options.size = WHOLE, options.match = match, options.keyhash = hash, options.entryhash = hash;
    SLB *b = lookaside_create(&options);
    CHECK(b != NULL);
    size_t whole = mapped();
    lookaside_pin(b);
    CHECK(lookaside_resize(b, SIZE));
    uint64_t key = 1;
    CHECK(SLB_get(b, &key) == NULL);
    CHECK(mapped() + WHOLE / 2 > whole);
    lookaside_unpin(b);
    size_t now = whole;
    for (int round = 0; round < 1000 && now + WHOLE / 2 > whole; round++) {
        lookaside_pin(b), lookaside_unpin(b);
        now = mapped();
    }
    CHECK(now + WHOLE / 2 <= whole);
    SLB_destroy(b);
}

static void no_memory(void) {
    struct rlimit limit = {1u << 30, 1u << 30};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(SLB_create((size_t)16 << 30, match, hash, hash) == NULL && strstr(lookaside_last_error(), "memory"));
    SLB *b = SLB_create(SIZE, match, hash, hash);
    uint64_t key = 1;
    CHECK(b != NULL);
    SLB_emit(b, &records[1]);
    CHECK(!lookaside_resize(b, (size_t)16 << 30) && SLB_get(b, &key) == &records[1]);
    SLB_destroy(b);
}

int main(void) {
    CHECK(*lookaside_last_error() == '\0');
    for (uint64_t i = 0; i < RECORDS; i++) records[i] = (record){i, i * i};
    nothing();
    figure4();
    tickets_and_pins();
    batches();
    addresses();
    sharing_and_resizing();
    inlined(LOOKASIDE_COUNT_FALLING);
    inlined(LOOKASIDE_COUNT_EVERY_HIT);
    inlined(LOOKASIDE_COUNT_NEVER);
    each_hit_counts();
    each_hit_of_an_owner_counts();
    owned();
    avalanching();
    monitor();
    given_back();
    no_memory();
    puts("every function: as it says");
}
