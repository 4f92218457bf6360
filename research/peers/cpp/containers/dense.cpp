// sparsehash's dense_hash_map: one array, at most half full, probed quadratically. It takes the standard library's
// hash.
#include <google/dense_hash_map>

#include "contestant.hpp"

namespace {

struct HashTable {
    template <std::size_t N, class Item>
    using Index = google::dense_hash_map<peers::Key<N>, Item *, peers::StandardHash>;

    /// It wants a key that no record has. Theirs are mixed numbers: all ones would be that of one number in 2^64.
    template <class Index>
    static void prepare(Index &index, std::size_t records) {
        typename Index::key_type nobody;
        std::memset(nobody.bytes, 0xff, sizeof nobody.bytes);
        index.set_empty_key(nobody);
        index.resize(records);
    }
};

}  // namespace

extern "C" peers::Contestant *lookaside_peers_dense_hash_map(peers::Form form, std::size_t key_bytes,
                                                             std::size_t records, const lookaside_options *options) {
    return peers::make<HashTable>(form, key_bytes, records, options);
}
