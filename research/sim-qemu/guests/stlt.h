/* The search translation lookaside table, as a program sees it: two instructions and a few system calls.
 *
 *     if (!stlt_open()) ...                  // not simulated: go on all the same, or use stlt_anywhere.h
 *     stlt_alloc(rows, 4, STLT_FULL);
 *
 *     record = stlt_load_va(hash(key));      // 0, or a record: of this key, perhaps
 *     if (!record || record->key != key) {
 *         record = search the index;
 *         stlt_insert(hash(key), record);
 *     }
 *
 * Under the simulator's plugin (research/sim-qemu) they are instructions of the simulated processor. On any
 * other they are a NOP and two moves, and stlt_load_va() returns 0: nothing is ever found. stlt_open() must
 * have been called first: it maps the page that the moves go to.
 *
 * A deleted record must be forgotten: stlt_insert(hash(key), NULL).
 *
 * All of this is for the program's first thread: the simulated core runs no other. On another, stlt_load_va() returns
 * 0, stlt_insert() does nothing, and stlt_alloc(), stlt_resize() and stlt_free() return false. Do not let another use
 * it while the first does: both have one page for their operands, and could take each other's. A forked child has a
 * copy of the table, and is not measured.
 *
 * What goes through the page is known to the plugin by its absolute address, and is left out of what it
 * measures: research/sim-qemu/src/protocol.rs has the other half. C11 and C++, GCC and Clang, x86-64 Linux.
 */
#ifndef STLT_H
#define STLT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__) || !defined(__linux__)
#error "stlt.h is for x86-64 Linux"
#endif

#define STLT_MAILBOX 0x53540000
#define STLT_CALL 0x53544c

/* How much of the design is in hardware. */
enum stlt_variant {
    STLT_FULL = 0,            /* rows hold translations, too */
    STLT_VIRTUAL_ADDRESS = 1, /* rows hold virtual addresses only: STLT-VA */
};

enum stlt_phase {
    STLT_LOAD = 0,       /* nothing is simulated but the table itself */
    STLT_FUNCTIONAL = 1, /* TLBs and caches, without a clock: to warm them */
    STLT_DETAILED = 2,   /* the clock runs: to fill the pipeline */
    STLT_MEASURED = 3,   /* and is looked at */
};

static inline uint64_t stlt_word_(unsigned place) { return ((volatile uint64_t *)(uintptr_t)STLT_MAILBOX)[place]; }

/* ENOSYS on every kernel. */
static inline void stlt_call_(uint64_t what, uint64_t first, uint64_t second, uint64_t third, uint64_t fourth) {
    register uint64_t r10 __asm__("r10") = third;
    register uint64_t r8 __asm__("r8") = fourth;
    uint64_t number = STLT_CALL;
    __asm__ volatile("syscall"
                     : "+a"(number)
                     : "D"(what), "S"(first), "d"(second), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
}

/* Maps the page. Whether a simulator is there. If the page cannot be had, the program ends: without it the
 * two instructions would go astray. */
static inline bool stlt_open(void) {
    void *wanted = (void *)(uintptr_t)STLT_MAILBOX;
    if (mmap(wanted, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != wanted) {
        static const char reason[] = "stlt_open: the page at 0x53540000 is taken\n";
        ssize_t written = write(2, reason, sizeof reason - 1);
        (void)written;
        _exit(70);
    }
    ((volatile uint64_t *)wanted)[3] = 0;
    stlt_call_(0, STLT_MAILBOX, 0, 0, 0);
    return stlt_word_(3) == UINT64_C(0x4d495320544c5453); /* "STLT SIM" */
}

/* STLTalloc, STLTresize, STLTfree: whether it was done. Rows are a power of two, ways 1, 2, 4 or 8. */
static inline bool stlt_alloc(uint64_t rows, uint64_t ways, enum stlt_variant variant) {
    stlt_call_(1, rows, ways, (uint64_t)variant, 0);
    return stlt_word_(4) == 0;
}

static inline bool stlt_resize(uint64_t rows) {
    stlt_call_(2, rows, 0, 0, 0);
    return stlt_word_(4) == 0;
}

static inline bool stlt_free(void) {
    stlt_call_(3, 0, 0, 0, 0);
    return stlt_word_(4) == 0;
}

/* The phase changes. If a window of the measurement ends so: it comprised so many operations, of which the
 * table answered `hits` with the right record and `misses` not (both 0: there is no table). */
static inline void stlt_phase(enum stlt_phase phase, uint64_t operations, uint64_t hits, uint64_t misses) {
    stlt_call_(4, (uint64_t)phase, operations, hits, misses);
}

/* The instruction loadVA: the record that the integer was inserted with, or another, or NULL. */
static inline void *stlt_load_va(uint64_t integer) {
    void *address;
    __asm__ volatile("movq %%rdi, 0x53540000\n\t"
                     ".byte 0x0f, 0x1f, 0x80, 1, 'T', 'L', 'S'\n\t"
                     "movq 0x53540010, %%rax"
                     : "=a"(address)
                     : "D"(integer));
    return address;
}

/* The instruction insertSTLT: a hint that the integer's record is there. NULL: that it is no more. */
static inline void stlt_insert(uint64_t integer, const void *address) {
    __asm__ volatile("movq %%rdi, 0x53540000\n\t"
                     "movq %%rsi, 0x53540008\n\t"
                     ".byte 0x0f, 0x1f, 0x80, 2, 'T', 'L', 'S'"
                     :
                     : "D"(integer), "S"(address));
}

/* The integer for one of several indexes that share the table: its lowest `bits` bits, at most 12, are the
 * index's number (section III-F, Figure 10 of the paper). The lowest 12 bits are compared, so none finds another's
 * record,
 * not even under an equal key; what they say of the number they no longer say of the key. */
static inline uint64_t stlt_with_table(uint64_t integer, uint64_t table, unsigned bits) {
    uint64_t mask = (UINT64_C(1) << (bits < 12 ? bits : 12)) - 1;
    return (integer & ~mask) | (table & mask);
}

#endif
