/* Records on pages that the kernel takes back: what loadVA answers afterwards, call by call, with an IPB of 32 entries.
 *
 * Each call is a window of the measurement, so that the plugin's counts of the IPB can be told apart. Nothing else in a
 * window
 * takes a page away. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "../../../../crates/capi/tests/c/check.h"
#include "stlt.h"

enum { PAGE = 4096, PAGES = 8 };

/* A record at the beginning of each of so many pages; each has an integer of its own, in a set of its own. */
struct region {
    char *pages;
    int count;
    uint64_t first;
};

static uint64_t integer(struct region region, int page) { return (region.first + (uint64_t)page) << 12; }

static char *map(void *at, int count) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0);
    char *pages = (char *)mmap(at, (size_t)count * PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(pages != MAP_FAILED);
    return pages;
}

static void write_records(struct region region) {
    for (int page = 0; page < region.count; page++) *(volatile char *)(region.pages + page * PAGE) = 1;
}

static void insert(struct region region) {
    for (int page = 0; page < region.count; page++) stlt_insert(integer(region, page), region.pages + page * PAGE);
}

/* How many integers are answered with their record's address; a wrong one ends the program. */
static int found(struct region region) {
    int count = 0;
    for (int page = 0; page < region.count; page++) {
        char *record = (char *)stlt_load_va(integer(region, page));
        CHECK(record == NULL || record == region.pages + page * PAGE);
        count += record != NULL;
    }
    return count;
}

static struct region make(int count) {
    static uint64_t integers = 1;
    struct region region = {map(NULL, count), count, integers};
    integers += (uint64_t)count;
    write_records(region);
    insert(region);
    CHECK(found(region) == count);
    return region;
}

static void begin(void) { stlt_phase(STLT_MEASURED, 0, 0, 0); }

static void end(void) { stlt_phase(STLT_DETAILED, 1, 0, 0); }

int main(void) {
    CHECK(stlt_open() && stlt_alloc(1024, 4, STLT_FULL));
    stlt_phase(STLT_FUNCTIONAL, 0, 0, 0);
    stlt_phase(STLT_DETAILED, 0, 0, 0);

    /* Unmapped, and mapped anew at the same place: that these are other pages, only the IPB knows. */
    begin();
    struct region unmapped = make(PAGES);
    CHECK(munmap(unmapped.pages, (size_t)unmapped.count * PAGE) == 0);
    CHECK(found(unmapped) == 0);
    CHECK(map(unmapped.pages, unmapped.count) == unmapped.pages);
    write_records(unmapped);
    CHECK(found(unmapped) == 0);
    insert(unmapped);
    CHECK(found(unmapped) == 0);
    end();

    /* Moved: the old place is forgotten, the new one can be told. */
    begin();
    struct region moved = make(PAGES), old = moved;
    moved.pages = map(NULL, moved.count);
    size_t bytes = (size_t)moved.count * PAGE;
    CHECK(mremap(old.pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, moved.pages) == moved.pages);
    CHECK(found(old) == 0);
    insert(moved);
    CHECK(found(moved) == moved.count);
    end();

    /* Given back: what is touched next is another frame. */
    begin();
    struct region dropped = make(PAGES);
    CHECK(madvise(dropped.pages, (size_t)dropped.count * PAGE, MADV_DONTNEED) == 0);
    CHECK(found(dropped) == 0);
    write_records(dropped);
    CHECK(found(dropped) == 0);
    end();

    /* The IPB is full with these. */
    begin();
    struct region gone = make(PAGES);
    CHECK(munmap(gone.pages, (size_t)gone.count * PAGE) == 0);
    CHECK(found(gone) == 0);
    end();

    /* One more, and the table is brought up to date: rows of pages that are there answer again, with the translations
     * of now; rows of pages that are not are no more. */
    begin();
    struct region last = make(1);
    CHECK(munmap(last.pages, PAGE) == 0);
    CHECK(found(last) == 0 && found(gone) == 0);
    CHECK(found(unmapped) == unmapped.count && found(dropped) == dropped.count && found(moved) == moved.count);
    end();

    stlt_phase(STLT_LOAD, 0, 0, 0);
    return 0;
}
