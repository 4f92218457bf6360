/* A program for the simulated processor, on a real one: the table in software answers with what was inserted, or with nothing. */
#include <stdio.h>

#include "stlt_anywhere.h"

#define CHECK(condition)                                                        \
    do {                                                                        \
        if (!(condition)) {                                                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
            return 1;                                                           \
        }                                                                       \
    } while (0)

enum { RECORDS = 1000, ROWS = 1 << 12 };

static uint64_t mixed(uint64_t number) { return (number + 1) * UINT64_C(0x9e3779b97f4a7c15); }

int main(void) {
    static uint64_t records[RECORDS];
    for (unsigned ways = 1; ways <= 8; ways *= 2) {
        struct stlt table;
        CHECK(stlt_anywhere_open(&table, ROWS, ways, STLT_FULL) && !table.simulated);
        unsigned found = 0;
        for (int i = 0; i < RECORDS; i++) {
            CHECK(stlt_anywhere_load(&table, mixed(i)) == NULL || ways == 1);
            stlt_anywhere_insert(&table, mixed(i), &records[i]);
            CHECK(stlt_anywhere_load(&table, mixed(i)) == &records[i]);
        }
        for (int i = 0; i < RECORDS; i++) found += stlt_anywhere_load(&table, mixed(i)) == &records[i];
        CHECK(found > RECORDS * 3 / 4);
        /* The newer one; and then none. To forget what is not there takes nobody's place. */
        stlt_anywhere_insert(&table, mixed(7), &records[8]);
        CHECK(stlt_anywhere_load(&table, mixed(7)) == &records[8]);
        stlt_anywhere_insert(&table, mixed(7), NULL);
        CHECK(stlt_anywhere_load(&table, mixed(7)) == NULL);
        unsigned before = 0, after = 0;
        for (int i = 0; i < RECORDS; i++) before += stlt_anywhere_load(&table, mixed(i)) != NULL;
        for (int i = 0; i < RECORDS; i++) stlt_anywhere_insert(&table, mixed(RECORDS + i), NULL);
        for (int i = 0; i < RECORDS; i++) after += stlt_anywhere_load(&table, mixed(i)) != NULL;
        CHECK(after == before);
        free(table.software.rows);
    }
    struct stlt table;
    CHECK(!stlt_anywhere_open(&table, 1000, 4, STLT_FULL));
    CHECK(!stlt_anywhere_open(&table, UINT64_C(1) << 60, 4, STLT_FULL));
    return 0;
}
