/* The least that a program does with a buffer, by calls and compiled in: what an installed library must be good for. */
#include <lookaside_inline.h>

static bool match(void *entry, void *key) { return entry == key; }
static uint64_t hash(void *opaque) { return (uintptr_t)opaque; }

int main(void) {
    int record;
    SLB *b = SLB_create(4096, match, hash, hash);
    lookaside_session *s = lookaside_inline_attach(b);
    if (!b || !s) return 1;
    lookaside_monitor(b, false);
    SLB_emit(b, &record);
    bool found = SLB_get(b, &record) == &record && lookaside_inline_get(b, s, hash(&record), &record, match) == &record;
    SLB_destroy(b);
    return found ? 0 : 2;
}
