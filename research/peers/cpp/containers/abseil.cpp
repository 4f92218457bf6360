// Abseil's B-tree and its Swiss table, each with its usual hash.
#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include "contestant.hpp"

namespace peers {

template <class State, std::size_t N>
State AbslHashValue(State state, const Key<N> &key) {
    return State::combine_contiguous(std::move(state), key.bytes, N);
}

}  // namespace peers

namespace {

struct Tree {
    template <std::size_t N, class Item>
    using Index = absl::btree_map<peers::Key<N>, Item *>;

    template <class Index>
    static void prepare(Index &, std::size_t) {}
};

struct HashTable {
    template <std::size_t N, class Item>
    using Index = absl::flat_hash_map<peers::Key<N>, Item *>;

    template <class Index>
    static void prepare(Index &index, std::size_t records) {
        index.reserve(records);
    }
};

}  // namespace

extern "C" {

peers::Contestant *lookaside_peers_absl_btree_map(peers::Form form, std::size_t key_bytes, std::size_t records,
                                                  const lookaside_options *options) {
    return peers::make<Tree>(form, key_bytes, records, options);
}

peers::Contestant *lookaside_peers_absl_flat_hash_map(peers::Form form, std::size_t key_bytes, std::size_t records,
                                                      const lookaside_options *options) {
    return peers::make<HashTable>(form, key_bytes, records, options);
}

}  // extern "C"
