/* Accesses whose misses are known: misses PATTERN ROUNDS, over a matrix of 1024 rows of 1024 words of 4 bytes.
 *
 * One round warms the caches, ROUNDS are measured. What a round costs besides its accesses is a few words on the
 * stack. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "stlt.h"

enum { SIDE = 1024, WORDS = SIDE * SIDE };

static void round_of(const char *pattern, volatile uint32_t *words, uint64_t *state) {
    if (strcmp(pattern, "rows") == 0) {
        for (int row = 0; row < SIDE; row++)
            for (int column = 0; column < SIDE; column++) (void)words[row * SIDE + column];
    } else if (strcmp(pattern, "columns") == 0) {
        for (int column = 0; column < SIDE; column++)
            for (int row = 0; row < SIDE; row++) (void)words[row * SIDE + column];
    } else {
        /* Anywhere in three quarters: reads, or writes. */
        int writes = strcmp(pattern, "writes") == 0;
        for (int access = 0; access < WORDS / 4; access++) {
            *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            uint32_t place = (uint32_t)(*state >> 33) % (WORDS / 4 * 3);
            if (writes)
                words[place] = place;
            else
                (void)words[place];
        }
    }
}

int main(int count, char **arguments) {
    if (count != 3) return 64;
    const size_t bytes = WORDS * sizeof(uint32_t);
    /* Aligned to its own size: then its lines fall into the same sets wherever it lies. */
    void *memory;
    if (posix_memalign(&memory, bytes, bytes) != 0) return 65;
    memset(memory, 1, bytes);
    uint64_t state = 1;
    stlt_open();
    stlt_phase(STLT_FUNCTIONAL, 0, 0, 0);
    round_of(arguments[1], memory, &state);
    stlt_phase(STLT_DETAILED, 0, 0, 0);
    for (int round = atoi(arguments[2]); round > 0; round--) {
        stlt_phase(STLT_MEASURED, 0, 0, 0);
        round_of(arguments[1], memory, &state);
        stlt_phase(STLT_DETAILED, 1, 0, 0);
    }
    stlt_phase(STLT_LOAD, 0, 0, 0);
    free(memory);
    return 0;
}
