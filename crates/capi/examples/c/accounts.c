/* Accounts that threads read while one of them writes: a hit takes no lock.
 *
 *     accounts [READERS]
 *
 * The index is a tree of the C library under a lock for readers and a writer. Readers go by tickets (lookaside.h, 3):
 *
 *     pin; get: a hit needs no lock of the tree; a miss searches under it, and emits with its ticket; unpin.
 *
 * The writer replaces accounts: it begins a write, changes the tree, ends the write, and retires the old account, which
 * is freed when all readers that may have found it have unpinned. Balances only rise: a reader that saw one fall would
 * have been given an account that was replaced before it looked, and the program would say so. */
#define _GNU_SOURCE 1
#include <inttypes.h>
#include <pthread.h>
#include <search.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include <lookaside.h>

enum { ACCOUNTS = 10000, PAYMENTS = 20000, MOST_READERS = 64, BUFFER_BYTES = 1 << 18 };

/* An entry: it does not change. Another takes its place. */
typedef struct account {
    uint64_t number, balance;
} account;

static SLB *slb;
static void *tree;
static pthread_rwlock_t tree_lock = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool paid;
static atomic_uint_fast64_t wrong;

static uint64_t hash_of_number(void *number) { return *(uint64_t *)number; }
static uint64_t hash_of_account(void *entry) { return ((account *)entry)->number; }
static bool match(void *entry, void *number) { return ((account *)entry)->number == *(uint64_t *)number; }
static void free_account(void *entry, void *context) { (void)context, free(entry); }

static int by_number(const void *a, const void *b) {
    uint64_t x = ((const account *)a)->number, y = ((const account *)b)->number;
    return (x > y) - (x < y);
}

static account *new_account(uint64_t number, uint64_t balance) {
    account *made = malloc(sizeof *made);
    if (!made) abort();
    *made = (account){number, balance};
    return made;
}

/* Every other number is one of a few. */
static uint64_t next_number(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return *state % (*state >> 63 ? ACCOUNTS : ACCOUNTS / 100);
}

/* The balance of an account. The account is not to be touched after lookaside_unpin(). */
static uint64_t balance_of(uint64_t number) {
    lookaside_ticket ticket;
    lookaside_pin(slb);
    account *found = lookaside_get(slb, &number, &ticket);
    if (!found) {
        account sought = {number, 0};
        pthread_rwlock_rdlock(&tree_lock);
        account **at = tfind(&sought, &tree, by_number);
        found = at ? *at : NULL;
        pthread_rwlock_unlock(&tree_lock);
        if (found) lookaside_emit_ticket(slb, found, ticket);
    }
    uint64_t balance = found ? found->balance : 0;
    lookaside_unpin(slb);
    return balance;
}

static void pay_in(uint64_t number) {
    account sought = {number, 0}, *old = NULL, *new = NULL;
    lookaside_write_begin(slb, &number);
    pthread_rwlock_wrlock(&tree_lock);
    account **at = tfind(&sought, &tree, by_number);
    if (at) {
        old = *at;
        *at = new = new_account(number, old->balance + 1);
    }
    pthread_rwlock_unlock(&tree_lock);
    lookaside_write_end(slb, &number, new);
    if (old) lookaside_retire(slb, old, free_account, NULL);
}

static void *read_accounts(void *seed) {
    uint64_t state = (uintptr_t)seed, *seen = calloc(ACCOUNTS, sizeof *seen);
    while (seen && !atomic_load(&paid)) {
        uint64_t number = next_number(&state), balance = balance_of(number);
        if (balance < seen[number]) atomic_fetch_add(&wrong, 1);
        seen[number] = balance;
    }
    free(seen);
    return NULL;
}

int main(int count, char **arguments) {
    int readers = count > 1 ? atoi(arguments[1]) : 2;
    if (readers < 0 || readers > MOST_READERS) return fprintf(stderr, "accounts [READERS]\n"), 2;
    slb = SLB_create(BUFFER_BYTES, match, hash_of_number, hash_of_account);
    if (!slb) return fprintf(stderr, "accounts: %s\n", lookaside_last_error()), 1;
    for (uint64_t i = 0; i < ACCOUNTS; i++) {
        /* In an order that keeps the tree shallow, whether it balances itself or not. */
        if (!tsearch(new_account(i * 7919 % ACCOUNTS, 1), &tree, by_number)) abort();
    }

    pthread_t threads[MOST_READERS];
    for (int i = 0; i < readers; i++) {
        if (pthread_create(&threads[i], NULL, read_accounts, (void *)(uintptr_t)(i + 2))) abort();
    }
    uint64_t state = 1, sum = 0;
    for (int i = 0; i < PAYMENTS; i++) pay_in(next_number(&state));
    atomic_store(&paid, true);
    for (int i = 0; i < readers; i++) pthread_join(threads[i], NULL);

    for (uint64_t number = 0; number < ACCOUNTS; number++) sum += balance_of(number);
    lookaside_counts counts;
    lookaside_get_counts(slb, &counts, sizeof counts);
    printf("%d paid in, %" PRIu64 " wrong answers\n", (int)(sum - ACCOUNTS), (uint64_t)atomic_load(&wrong));
    fprintf(stderr, "%" PRIu64 " hits, %" PRIu64 " misses\n", counts.hits, counts.misses);
    SLB_destroy(slb);
    tdestroy(tree, free);
    return wrong != 0;
}
