/* A process with hardly any memory left: what cannot be made is NULL, and what was made goes on. */
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "lookaside.h"

static bool match(void *entry, void *key) { return entry == key; }
static uint64_t hash(void *opaque) { return (uintptr_t)opaque; }

int main(void) {
    int record;
    SLB *b = SLB_create(4096, match, hash, hash);
    CHECK(b != NULL);
    SLB_emit(b, &record);
    /* As much as there is, and a little more. */
    long pages;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm != NULL && fscanf(statm, "%ld", &pages) == 1 && fclose(statm) == 0);
    struct rlimit limit = {(rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 20), RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    int made = 0;
    while (made < 1000 && SLB_create(4096, match, hash, hash) != NULL) made++;
    CHECK(made < 1000 && strstr(lookaside_last_error(), "memory"));
    CHECK(SLB_get(b, &record) == &record);
    puts("no_room: NULL, and nothing worse");
}
