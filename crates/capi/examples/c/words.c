/* Counts the words of a text, and prints those that are most frequent.
 *
 *     words < TEXT
 *
 * The index is the binary tree of the C library (tsearch). A text has few words that are frequent: the buffer remembers
 * where those are, so that the tree is walked for the others only. One thread has buffer and tree for itself, and
 * nothing is ever removed: a lookup, and an emission after a search, are all that the buffer has to be told. */
#define _GNU_SOURCE 1
#include <ctype.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lookaside.h>

enum { LONGEST = 63, SHOWN = 10, BUFFER_BYTES = 1 << 20 };

/* An entry: it stays where it is, and its text never changes. */
typedef struct word {
    char text[LONGEST + 1];
    uint64_t count;
} word;

static int by_text(const void *a, const void *b) { return strcmp(((const word *)a)->text, ((const word *)b)->text); }

/* What the buffer has to know: how keys are hashed, and when an entry is that of a key. */
static uint64_t hash_of_text(void *text) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *at = text; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return hash;
}
static uint64_t hash_of_word(void *entry) { return hash_of_text(((word *)entry)->text); }
static bool match(void *entry, void *text) { return strcmp(((word *)entry)->text, text) == 0; }

/* The word in the tree with this text, put in if it is new; NULL without memory. */
static word *search(void **tree, const char *text) {
    word sought = {.count = 0};
    strcpy(sought.text, text);
    word **at = tfind(&sought, tree, by_text);
    if (at) return *at;
    word *new = malloc(sizeof *new);
    if (!new) return NULL;
    *new = sought;
    if (tsearch(new, tree, by_text)) return new;
    free(new);
    return NULL;
}

static word *frequent[SHOWN];

/* Keeps the most frequent words of those that it is shown, in order. */
static void show(const void *node, VISIT visit, int depth) {
    (void)depth;
    if (visit != postorder && visit != leaf) return;
    word *next = *(word *const *)node;
    for (int i = 0; i < SHOWN && next; i++) {
        if (frequent[i] && frequent[i]->count >= next->count) continue;
        word *displaced = frequent[i];
        frequent[i] = next, next = displaced;
    }
}

int main(void) {
    void *tree = NULL;
    char text[LONGEST + 1];
    size_t length = 0;
    SLB *slb = SLB_create(BUFFER_BYTES, match, hash_of_text, hash_of_word);
    if (!slb) return fprintf(stderr, "words: %s\n", lookaside_last_error()), 1;

    for (int c; (c = getchar(), c != EOF || length > 0);) {
        if (c != EOF && isalpha(c)) {
            if (length < LONGEST) text[length++] = (char)tolower(c);
            continue;
        }
        if (length == 0) continue;
        text[length] = '\0', length = 0;

        word *found = SLB_get(slb, text);
        if (!found) {
            found = search(&tree, text);
            if (!found) return fprintf(stderr, "words: no memory\n"), 1;
            SLB_emit(slb, found);
        }
        found->count++;
    }

    twalk(tree, show);
    for (int i = 0; i < SHOWN && frequent[i]; i++) printf("%8" PRIu64 " %s\n", frequent[i]->count, frequent[i]->text);
    lookaside_counts counts;
    lookaside_get_counts(slb, &counts, sizeof counts);
    fprintf(stderr, "%" PRIu64 " of %" PRIu64 " lookups without the tree\n", counts.hits,
            counts.hits + counts.misses + counts.bypassed);
    SLB_destroy(slb);
    tdestroy(tree, free);
    return 0;
}
