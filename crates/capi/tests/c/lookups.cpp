// Lookups as they are compiled into a program, for those who read what compilers make of them.
#include <cstring>

#include <lookaside.hpp>

// A key's comparison and a batch's arrays are copied and cleared by vector instructions, as wide as the compiler may.
struct Key {
    unsigned char bytes[32];
};

struct Record {
    Key key;
    std::uint64_t value;
};

struct Hash {
    std::size_t operator()(const Key& key) const {
        std::size_t first;
        std::memcpy(&first, key.bytes, sizeof first);
        return first;
    }
};

struct Same {
    bool operator()(const Record& record, const Key& key) const {
        return std::memcmp(record.key.bytes, key.bytes, sizeof key.bytes) == 0;
    }
};

using Owned = lookaside::OwnedBuffer<Key, Record, Hash, Same>;
using Shared = lookaside::Buffer<Key, Record, Hash, Same>;

Record* one(const Owned& slb, const Key& key) { return slb.get(key); }
std::size_t many(const Owned& slb, const Key* keys, Record** found) { return slb.get_many(keys, 64, found); }
Record* one(Shared::Pin& pin, const Key& key) {
    return pin.find(key, [] { return nullptr; });
}
std::size_t many(Shared::Pin& pin, const Key* keys, Record** found) { return pin.get_many(keys, 64, found); }

// What is done now and then: a buffer is made, and asked what has happened.
bool made(std::size_t size) { return static_cast<bool>(Owned(size)); }
bool made(const lookaside_options& options) { return static_cast<bool>(Shared(options)); }
lookaside_counts counts(const Owned& slb) { return slb.counts(); }
lookaside_verdict verdict(const Owned& slb) { return slb.verdict(); }
