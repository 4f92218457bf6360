/* The search translation lookaside table on any processor: the simulated one's instructions where they are (stlt.h),
 * and STLT-SW, the same table kept by the program itself (stlt_software.h), where they are not.
 *
 *     struct stlt table;
 *     if (!stlt_anywhere_open(&table, rows, 4, STLT_FULL)) ...     // no such shape, or no memory
 *     record = stlt_anywhere_load(&table, hash(key));              // NULL, or a record: of this key, perhaps
 *     stlt_anywhere_insert(&table, hash(key), record);             // NULL: forget
 *     stlt_anywhere_close(&table);
 *
 * One thread uses a table: where there is the hardware, the program's first. The choice is a branch for each call. A
 * program that only ever runs under the simulator uses stlt.h, and pays for none.
 */
#ifndef STLT_ANYWHERE_H
#define STLT_ANYWHERE_H

#include "stlt.h"
#include "stlt_software.h"

struct stlt {
    bool simulated;
    struct stlt_software software; /* Where it is not. */
};

/* What stlt_open() has said, in all parts of a program: 1 none is there, 2 one is. */
__attribute__((weak)) int stlt_opened_;

/* Whether the hardware is there. */
static inline bool stlt_anywhere_is_simulated(void) {
    if (stlt_opened_ == 0) stlt_opened_ = stlt_open() ? 2 : 1;
    return stlt_opened_ == 2;
}

/* False without memory, or if the shape is impossible: rows are a power of two, ways 1, 2, 4 or 8. One table in a
 * process, if it is simulated: false for another. */
static inline bool stlt_anywhere_open(struct stlt *table, uint64_t rows, unsigned ways, enum stlt_variant variant) {
    memset(table, 0, sizeof *table);
    table->simulated = stlt_anywhere_is_simulated();
    return table->simulated ? stlt_alloc(rows, ways, variant) : stlt_software_open(&table->software, rows, ways);
}

/* Ends a table that was opened. */
static inline void stlt_anywhere_close(struct stlt *table) {
    if (table->simulated) {
        stlt_free();
    } else {
        stlt_software_close(&table->software);
    }
}

static inline void *stlt_anywhere_load(struct stlt *table, uint64_t integer) {
    return table->simulated ? stlt_load_va(integer) : stlt_software_load(&table->software, integer);
}

static inline void stlt_anywhere_insert(struct stlt *table, uint64_t integer, const void *address) {
    if (table->simulated) {
        stlt_insert(integer, address);
    } else {
        stlt_software_insert(&table->software, integer, address);
    }
}

#endif
