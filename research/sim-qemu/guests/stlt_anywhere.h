/* The search translation lookaside table on any processor: the simulated one's instructions where they are (stlt.h), and
 * STLT-SW, the table that the library keeps in software (lookaside.h, LOOKASIDE_TABLE_STLT), where they are not.
 *
 *     struct stlt table;
 *     if (!stlt_anywhere_open(&table, rows, 4, STLT_FULL)) ...     // no such shape, or no memory
 *     record = stlt_anywhere_load(&table, hash(key));              // NULL, or a record: of this key, perhaps
 *     stlt_anywhere_insert(&table, hash(key), record);             // NULL: forget
 *     stlt_anywhere_close(&table);
 *
 *     cc program.c $(pkg-config --cflags --libs lookaside)
 *
 * One thread uses a table: where there is the hardware, the program's first. The choice is a branch for each call. A program that only ever runs under the simulator uses
 * stlt.h, pays for none, and needs no library.
 */
#ifndef STLT_ANYWHERE_H
#define STLT_ANYWHERE_H

#include <lookaside.h>

#include "stlt.h"

struct stlt {
    lookaside_owned *software; /* NULL: the hardware. */
};

/* What stlt_open() has said, in all parts of a program: 1 none is there, 2 one is. */
__attribute__((weak)) int stlt_opened_;

/* Whether the hardware is there. */
static inline bool stlt_anywhere_is_simulated(void) {
    if (stlt_opened_ == 0) stlt_opened_ = stlt_open() ? 2 : 1;
    return stlt_opened_ == 2;
}

/* As in hardware, whatever stands in the integer's row is the answer: the caller compares keys. */
static inline bool stlt_any_(void *entry, void *integer) {
    (void)entry;
    (void)integer;
    return true;
}

static inline uint64_t stlt_integer_(void *integer) { return *(const uint64_t *)integer; }

static inline lookaside_owned *stlt_software_open_(uint64_t rows, unsigned ways) {
    const uint64_t row = 16, line = 4;
    if (rows < ways || (rows & (rows - 1)) || rows > SIZE_MAX / row) return NULL;
    lookaside_options options;
    lookaside_default_options(&options, sizeof options);
    options.table = LOOKASIDE_TABLE_STLT;
    options.size = (size_t)((rows < line ? line : rows) * row);
    options.ways = ways;
    options.match = stlt_any_;
    options.keyhash = stlt_integer_;
    options.monitor = false;
    return lookaside_owned_create(&options);
}

/* False without memory, or if the shape is impossible: rows are a power of two, ways 1, 2, 4 or 8. One table in a process, if
 * it is simulated: false for another. */
static inline bool stlt_anywhere_open(struct stlt *table, uint64_t rows, unsigned ways, enum stlt_variant variant) {
    table->software = NULL;
    if (stlt_anywhere_is_simulated()) return stlt_alloc(rows, ways, variant);
    table->software = stlt_software_open_(rows, ways);
    return table->software != NULL;
}

/* Ends a table that was opened. */
static inline void stlt_anywhere_close(struct stlt *table) {
    if (table->software) {
        lookaside_owned_destroy(table->software);
    } else {
        stlt_free();
    }
}

static inline void *stlt_anywhere_load(struct stlt *table, uint64_t integer) {
    return table->software ? lookaside_owned_get(table->software, &integer) : stlt_load_va(integer);
}

static inline void stlt_anywhere_insert(struct stlt *table, uint64_t integer, const void *address) {
    if (table->software) {
        /* As in hardware, a newcomer replaces the row of its sub-integer; NULL is no entry. */
        lookaside_owned_invalidate(table->software, &integer);
        lookaside_owned_emit_key(table->software, &integer, (void *)(uintptr_t)address);
    } else {
        stlt_insert(integer, address);
    }
}

#endif
