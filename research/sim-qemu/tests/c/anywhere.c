/* The same program on a real processor and on the simulated one: anywhere software|hardware. It finds what it inserted,
 * where it inserted it last; it finds no other key's record for its own, and of two indexes none the other's. */
#include <stdio.h>
#include <string.h>

#include "../../../../crates/capi/tests/c/check.h"
#include "stlt_anywhere.h"

enum { RECORDS = 1000, ROWS = 1 << 12 };

struct record {
    uint64_t key;
};

static uint64_t hash(uint64_t key) { return (key + 1) * UINT64_C(0x9e3779b97f4a7c15); }

/* The paper's lookup, without an index behind it. */
static struct record *find(struct stlt *table, uint64_t key) {
    struct record *record = (struct record *)stlt_anywhere_load(table, hash(key));
    return record && record->key == key ? record : NULL;
}

static void insert(struct stlt *table, struct record *record) {
    stlt_anywhere_insert(table, hash(record->key), record);
}

/* How many of the keys from `first` on are answered with anything. */
static int answered(struct stlt *table, uint64_t first) {
    int count = 0;
    for (uint64_t key = first; key < first + RECORDS; key++) count += stlt_anywhere_load(table, hash(key)) != NULL;
    return count;
}

/* Two indexes with the same keys share a table: what either finds is its own record, or nothing. */
static int two_indexes(unsigned ways) {
    static struct record records[2][RECORDS];
    const unsigned bits = 1;
    struct stlt table;
    CHECK(stlt_anywhere_open(&table, ROWS, ways, STLT_FULL));
    for (uint64_t key = 0; key < RECORDS; key++) {
        for (uint64_t index = 0; index < 2; index++) {
            struct record *record = &records[index][key];
            record->key = key;
            stlt_anywhere_insert(&table, stlt_with_table(hash(key), index, bits), record);
            CHECK(stlt_anywhere_load(&table, stlt_with_table(hash(key), index, bits)) == record);
        }
    }
    int found = 0;
    for (uint64_t key = 0; key < RECORDS; key++) {
        for (uint64_t index = 0; index < 2; index++) {
            uint64_t integer = stlt_with_table(hash(key), index, bits);
            struct record *record = (struct record *)stlt_anywhere_load(&table, integer);
            CHECK(!record || record->key != key || record == &records[index][key]);
            found += record == &records[index][key];
        }
    }
    /* In hardware the two of a key are in one set: of one row, it has the last. */
    CHECK(found > (ways == 1 ? RECORDS / 2 : RECORDS));
    stlt_anywhere_close(&table);
    return 0;
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    bool hardware = strcmp(arguments[1], "hardware") == 0;
    static struct record records[RECORDS], moved[RECORDS];
    /* Of as many keys that were never inserted, a few share a sub-integer with one that was. */
    const int few = RECORDS / 100;
    for (unsigned ways = 1; ways <= 8; ways *= 2) {
        struct stlt table;
        CHECK(stlt_anywhere_open(&table, ROWS, ways, STLT_FULL) && table.simulated == hardware);
        CHECK(answered(&table, 0) == 0);
        int found = 0, replaced = 0;
        for (int i = 0; i < RECORDS; i++) {
            records[i].key = moved[i].key = (uint64_t)i;
            insert(&table, &records[i]);
            CHECK(find(&table, (uint64_t)i) == &records[i]);
        }
        for (int i = 0; i < RECORDS; i++) found += find(&table, (uint64_t)i) == &records[i];
        CHECK(found > RECORDS * 3 / 4);
        CHECK(answered(&table, RECORDS) <= few);
        for (int i = 0; i < RECORDS; i++) CHECK(!find(&table, (uint64_t)(RECORDS + i)));
        /* Where they are now; never where they were. */
        for (int i = 0; i < RECORDS; i++) insert(&table, &moved[i]);
        for (int i = 0; i < RECORDS; i++) {
            struct record *record = find(&table, (uint64_t)i);
            CHECK(record != &records[i]);
            replaced += record == &moved[i];
        }
        CHECK(replaced > RECORDS * 3 / 4);
        /* To forget what is not there takes nobody's place. */
        int before = answered(&table, 0);
        for (int i = 0; i < RECORDS; i++) stlt_anywhere_insert(&table, hash((uint64_t)(RECORDS + i)), NULL);
        CHECK(before - answered(&table, 0) <= few);
        stlt_anywhere_insert(&table, hash(7), NULL);
        CHECK(stlt_anywhere_load(&table, hash(7)) == NULL);
        stlt_anywhere_close(&table);
        CHECK(two_indexes(ways) == 0);
    }
    /* The number is the lowest bits, and no more than 12. */
    CHECK(stlt_with_table(UINT64_MAX, 5, 3) == UINT64_MAX - 2 && stlt_with_table(0, 13, 3) == 5);
    CHECK(stlt_with_table(UINT64_MAX, 0, 64) == UINT64_MAX << 12 && stlt_with_table(7, 1, 0) == 7);
    struct stlt table;
    CHECK(!stlt_anywhere_open(&table, 1000, 4, STLT_FULL));
    CHECK(!stlt_anywhere_open(&table, ROWS, 3, STLT_FULL));
    CHECK(!stlt_anywhere_open(&table, UINT64_C(1) << 60, 4, STLT_FULL));
    return 0;
}
