// What the guests look up: records with keys of 24 bytes, as YCSB's workloads in the STLT paper have them.
#ifndef RECORD_HPP
#define RECORD_HPP

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

/// "user0000" and sixteen digits that look random: records that are neighbours by number are not by key.
struct Key {
    std::uint64_t words[3];

    /// SplitMix64's finaliser is a bijection, so different numbers have different keys.
    static Key of(std::uint64_t number) {
        std::uint64_t mixed = number + 0x9e3779b97f4a7c15;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
        mixed ^= mixed >> 31;
        return {{0x3030303072657375, digits(static_cast<std::uint32_t>(mixed)), digits(mixed >> 32)}};
    }

    std::string_view view() const { return {reinterpret_cast<const char *>(words), sizeof words}; }

    friend bool operator==(const Key &a, const Key &b) { return std::memcmp(a.words, b.words, sizeof a.words) == 0; }
    friend bool operator!=(const Key &a, const Key &b) { return !(a == b); }
    friend bool operator<(const Key &a, const Key &b) { return std::memcmp(a.words, b.words, sizeof a.words) < 0; }

private:
    /// Eight hexadecimal digits, all at once: each nibble in a byte of its own, then the letters moved up.
    static std::uint64_t digits(std::uint64_t word) {
        word = (word | word << 16) & 0x0000ffff0000ffff;
        word = (word | word << 8) & 0x00ff00ff00ff00ff;
        word = (word | word << 4) & 0x0f0f0f0f0f0f0f0f;
        std::uint64_t letters = (word + 0x0606060606060606) >> 4 & 0x0101010101010101;
        return word + 0x3030303030303030 + letters * ('a' - '9' - 1);
    }
};

/// The hash of the containers: that of the C++ library for strings.
struct KeyHash {
    std::size_t operator()(const Key &key) const { return std::hash<std::string_view>()(key.view()); }
};

/// A record on the heap: its key and, behind it, its value.
struct Record {
    Key key;

    const Key &key_of() const { return key; }
    bool is_of(const Key &other) const { return key == other; }
    unsigned char *value() { return reinterpret_cast<unsigned char *>(this + 1); }

    static Record *make(std::uint64_t number, std::size_t value_bytes) {
        auto *record = static_cast<Record *>(std::malloc(sizeof(Record) + value_bytes));
        if (!record) std::abort();
        record->key = Key::of(number);
        std::memset(record->value(), static_cast<int>(number & 0xff), value_bytes);
        return record;
    }
};

/// The hashes that Figure 18 compares, on the fast path only.
enum class FastHash { xxh3, xxh64, murmur, djb2, sip };

/// SipHash-1-2 (Aumasson and Bernstein, 2012), as Redis has it, of a key, with a fixed secret.
inline std::uint64_t sip(const Key &key) {
    std::uint64_t v0 = 0x736f6d6570736575 ^ 0x0706050403020100, v1 = 0x646f72616e646f6d ^ 0x0f0e0d0c0b0a0908;
    std::uint64_t v2 = 0x6c7967656e657261 ^ 0x0706050403020100, v3 = 0x7465646279746573 ^ 0x0f0e0d0c0b0a0908;
    auto left = [](std::uint64_t word, int by) { return word << by | word >> (64 - by); };
    auto rounds = [&](int count) {
        while (count-- > 0) {
            v0 += v1, v1 = left(v1, 13) ^ v0, v0 = left(v0, 32);
            v2 += v3, v3 = left(v3, 16) ^ v2;
            v0 += v3, v3 = left(v3, 21) ^ v0;
            v2 += v1, v1 = left(v1, 17) ^ v2, v2 = left(v2, 32);
        }
    };
    auto take = [&](std::uint64_t word) { v3 ^= word, rounds(1), v0 ^= word; };
    for (std::uint64_t word : key.words) take(word);
    take(std::uint64_t{sizeof key.words} << 56);
    v2 ^= 0xff;
    rounds(2);
    return v0 ^ v1 ^ v2 ^ v3;
}

inline std::uint64_t fast_hash(const Key &key, FastHash which) {
    switch (which) {
    case FastHash::xxh3: return XXH3_64bits(key.words, sizeof key.words);
    case FastHash::xxh64: return XXH64(key.words, sizeof key.words, 0);
    case FastHash::murmur: return KeyHash()(key);
    case FastHash::sip: return sip(key);
    case FastHash::djb2: {
        std::uint64_t hash = 5381;
        for (char byte : key.view()) hash = hash * 33 + static_cast<unsigned char>(byte);
        return hash;
    }
    }
    std::abort();
}

#endif
