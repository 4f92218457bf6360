// Lookups of hot keys by the header for C++, as research/peers/src/compilers.rs compiles and runs it: each form alone
// and in batches.
//
//     compiled KEYS LOOKUPS SLICES      prints for each form its name, a tab, and millions of lookups a second
//
// All keys are in the table. The forms take turns, a slice of so many lookups each; of all slices of a form the
// quickest counts, which nobody has disturbed.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <lookaside.hpp>

struct Key {
    unsigned char bytes[24];
};

struct Record {
    Key key;
    std::uint64_t value[8];
};

struct Hash {
    std::size_t operator()(const Key& key) const {
        std::uint64_t words[3];
        std::memcpy(words, key.bytes, sizeof words);
        return words[0] ^ words[1] * 0x9e3779b97f4a7c15u ^ words[2] << 7;
    }
};

struct Same {
    bool operator()(const Record& record, const Key& key) const {
        return std::memcmp(record.key.bytes, key.bytes, sizeof key.bytes) == 0;
    }
};

static constexpr std::size_t BATCH = 16;
static std::vector<Record> records;
static std::vector<std::uint32_t> numbers;
static std::vector<Key> keys;

[[gnu::noinline]] static Record* search(std::size_t i) { return &records[numbers[i]]; }

template <class Table>
static std::uint64_t one_at_a_time(Table& table) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < keys.size(); i++) {
        const Record* found = table.find(keys[i], [i] { return search(i); });
        sum += found->value[0] + found->value[7];
    }
    return sum;
}

template <class Table>
static std::uint64_t in_batches(Table& table) {
    std::uint64_t sum = 0;
    for (std::size_t first = 0; first < keys.size(); first += BATCH) {
        Record* found[BATCH];
        table.get_many(&keys[first], BATCH, found);
        for (std::size_t i = 0; i < BATCH; i++) {
            const Record* record = found[i] ? found[i] : search(first + i);
            sum += record->value[0] + record->value[7];
        }
    }
    return sum;
}

int main(int count, char** arguments) {
    if (count != 4) return 2;
    std::size_t different = std::strtoull(arguments[1], nullptr, 10), slices = std::strtoull(arguments[3], nullptr, 10);
    std::size_t lookups = (std::strtoull(arguments[2], nullptr, 10) + BATCH - 1) / BATCH * BATCH;
    for (std::size_t number = 0; number < different; number++) {
        Record record{};
        std::uint64_t words[3] = {number, number * 7, ~number};
        std::memcpy(record.key.bytes, words, sizeof words);
        record.value[0] = number;
        records.push_back(record);
    }
    std::uint64_t state = 88172645463325252u, expected = 0;
    for (std::size_t i = 0; i < lookups; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        numbers.push_back(static_cast<std::uint32_t>(state % different));
        keys.push_back(records[numbers.back()].key);
        expected += numbers.back();
    }

    lookaside::OwnedBuffer<Key, Record, Hash, Same> owned(4 << 20);
    lookaside::Buffer<Key, Record, Hash, Same> shared(4 << 20);
    if (!owned || !shared) return 1;
    owned.monitor(false), shared.monitor(false);
    using Shared = decltype(shared.pin());

    static const char* const names[] = {"owner-only", "owner-only in batches", "pinned", "pinned in batches"};
    double best[] = {0, 0, 0, 0};
    for (std::size_t slice = 0; slice <= slices; slice++) {
        for (int form = 0; form < 4; form++) {
            Shared pin = shared.pin();
            auto began = std::chrono::steady_clock::now();
            std::uint64_t sum = form == 0   ? one_at_a_time(owned)
                                : form == 1 ? in_batches(owned)
                                : form == 2 ? one_at_a_time(pin)
                                            : in_batches(pin);
            std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
            if (sum != expected) return 3;
            double speed = static_cast<double>(lookups) / took.count();
            if (slice > 0 && speed > best[form]) best[form] = speed;
        }
    }
    // Where few were answered by the table, something else was measured.
    for (lookaside_counts counts : {owned.counts(), shared.counts()}) {
        if (counts.hits < counts.misses * 8) return 4;
    }
    for (int form = 0; form < 4; form++) std::printf("%s\t%.3f\n", names[form], best[form]);
}
