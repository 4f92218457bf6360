/* A guest that has not the page for its operands, or loses it: the plugin does not go there, and the guest goes on. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "../../../../crates/capi/tests/c/check.h"
#include "stlt.h"

enum { PAGE = 4096 };

static const uint64_t integer = 7 << 12;
static int record;

static void *mailbox(void) { return (void *)(uintptr_t)STLT_MAILBOX; }

static void greet(void) { stlt_call_(0, STLT_MAILBOX, 0, 0, 0); }

/* The instructions without their moves, which would fault by themselves; and calls. */
static void ask(void) {
    __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 1, 'T', 'L', 'S'" : : : "memory");
    __asm__ volatile(".byte 0x0f, 0x1f, 0x80, 2, 'T', 'L', 'S'" : : : "memory");
    stlt_call_(2, 64, 0, 0, 0);
    stlt_call_(4, STLT_LOAD, 0, 0, 0);
    stlt_call_(99, 0, 0, 0, 0);
}

static bool is_found(void) { return stlt_load_va(integer) == &record; }

int main(void) {
    /* It greets, and there is no page; then one that cannot be written. */
    greet();
    ask();
    CHECK(mmap(mailbox(), PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == mailbox());
    greet();
    ask();
    CHECK(munmap(mailbox(), PAGE) == 0);

    CHECK(stlt_open() && stlt_alloc(1024, 4, STLT_FULL));
    stlt_insert(integer, &record);
    CHECK(is_found());
    /* Something happens to the page, and it is as good as before. */
    CHECK(mprotect(mailbox(), PAGE, PROT_READ | PROT_WRITE) == 0 && is_found());
    CHECK(madvise(mailbox(), PAGE, MADV_DONTNEED) == 0 && is_found());
    /* Not any more; and the table is what it was, because what was asked for meanwhile was not heard. */
    static const int rights[] = {PROT_READ, PROT_NONE};
    for (int kind = 0; kind < 2; kind++) {
        CHECK(mprotect(mailbox(), PAGE, rights[kind]) == 0);
        ask();
        CHECK(munmap(mailbox(), PAGE) == 0);
        ask();
        CHECK(stlt_open() && is_found());
    }
    /* A call that fails at the hole behind it, perhaps after it has done its part. */
    CHECK(mprotect(mailbox(), 2 * PAGE, PROT_NONE) == -1);
    ask();
    CHECK(munmap(mailbox(), PAGE) == 0);
    CHECK(stlt_open() && is_found());
    CHECK(mremap(mailbox(), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (char *)mailbox() + (1 << 20)) != MAP_FAILED);
    ask();
    CHECK(stlt_open() && is_found());
    /* And measured. */
    stlt_phase(STLT_MEASURED, 0, 0, 0);
    CHECK(is_found());
    stlt_phase(STLT_LOAD, 1, 1, 0);
    return 0;
}
