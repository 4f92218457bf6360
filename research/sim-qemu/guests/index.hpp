// The indexes of the STLT paper's Table II, chosen when this is compiled: INDEX is the name of one.
//
// Each maps a key to its record on the heap; the key is kept in the index, too, so that a search touches no record but
// the one that it is for.
#ifndef INDEX_HPP
#define INDEX_HPP

#include "record.hpp"

#define unordered_map 1
#define dense_hash_map 2
#define map 3
#define btree_map 4
#if INDEX == unordered_map
#define IS_UNORDERED_MAP 1
#elif INDEX == dense_hash_map
#define IS_DENSE_HASH_MAP 1
#elif INDEX == map
#define IS_MAP 1
#elif INDEX == btree_map
#define IS_BTREE_MAP 1
#else
#error "INDEX is unordered_map, dense_hash_map, map or btree_map"
#endif
#undef unordered_map
#undef dense_hash_map
#undef map
#undef btree_map

#if defined(IS_UNORDERED_MAP)
#include <unordered_map>
using Container = std::unordered_map<Key, Record *, KeyHash>;
#elif defined(IS_DENSE_HASH_MAP)
#include <google/dense_hash_map>
using Container = google::dense_hash_map<Key, Record *, KeyHash>;
#elif defined(IS_MAP)
#include <map>
using Container = std::map<Key, Record *>;
#else
#include <absl/container/btree_map.h>
using Container = absl::btree_map<Key, Record *>;
#endif

class Index {
public:
    Index() {
#if defined(IS_DENSE_HASH_MAP)
        container.set_empty_key(Key{{0, 0, 0}});
#endif
    }

    Record *find(const Key &key) const {
        auto place = container.find(key);
        return place == container.end() ? nullptr : place->second;
    }

    void insert(Record *record) { container.insert({record->key, record}); }

private:
    Container container;
};

#endif
