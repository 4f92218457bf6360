// libcuckoo behind six functions of C, for research/peers/src/libcuckoo.rs, which states what each one needs.
//
// A call takes many keys, so that what is measured is the table and not the way from Rust to C++ and back. Nothing is
// thrown across that way: what the library throws becomes a refusal.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <libcuckoo/cuckoohash_map.hh>

namespace {

struct alignas(16) Key {
    std::uint64_t low;
    std::uint64_t high;
};

std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// XXH3, 64 bits, seed 0, of exactly 16 bytes: the same function that the tables in Rust hash with (a test compares
// them). Its two constants are xors of words of XXH3's default secret, at bytes 24 and 32, and 40 and 48.
std::uint64_t xxh3(const Key &key) {
    constexpr std::uint64_t flip_low = 0x1f67b3b7a4a44072ULL ^ 0x78e5c0cc4ee679cbULL;
    constexpr std::uint64_t flip_high = 0x2172ffcc7dd05a82ULL ^ 0x8e2443f7744608b8ULL;
    const std::uint64_t low = key.low ^ flip_low;
    const std::uint64_t high = key.high ^ flip_high;
    std::uint64_t hash = 16 + __builtin_bswap64(low) + high + folded_product(low, high);
    hash = (hash ^ (hash >> 37)) * 0x165667919E3779F9ULL;
    return hash ^ (hash >> 32);
}

struct Hash {
    std::size_t operator()(const Key &key) const { return xxh3(key); }
};

struct Equal {
    bool operator()(const Key &a, const Key &b) const { return a.low == b.low && a.high == b.high; }
};

using Map = libcuckoo::cuckoohash_map<Key, std::uint64_t, Hash, Equal>;

} // namespace

extern "C" {

std::uint64_t lookaside_peers_xxh3(const Key *key) { return xxh3(*key); }

void *lookaside_peers_libcuckoo_new(std::size_t capacity) {
    try {
        return new Map(capacity);
    } catch (...) {
        return nullptr;
    }
}

void lookaside_peers_libcuckoo_free(void *map) { delete static_cast<Map *>(map); }

// Puts keys[i] in with the value first + i; says how many were put in before one was refused.
std::size_t lookaside_peers_libcuckoo_insert(void *map, const Key *keys, std::size_t count, std::uint64_t first) {
    std::size_t done = 0;
    try {
        while (done < count && static_cast<Map *>(map)->insert(keys[done], first + done)) {
            ++done;
        }
    } catch (...) {
    }
    return done;
}

// Adds to *found the number of keys that are there, and to *sum their values.
void lookaside_peers_libcuckoo_find(const void *map, const Key *keys, std::size_t count, std::uint64_t *found,
                                    std::uint64_t *sum) {
    std::uint64_t hits = 0, total = 0;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t value;
        if (static_cast<const Map *>(map)->find(keys[i], value)) {
            ++hits;
            total += value;
        }
    }
    *found += hits;
    *sum += total;
}

} // extern "C"
