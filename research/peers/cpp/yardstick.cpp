// The header for C++ and the calls of C beside a table of twenty lines, as research/peers/src/yardstick.rs compiles and
// runs it: one at a time, and in batches of 16 and of 64.
//
//     yardstick hash|tree RECORDS TABLE_BYTES WARM_UP LOOKUPS RUNS RANGE...
//
// prints, for each range and run, each face and each size of batch, in turn:
//
//     RANGE <tab> face <tab> batch <tab> millions of lookups a second <tab> hits <tab> misses
//
// All faces stand before one index, std::unordered_map or std::map, of RECORDS records of 24 + 64 bytes, each alone
// on the heap. Drawn are RANGE of them, by YCSB's Zipfian formula (0.99); ranks are strewn over all. Each face is
// warmed by the same draws; what is timed are others, which all are asked for before the next are drawn. In every other
// run the order of the faces is the reverse. A miss is a search of the index.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lookaside.hpp>

#include "twenty_lines.hpp"

struct Key {
    unsigned char bytes[24];

    std::uint64_t word(std::size_t number) const {
        std::uint64_t word;
        std::memcpy(&word, bytes + 8 * number, sizeof word);
        return word;
    }
};

static bool operator<(const Key& a, const Key& b) { return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) < 0; }

static bool operator==(const Key& a, const Key& b) {
    return ((a.word(0) ^ b.word(0)) | (a.word(1) ^ b.word(1)) | (a.word(2) ^ b.word(2))) == 0;
}

struct Record {
    Key key;
    std::uint64_t value[8];

    std::uint64_t read() const { return value[0] + value[7]; }
};

// As wyhash does it: folded multiplications. Each bit of it depends on the whole key.
struct Hash {
    using is_avalanching = void;

    static std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
        __extension__ using Wide = unsigned __int128;
        Wide product = static_cast<Wide>(a) * b;
        return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    }

    std::size_t operator()(const Key& key) const {
        std::uint64_t pair = fold(key.word(0) ^ 0x2d358dccaa6c78a5u, key.word(1) ^ 0x8bb84b93962eacc9u);
        return fold(pair ^ key.word(2), 0x4b33a62ed433d4a3u);
    }
};

struct Same {
    bool operator()(const Record& record, const Key& key) const { return record.key == key; }
};

static std::uint64_t mixed(std::uint64_t number) {
    number += 0x9e3779b97f4a7c15u;
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9u;
    number = (number ^ number >> 27) * 0x94d049bb133111ebu;
    return number ^ number >> 31;
}

static Key key_of(std::uint64_t record) {
    Key key;
    for (std::size_t number = 0; number < 3; number++) {
        record = mixed(record);
        std::memcpy(key.bytes + 8 * number, &record, sizeof record);
    }
    return key;
}

// YCSB's generator (Gray and others, "Quickly generating billion-record synthetic databases", SIGMOD 1994).
class Draws {
public:
    Draws(std::uint64_t range, std::uint64_t records) : range_(static_cast<double>(range)), records_(records) {
        constexpr double THETA = 0.99;
        double two = 1 + std::pow(0.5, THETA);
        for (std::uint64_t rank = 1; rank <= range; rank++) zeta_ += std::pow(static_cast<double>(rank), -THETA);
        two_ = two, power_ = 1 / (1 - THETA);
        eta_ = (1 - std::pow(2 / range_, 1 - THETA)) / (1 - two / zeta_);
    }

    std::uint64_t record() {
        double even = static_cast<double>(mixed(state_++) >> 11) / static_cast<double>(std::uint64_t(1) << 53);
        double scaled = even * zeta_, rank;
        if (scaled < 1) rank = 0;
        else if (scaled < two_) rank = 1;
        else rank = std::min(range_ * std::pow(eta_ * even - eta_ + 1, power_), range_ - 1);
        // A prime: ranks that are neighbours are none among the records.
        return (static_cast<std::uint64_t>(rank) * 2654435761u + 12345) % records_;
    }

private:
    double range_, zeta_ = 0, two_, power_, eta_;
    std::uint64_t records_, state_ = 1;
};

struct Asked {
    std::uint64_t sum, misses;
};

// What is asked of a face. It is one indirect call for millions of lookups.
struct Face {
    const char* name;
    std::function<void(std::size_t bytes)> make;
    std::function<Asked(const std::vector<Key>& keys, std::size_t batch)> ask;
};

template <class Index>
[[gnu::noinline]] static Record* search(const Index& index, const Key& key) {
    auto at = index.find(key);
    return at == index.end() ? nullptr : at->second;
}

// Looks up by `find` and `find_many`, as users of the header do.
template <class Index, class Table>
[[gnu::noinline]] static Asked look_up(const Index& index, Table& table, const std::vector<Key>& keys,
                                       std::size_t batch) {
    Asked asked{};
    auto missed = [&](const Key& key) {
        asked.misses++;
        return search(index, key);
    };
    if (batch == 1) {
        for (const Key& key : keys) asked.sum += table.find(key, [&] { return missed(key); })->read();
        return asked;
    }
    for (std::size_t first = 0; first < keys.size(); first += batch) {
        Record* found[64];
        std::size_t count = std::min(batch, keys.size() - first);
        table.find_many(&keys[first], count, found, missed);
        for (std::size_t i = 0; i < count; i++) asked.sum += found[i]->read();
    }
    return asked;
}

extern "C" {
static uint64_t hash_of(void* key) { return Hash()(*static_cast<const Key*>(key)); }
static bool is_of(void* entry, void* key) {
    return Same()(*static_cast<const Record*>(entry), *static_cast<const Key*>(key));
}
}

// The calls, in the words of the header's forms.
struct Calls {
    SLB* raw;

    static void* pointer(const Key& key) { return const_cast<void*>(static_cast<const void*>(&key)); }

    template <class Search>
    Record* find(const Key& key, Search&& search) {
        if (void* entry = SLB_get(raw, pointer(key))) return static_cast<Record*>(entry);
        Record* record = search();
        SLB_emit(raw, record);
        return record;
    }

    template <class Search>
    void find_many(const Key* keys, std::size_t count, Record** entries, Search&& search) {
        void *asked[64], *found[64];
        for (std::size_t i = 0; i < count; i++) asked[i] = pointer(keys[i]);
        lookaside_get_many(raw, asked, count, found, nullptr);
        for (std::size_t i = 0; i < count; i++) {
            entries[i] = static_cast<Record*>(found[i]);
            if (!entries[i]) SLB_emit(raw, entries[i] = search(keys[i]));
        }
    }
};

template <class Form>
static std::unique_ptr<Form> made(std::size_t bytes, bool monitored) {
    std::unique_ptr<Form> form(new Form(bytes));
    if (!*form) std::exit(3);
    form->monitor(monitored);
    return form;
}

template <class Index>
static std::vector<Face> faces(const Index& index) {
    using Twenty = peers::TwentyLines<Key, Record, Hash, Same>;
    using Owned = lookaside::OwnedBuffer<Key, Record, Hash, Same>;
    using Shared = lookaside::Buffer<Key, Record, Hash, Same>;
    std::vector<Face> faces;

    auto twenty = std::make_shared<std::unique_ptr<Twenty>>();
    faces.push_back({"twenty lines", [=](std::size_t bytes) { twenty->reset(new Twenty(bytes)); },
                     [=, &index](const std::vector<Key>& keys, std::size_t batch) {
                         return look_up(index, **twenty, keys, batch);
                     }});
    for (bool monitored : {true, false}) {
        auto owned = std::make_shared<std::unique_ptr<Owned>>();
        faces.push_back({monitored ? "OwnedBuffer" : "OwnedBuffer, not monitored",
                         [=](std::size_t bytes) { *owned = made<Owned>(bytes, monitored); },
                         [=, &index](const std::vector<Key>& keys, std::size_t batch) {
                             return look_up(index, **owned, keys, batch);
                         }});
    }
    auto shared = std::make_shared<std::unique_ptr<Shared>>();
    faces.push_back({"Buffer under a Pin", [=](std::size_t bytes) { *shared = made<Shared>(bytes, true); },
                     [=, &index](const std::vector<Key>& keys, std::size_t batch) {
                         auto pin = (*shared)->pin();
                         return look_up(index, pin, keys, batch);
                     }});
    auto calls = std::make_shared<Calls>();
    auto create = [=](std::size_t bytes) {
        if (calls->raw) SLB_destroy(calls->raw);
        lookaside_options options = lookaside::default_options(bytes);
        options.match = is_of, options.keyhash = options.entryhash = hash_of, options.entry_bytes = sizeof(Record);
        options.avalanching = true;
        calls->raw = lookaside_create(&options);
        if (!calls->raw) std::exit(3);
    };
    faces.push_back({"calls of C", create, [=, &index](const std::vector<Key>& keys, std::size_t batch) {
                         lookaside_pin(calls->raw);
                         Asked asked = look_up(index, *calls, keys, batch);
                         lookaside_unpin(calls->raw);
                         return asked;
                     }});
    return faces;
}

// The processor's time: that of neighbours on the same core is not counted.
static double microseconds() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

struct Sizes {
    std::uint64_t records;
    std::size_t bytes, warm_up, lookups, runs;
};

template <class Index>
static int measure(Index& index, const Sizes& sizes, const std::vector<std::uint64_t>& ranges) {
    for (std::uint64_t number = 0; number < sizes.records; number++) {
        Key key = key_of(number);
        index[key] = new Record{key, {number, number, number, number, number, number, number, number}};
    }
    std::vector<Face> all = faces(index);
    for (std::uint64_t range : ranges) {
        Draws draws(range, sizes.records);
        std::vector<Key> keys(sizes.warm_up);
        for (Key& key : keys) key = key_of(draws.record());
        for (Face& face : all) face.make(sizes.bytes), face.ask(keys, 1);
        for (std::size_t run = 0; run < sizes.runs; run++) {
            for (std::size_t batch : {1, 16, 64}) {
                std::uint64_t expected = 0;
                std::vector<Key> first(sizes.lookups / 10 + 1);
                for (Key& key : first) key = key_of(draws.record());
                keys.resize(sizes.lookups);
                for (Key& key : keys) {
                    std::uint64_t record = draws.record();
                    key = key_of(record), expected += 2 * record;
                }
                for (std::size_t turn = 0; turn < all.size(); turn++) {
                    Face& face = all[run % 2 ? all.size() - 1 - turn : turn];
                    face.ask(first, batch);
                    double began = microseconds();
                    Asked asked = face.ask(keys, batch);
                    double speed = static_cast<double>(keys.size()) / (microseconds() - began);
                    if (asked.sum != expected) return 4;
                    std::printf("%llu\t%s\t%zu\t%.4f\t%llu\t%llu\n", static_cast<unsigned long long>(range), face.name,
                                batch, speed, static_cast<unsigned long long>(keys.size() - asked.misses),
                                static_cast<unsigned long long>(asked.misses));
                }
            }
        }
    }
    return 0;
}

int main(int count, char** arguments) {
    if (count < 8) return 2;
    auto number = [&](int at) { return std::strtoull(arguments[at], nullptr, 10); };
    Sizes sizes{number(2), number(3), number(4), number(5), number(6)};
    std::vector<std::uint64_t> ranges;
    for (int at = 7; at < count; at++) ranges.push_back(number(at));
    if (std::string(arguments[1]) == "tree") {
        std::map<Key, Record*> index;
        return measure(index, sizes, ranges);
    }
    std::unordered_map<Key, Record*, Hash> index;
    index.reserve(sizes.records);
    return measure(index, sizes, ranges);
}
