/* Lookups in the one function of a program that is compiled for AVX, whatever the rest is compiled for. */
#include <lookaside_inline.h>

bool match(void *entry, void *key);
uint64_t hash(void *key);

__attribute__((target("avx2"))) size_t many(SLB *b, lookaside_session *s, void *const *keys, void **entries) {
    return lookaside_inline_get_many(b, s, keys, 64, entries, 32, hash, match);
}
