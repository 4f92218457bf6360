// The standard library's containers, and the functions that all contestants have.
#include <map>
#include <unordered_map>

#include "contestant.hpp"

namespace {

struct Tree {
    template <std::size_t N, class Item>
    using Index = std::map<peers::Key<N>, Item *>;

    template <class Index>
    static void prepare(Index &, std::size_t) {}
};

struct HashTable {
    template <std::size_t N, class Item>
    using Index = std::unordered_map<peers::Key<N>, Item *, peers::StandardHash>;

    template <class Index>
    static void prepare(Index &index, std::size_t records) {
        index.reserve(records);
    }
};

}  // namespace

using peers::Contestant;
using peers::Form;

extern "C" {

Contestant *lookaside_peers_std_map(Form form, std::size_t key_bytes, std::size_t records,
                                    const lookaside_options *options) {
    return peers::make<Tree>(form, key_bytes, records, options);
}

Contestant *lookaside_peers_std_unordered_map(Form form, std::size_t key_bytes, std::size_t records,
                                              const lookaside_options *options) {
    return peers::make<HashTable>(form, key_bytes, records, options);
}

void lookaside_peers_container_end(Contestant *contestant) noexcept { delete contestant; }

void lookaside_peers_container_get(Contestant *contestant, bool batches, const void *keys, std::size_t count,
                                   peers::Tally *tally) noexcept {
    contestant->get(batches, keys, count, *tally);
}

void lookaside_peers_container_perform(Contestant *contestant, bool batches, const void *requests, std::size_t count,
                                       peers::Tally *tally) noexcept {
    contestant->perform(batches, requests, count, *tally);
}

bool lookaside_peers_container_resize(Contestant *contestant, std::size_t bytes) noexcept {
    return contestant->resize(bytes);
}

void lookaside_peers_container_counts(Contestant *contestant, lookaside_counts *counts) noexcept {
    contestant->counts(*counts);
}

void lookaside_peers_container_verdict(Contestant *contestant, lookaside_verdict *verdict) noexcept {
    contestant->verdict(*verdict);
}

}  // extern "C"
