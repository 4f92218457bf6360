// What may stand before an index: nothing, the Search Lookaside Buffer, the STLT's two instructions, or the STLT in
// software. Each is asked for the record of a key and its hash, and told of the record that the index had.
#ifndef FAST_PATH_HPP
#define FAST_PATH_HPP

#include <cstdio>
#include <cstdlib>

#include <lookaside_inline.h>

#include "record.hpp"
#include "stlt.h"
#include "stlt_anywhere.h"
#include "stlt_software.h"

[[noreturn]] inline void refuse(const char *reason) {
    std::fprintf(stderr, "guest: %s\n", reason);
    std::exit(64);
}

/// What a fast path did.
struct Tally {
    std::uint64_t hits = 0, misses = 0;
};

/// The six lines of the paper's Figure 4: ask the table, compare the key, or else search the index and tell the table.
/// `Held` is what the table holds pointers to; `held->is_of(key)` compares.
template <class Path, class Held>
struct Lookup {
    template <class Search>
    Held *lookup(const Key &key, FastHash which, Tally &tally, Search search) {
        Path &path = static_cast<Path &>(*this);
        std::uint64_t hash = fast_hash(key, which);
        Held *held = path.find(hash, key);
        if (held) {
            tally.hits++;
            return held;
        }
        tally.misses++;
        held = search();
        if (held) path.found(hash, held);
        return held;
    }
};

template <class Held>
struct Alone {
    template <class Search>
    Held *lookup(const Key &, FastHash, Tally &, Search search) {
        return search();
    }
};

template <class Held>
struct Hardware : Lookup<Hardware<Held>, Held> {
    Hardware(std::uint64_t rows, unsigned ways, stlt_variant variant) {
        if (!stlt_alloc(rows, ways, variant)) refuse("no STLT of this shape");
    }

    Held *find(std::uint64_t hash, const Key &key) {
        auto *held = static_cast<Held *>(stlt_load_va(hash));
        return held && held->is_of(key) ? held : nullptr;
    }

    void found(std::uint64_t hash, Held *held) { stlt_insert(hash, held); }
};

/// The same table, kept by software: also where there is no such hardware.
template <class Held>
struct Software : Lookup<Software<Held>, Held> {
    Software(std::uint64_t rows, unsigned ways) {
        if (!stlt_software_open(&table, rows, ways)) refuse("no table of this shape in software, or no memory for it");
    }

    Held *find(std::uint64_t hash, const Key &key) {
        auto *held = static_cast<Held *>(stlt_software_load(&table, hash));
        return held && held->is_of(key) ? held : nullptr;
    }

    void found(std::uint64_t hash, Held *held) { stlt_software_insert(&table, hash, held); }

private:
    stlt_software table;
};

/// The real library, in its form for one owner: no locks, no pins. The monitor is off: what is compared is the buffer.
template <class Held>
class Buffer : public Lookup<Buffer<Held>, Held> {
public:
    Buffer(std::size_t bytes, bool paper) {
        lookaside_options options;
        (paper ? lookaside_paper_options : lookaside_default_options)(&options, sizeof options);
        options.size = bytes;
        options.match = matches;
        options.keyhash = [](void *key) { return fast_hash(*static_cast<const Key *>(key), which); };
        options.entryhash = [](void *entry) { return fast_hash(static_cast<const Held *>(entry)->key_of(), which); };
        options.entry_bytes = sizeof(Key);
        options.monitor = false;
        // The table has the bytes that it was given, as the paper's.
        options.layout = LOOKASIDE_INLINE_LAYOUT;
        buffer = lookaside_owned_create(&options);
        if (!buffer) refuse(lookaside_last_error());
        session = lookaside_owned_attach(buffer, LOOKASIDE_INLINE_LAYOUT);
        if (!session) refuse(lookaside_last_error());
    }

    Held *find(std::uint64_t hash, const Key &key) {
        return static_cast<Held *>(lookaside_inline_get(buffer, session, hash, const_cast<Key *>(&key), matches));
    }

    void found(std::uint64_t, Held *held) {
        lookaside_owned_emit_key(buffer, const_cast<Key *>(&held->key_of()), held);
    }

    static inline FastHash which = FastHash::xxh3;

private:
    static bool matches(void *entry, void *key) {
        return static_cast<const Held *>(entry)->is_of(*static_cast<const Key *>(key));
    }

    lookaside_owned *buffer;
    lookaside_session *session;
};

#endif
