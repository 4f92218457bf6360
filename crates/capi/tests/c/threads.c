/* Readers and writers at once, with tickets and with locks, while the table is resized:
 * what is found is never freed memory, never another key's, and never older than what the same thread has seen before,
 * or than the last write that had ended before it looked. At the end everything retired has been freed, also if
 * threads outlive the buffer. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "check.h"
#include "lookaside_inline.h"

enum { KEYS = 2048, CHANGES = 20000, READERS = 3, WRITERS = 2, BATCH = 16 };

typedef struct record {
    uint64_t key;
    uint64_t version;
} record;

/* The index: what a search finds. A key that was taken out is NULL. */
static _Atomic(record *) slots[KEYS];
/* The version of the last write that has ended. */
static atomic_uint_fast64_t ended[KEYS];
static atomic_long retired, freed, hits, writers_left;
/* Seconds for which the writers wait for the readers, who may have few of a busy machine's. */
enum { PATIENCE = 240 };
static time_t begun;
static SLB *b;
static pthread_barrier_t barrier;
enum way { TICKETS, INLINED, BATCHES, LOCKS };

static bool match(void *entry, void *key) { return ((record *)entry)->key == *(uint64_t *)key; }
static uint64_t hash_of_key(void *key) { return *(uint64_t *)key; }
static uint64_t hash_of_entry(void *entry) { return ((record *)entry)->key; }

static void free_record(void *entry, void *context) {
    CHECK(context == &freed);
    memset(entry, 0xee, sizeof(record));
    free(entry);
    atomic_fetch_add(&freed, 1);
}

static uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state;
}

static void check(record *found, uint64_t key, uint64_t *seen, uint64_t least) {
    if (!found) return;
    CHECK(found->key == key);
    uint64_t version = found->version;
    CHECK(version >= least); /* Not older than what had been written before we looked. */
    CHECK(version >= *seen);
    *seen = version;
}

struct reader {
    enum way way;
    uint64_t seed;
};

static void *read_on(void *argument) {
    struct reader *self = argument;
    static _Thread_local uint64_t seen[KEYS];
    uint64_t state = self->seed;
    lookaside_session *session = lookaside_inline_attach(b);
    pthread_barrier_wait(&barrier);
    while (atomic_load(&writers_left) > 0) {
        uint64_t key = next_random(&state) % (next_random(&state) % KEYS + 1);
        uint64_t least = atomic_load(&ended[key]);
        record *found;
        lookaside_ticket ticket;
        switch (self->way) {
        case TICKETS:
        case INLINED:
            lookaside_pin(b);
            found = self->way == TICKETS ? lookaside_get(b, &key, &ticket)
                                         : lookaside_inline_get(b, session, key, &key, match);
            if (found) atomic_fetch_add_explicit(&hits, 1, memory_order_relaxed);
            else {
                if (self->way == INLINED) ticket = lookaside_ticket_take(b, &key);
                found = atomic_load(&slots[key]);
                if (found) lookaside_emit_ticket(b, found, ticket);
            }
            check(found, key, &seen[key], least);
            lookaside_unpin(b);
            break;
        case LOCKS:
            SLB_lock(b, &key);
            found = SLB_get(b, &key);
            if (found) CHECK(found == atomic_load(&slots[key])); /* Nobody writes meanwhile. */
            else {
                found = atomic_load(&slots[key]);
                if (found) SLB_emit(b, found);
            }
            check(found, key, &seen[key], least);
            SLB_unlock(b, &key);
            break;
        case BATCHES: {
            uint64_t numbers[BATCH], leasts[BATCH];
            void *keys[BATCH], *entries[BATCH];
            lookaside_ticket tickets[BATCH];
            for (int i = 0; i < BATCH; i++) {
                numbers[i] = next_random(&state) % (next_random(&state) % KEYS + 1);
                keys[i] = &numbers[i];
                leasts[i] = atomic_load(&ended[numbers[i]]);
            }
            lookaside_pin(b);
            lookaside_get_many(b, keys, BATCH, entries, tickets);
            for (int i = 0; i < BATCH; i++) {
                /* Of several equal keys, later ones may be older answers: compare each with what was so when it began.
                 */
                uint64_t before = seen[numbers[i]];
                if (entries[i]) check(entries[i], numbers[i], &before, leasts[i]);
            }
            for (int i = 0; i < BATCH; i++) {
                if (entries[i]) continue;
                found = atomic_load(&slots[numbers[i]]);
                if (found) lookaside_emit_ticket(b, found, tickets[i]);
            }
            lookaside_unpin(b);
            break;
        }
        }
    }
    return NULL;
}

static void *write_on(void *argument) {
    uint64_t which = *(uint64_t *)argument, state = which * 7919 + 1;
    pthread_barrier_wait(&barrier);
    /* So many, and on until the readers have seen something of it. */
    for (uint64_t done = 1;
         done <= CHANGES ||
         (atomic_load(&hits) < 1000 && time(NULL) - begun < PATIENCE);
         done++) {
        /* Each writer has its own keys: so their versions rise. */
        uint64_t key = next_random(&state) % (KEYS / WRITERS) * WRITERS + which;
        record *new = NULL, *old;
        if (done % 4 != 0) {
            new = malloc(sizeof *new);
            *new = (record){key, done};
        }
        if (done % 2 == 0) { /* As a write of the ticket protocol... */
            lookaside_write_begin(b, &key);
            old = atomic_exchange(&slots[key], new);
            lookaside_write_end(b, &key, new);
        } else { /* ... and as one of the paper's. */
            SLB_lock(b, &key);
            SLB_invalidate(b, &key);
            old = atomic_exchange(&slots[key], new);
            if (new) SLB_update(b, &key, new);
            SLB_unlock(b, &key);
        }
        atomic_store(&ended[key], done);
        if (old) {
            atomic_fetch_add(&retired, 1);
            lookaside_retire(b, old, free_record, &freed);
        }
    }
    atomic_fetch_sub(&writers_left, 1);
    return NULL;
}

static void *resize_on(void *unused) {
    (void)unused;
    for (size_t turn = 0; atomic_load(&writers_left) > 0; turn++) {
        /* Small enough that entries are thrown out. */
        CHECK(lookaside_resize(b, 64 * (8 + turn % 60)));
        lookaside_counts counts;
        lookaside_pin(b);
        lookaside_get_counts(b, &counts, sizeof counts);
        CHECK(lookaside_occupancy(b) <= counts.capacity);
        lookaside_unpin(b);
    }
    return NULL;
}

static void together(uint32_t counters) {
    lookaside_options options;
    lookaside_default_options(&options, sizeof options);
    options.size = 1024, options.match = match, options.keyhash = hash_of_key, options.entryhash = hash_of_entry;
    options.pages = LOOKASIDE_PAGES_BASE, options.monitor = false, options.counters = counters;
    b = lookaside_create(&options);
    CHECK(b != NULL);
    struct reader readers[READERS + 1] = {{TICKETS, 1}, {INLINED, 2}, {BATCHES, 3}, {LOCKS, 4}};
    uint64_t writers[WRITERS] = {0, 1};
    pthread_t threads[READERS + WRITERS + 2];
    int count = 0;
    CHECK(pthread_barrier_init(&barrier, NULL, WRITERS + READERS + 1) == 0);
    atomic_store(&writers_left, WRITERS);
    begun = time(NULL);
    for (int i = 0; i < WRITERS; i++) CHECK(pthread_create(&threads[count++], NULL, write_on, &writers[i]) == 0);
    for (int i = 0; i <= READERS; i++) CHECK(pthread_create(&threads[count++], NULL, read_on, &readers[i]) == 0);
    CHECK(pthread_create(&threads[count++], NULL, resize_on, NULL) == 0);
    for (int i = 0; i < count; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pthread_barrier_destroy(&barrier) == 0);
    lookaside_counts counts;
    lookaside_get_counts(b, &counts, sizeof counts);
    CHECK(counts.hits > 0 && counts.misses > 0 && counts.admissions > 0 && counts.invalidations >= WRITERS * CHANGES);
    CHECK(atomic_load(&hits) > 0 && counts.hits >= (uint64_t)atomic_load(&hits));
    SLB_destroy(b);
    CHECK(atomic_load(&retired) > 0 && atomic_load(&freed) == atomic_load(&retired));
    for (int i = 0; i < KEYS; i++) {
        free(atomic_load(&slots[i]));
        atomic_store(&slots[i], NULL);
        atomic_store(&ended[i], 0);
    }
    atomic_store(&hits, 0);
}

/* Threads that end after the buffer has, and threads that go from buffer to buffer. */
static void *outlive(void *unused) {
    (void)unused;
    for (int turn = 0; turn < 20; turn++) {
        pthread_barrier_wait(&barrier); /* The buffer is there. */
        uint64_t key = 1;
        record *mine = malloc(sizeof *mine);
        *mine = (record){1, 0};
        lookaside_pin(b);
        SLB_get(b, &key);
        atomic_fetch_add(&retired, 1);
        lookaside_retire(b, mine, free_record, &freed);
        if (turn % 2) lookaside_unpin(b); /* And if it was forgotten. */
        pthread_barrier_wait(&barrier); /* Last call made. */
    }
    return NULL;
}

static void one_after_the_other(void) {
    pthread_t threads[2];
    CHECK(pthread_barrier_init(&barrier, NULL, 3) == 0);
    for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, outlive, NULL) == 0);
    for (int turn = 0; turn < 20; turn++) {
        b = SLB_create(4096, match, hash_of_key, hash_of_entry);
        CHECK(b != NULL);
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        SLB_destroy(b);
        CHECK(atomic_load(&freed) == atomic_load(&retired));
    }
    for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

/* A call from a thread's own destructors, some of which run after the library's. */
static pthread_key_t last_will;

static void call_late(void *buffer) {
    uint64_t key = 1;
    for (int turn = 0; turn < 2; turn++) {
        SLB_lock(buffer, &key);
        SLB_emit(buffer, &slots[0]);
        SLB_unlock(buffer, &key);
        lookaside_pin(buffer), lookaside_unpin(buffer);
    }
    CHECK(!lookaside_resize(buffer, 1) && lookaside_last_error() != NULL);
}

static uint64_t constant(void *opaque) {
    (void)opaque;
    return 1;
}

static void *end_late(void *buffer) {
    CHECK(pthread_setspecific(last_will, buffer) == 0);
    uint64_t key = 1;
    SLB_get(buffer, &key);
    return NULL;
}

static void late_calls(void) {
    CHECK(pthread_key_create(&last_will, call_late) == 0);
    SLB *late = SLB_create(4096, match, constant, constant);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, end_late, late) == 0 && pthread_join(thread, NULL) == 0);
    SLB_destroy(late);
}

int main(void) {
    together(LOOKASIDE_COUNT_FALLING);
    together(LOOKASIDE_COUNT_EVERY_HIT);
    one_after_the_other();
    late_calls();
    puts("threads: nothing stale, nothing lost");
}
