// What a programmer writes in an afternoon instead of taking a library: a table of pointers to hot entries.
//
// A bucket is one line: seven words of a 16-bit tag over a 48-bit pointer, and seven counters of a byte. Loads are
// plain and end at the first entry that is the key's. A counter is raised at every hit, and the smallest is evicted.
// It is for one thread, never switched off, and forgets nothing by itself: what a library may cost is measured against
// it.
#ifndef LOOKASIDE_PEERS_TWENTY_LINES_HPP
#define LOOKASIDE_PEERS_TWENTY_LINES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include <sys/mman.h>

namespace peers {

template <class Key, class Entry, class Hash, class Match>
class TwentyLines {
public:
    /// Of so many bytes: a power of two.
    explicit TwentyLines(std::size_t bytes) : mask_(bytes / sizeof(Bucket) - 1) {
        constexpr std::size_t LARGE = std::size_t(2) << 20;
        void* memory = std::aligned_alloc(bytes < LARGE ? sizeof(Bucket) : LARGE, bytes);
        if (!memory) throw std::bad_alloc();
        if (bytes >= LARGE) madvise(memory, bytes, MADV_HUGEPAGE);
        buckets_.reset(static_cast<Bucket*>(std::memset(memory, 0, bytes)));
    }

    Entry* get(const Key& key) { return get(Hash()(key), key); }

    void emit(const Key& key, Entry* entry) {
        std::uint64_t hash = Hash()(key);
        Bucket& bucket = buckets_.get()[hash & mask_];
        std::size_t way = std::min_element(bucket.counters, bucket.counters + WAYS) - bucket.counters;
        bucket.words[way] = hash >> 48 << 48 | reinterpret_cast<std::uint64_t>(entry);
        bucket.counters[way] = 1;
    }

    template <class Search>
    Entry* find(const Key& key, Search&& search) {
        if (Entry* entry = get(key)) return entry;
        Entry* entry = search();
        if (entry) emit(key, entry);
        return entry;
    }

    /// By groups: asks for the lines of all, then for the entries that they name, and then compares.
    std::size_t get_many(const Key* keys, std::size_t count, Entry** entries) {
        constexpr std::size_t GROUP = 16;
        std::size_t found = 0;
        for (std::size_t first = 0; first < count; first += GROUP) {
            std::size_t group = std::min(GROUP, count - first);
            std::uint64_t hashes[GROUP];
            for (std::size_t i = 0; i < group; i++) {
                hashes[i] = Hash()(keys[first + i]);
                __builtin_prefetch(&buckets_.get()[hashes[i] & mask_]);
            }
            for (std::size_t i = 0; i < group; i++) {
                const Bucket& bucket = buckets_.get()[hashes[i] & mask_];
                for (std::size_t way = 0; way < WAYS; way++) {
                    if (!is_tagged(bucket.words[way], hashes[i])) continue;
                    const char* entry = reinterpret_cast<const char*>(pointer(bucket.words[way]));
                    for (std::size_t at = 0; at < sizeof(Entry); at += 64) __builtin_prefetch(entry + at);
                    __builtin_prefetch(entry + sizeof(Entry) - 1);
                    break;
                }
            }
            for (std::size_t i = 0; i < group; i++) {
                entries[first + i] = get(hashes[i], keys[first + i]);
                found += entries[first + i] != nullptr;
            }
        }
        return found;
    }

    template <class Search>
    void find_many(const Key* keys, std::size_t count, Entry** entries, Search&& search) {
        if (get_many(keys, count, entries) == count) return;
        for (std::size_t i = 0; i < count; i++) {
            if (entries[i]) continue;
            entries[i] = search(keys[i]);
            if (entries[i]) emit(keys[i], entries[i]);
        }
    }

private:
    static constexpr std::size_t WAYS = 7;

    struct alignas(64) Bucket {
        std::uint64_t words[WAYS];
        std::uint8_t counters[WAYS];
    };

    struct Free {
        void operator()(Bucket* buckets) const { std::free(buckets); }
    };

    static bool is_tagged(std::uint64_t word, std::uint64_t hash) {
        return word >> 48 == hash >> 48 && word << 16 != 0;
    }

    static Entry* pointer(std::uint64_t word) { return reinterpret_cast<Entry*>(word << 16 >> 16); }

    Entry* get(std::uint64_t hash, const Key& key) {
        Bucket& bucket = buckets_.get()[hash & mask_];
        for (std::size_t way = 0; way < WAYS; way++) {
            std::uint64_t word = bucket.words[way];
            if (is_tagged(word, hash) && Match()(*pointer(word), key)) {
                bucket.counters[way] += bucket.counters[way] < 255;
                return pointer(word);
            }
        }
        return nullptr;
    }

    std::unique_ptr<Bucket, Free> buckets_;
    std::size_t mask_;
};

}  // namespace peers

#endif
