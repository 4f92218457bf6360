/* STLT-SW (section IV-E of the paper, Figure 19): the same table kept by the program itself, with ordinary
 * loads and stores, for comparison with the hardware.
 *
 *   row:   63        60 59            48 47                       0   63                     0
 *         +------------+----------------+--------------------------+  +----------------------+
 *         |  counter   |  sub-integer   |      virtual address     |  |  room for an entry   |
 *         +------------+----------------+--------------------------+  +----------------------+
 *
 * As in hardware: a set is chosen by the integer's bits above its lowest 12, which are compared; a hit raises
 * the counter with probability 2^-counter; a newcomer replaces the row of its sub-integer, a free one, or that of the
 * smallest counter. The second word is kept, though software has no use for it: so that the table takes the same
 * lines.
 *
 * It is compiled into the lookup, as lookaside_inline.h is: what is compared are tables, not ways to call them. One
 * asked by calls with callbacks was tried: it takes 170 instructions more, and half as many cycles again. Rust has the
 * same in `research/stlt-sw`.
 */
#ifndef STLT_SOFTWARE_H
#define STLT_SOFTWARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct stlt_row {
    uint64_t word, unused;
};

struct stlt_software {
    struct stlt_row *rows;
    uint64_t sets_mask;
    unsigned ways;
    uint64_t random;
};

#define STLT_ADDRESS_ ((UINT64_C(1) << 48) - 1)

/* False without memory, or if the shape is impossible. */
static inline bool stlt_software_open(struct stlt_software *table, uint64_t rows, unsigned ways) {
    if (ways == 0 || ways > 8 || (ways & (ways - 1)) || rows < ways || (rows & (rows - 1))) return false;
    if (rows > SIZE_MAX / sizeof(struct stlt_row)) return false;
    void *memory;
    if (posix_memalign(&memory, 4096, rows * sizeof(struct stlt_row)) != 0) return false;
    memset(memory, 0, rows * sizeof(struct stlt_row));
    table->rows = (struct stlt_row *)memory;
    table->sets_mask = rows / ways - 1;
    table->ways = ways;
    table->random = UINT64_C(0x2545f4914f6cdd1d);
    return true;
}

/* Ends a table that was opened. */
static inline void stlt_software_close(struct stlt_software *table) { free(table->rows); }

static inline struct stlt_row *stlt_software_set_(const struct stlt_software *table, uint64_t integer) {
    return table->rows + ((integer >> 12) & table->sets_mask) * table->ways;
}

static inline void *stlt_software_load(struct stlt_software *table, uint64_t integer) {
    struct stlt_row *set = stlt_software_set_(table, integer);
    for (unsigned way = 0; way < table->ways; way++) {
        uint64_t word = set[way].word;
        if ((((word >> 48) ^ integer) & 0xfff) == 0 && (word & STLT_ADDRESS_) != 0) {
            /* xorshift (Marsaglia, 2003): of a 4-bit counter the last draw is one of 2^15. */
            table->random ^= table->random << 13;
            table->random ^= table->random >> 7;
            table->random ^= table->random << 17;
            unsigned counter = (unsigned)(word >> 60);
            if ((table->random & ((UINT64_C(1) << counter) - 1)) == 0) {
                set[way].word = (word & (UINT64_MAX >> 4)) | (uint64_t)((counter + 1) & 15) << 60;
            }
            return (void *)(uintptr_t)(word & STLT_ADDRESS_);
        }
    }
    return NULL;
}

static inline void stlt_software_insert(struct stlt_software *table, uint64_t integer, const void *address) {
    struct stlt_row *set = stlt_software_set_(table, integer);
    unsigned victim = 0;
    uint64_t least = UINT64_MAX;
    bool known = false;
    for (unsigned way = 0; way < table->ways; way++) {
        uint64_t word = set[way].word;
        bool used = (word & STLT_ADDRESS_) != 0;
        if (used && (((word >> 48) ^ integer) & 0xfff) == 0) {
            victim = way;
            known = true;
            break;
        }
        uint64_t temperature = used ? 1 + (word >> 60) : 0;
        if (temperature < least) {
            least = temperature;
            victim = way;
        }
    }
    if (!known && !address) return; /* Nothing to forget, and nobody's place to take for it. */
    set[victim].word = address ? (integer & 0xfff) << 48 | ((uint64_t)(uintptr_t)address & STLT_ADDRESS_) : 0;
}

#endif
