// lookaside.hpp: both forms, lambdas with captures, pins, locks, writes, retirement, several indexes behind one buffer,
// exceptions of the user's comparison.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "lookaside.hpp"

static std::atomic<int> alive{0};

struct Record {
    std::string name;
    int value;
    Record(std::string name, int value) : name(std::move(name)), value(value) { alive++; }
    ~Record() { alive--; }
};

struct Same {
    bool operator()(const Record& record, const std::string& name) const { return record.name == name; }
};

struct Number {
    bool operator()(const Record& record, int number) const { return record.value == number; }
};

template <class Buffer>
static void used_alone(Buffer& slb, int& compared) {
    slb.monitor(false);
    std::map<std::string, std::unique_ptr<Record>> index;
    for (int i = 0; i < 100; i++) {
        std::string name = "name " + std::to_string(i);
        index[name] = std::make_unique<Record>(name, i);
    }
    int searched = 0;
    auto search = [&](const std::string& name) {
        searched++;
        auto at = index.find(name);
        return at == index.end() ? nullptr : at->second.get();
    };
    for (int turn = 0; turn < 3; turn++) {
        for (auto& [name, record] : index) {
            CHECK(slb.find(name, [&] { return search(name); }) == record.get());
        }
    }
    CHECK(searched == 100 && compared >= 200);
    CHECK(slb.find("nobody", [&] { return search("nobody"); }) == nullptr);
    std::vector<std::string> names;
    for (int i = 0; i < 50; i++) names.push_back("name " + std::to_string(i * 3));
    std::vector<Record*> found(50);
    CHECK(slb.get_many(names.data(), 50, found.data()) == 34);
    for (int i = 0; i < 50; i++) CHECK(i < 34 ? found[i] == index[names[i]].get() : found[i] == nullptr);
    auto fresh = std::make_unique<Record>("name 3", 33);
    slb.update("name 3", fresh.get());
    index["name 3"] = std::move(fresh);
    CHECK(slb.get("name 3")->value == 33);
    slb.invalidate("name 3");
    CHECK(slb.get("name 3") == nullptr);
    CHECK(slb.counts().hits == 200 + 34 + 1);
    // "name 3" has gone; the others are there, and one of them is warmer than all.
    CHECK(slb.occupancy() == 99);
    for (int i = 0; i < 300; i++) CHECK(slb.get("name 7") == index["name 7"].get());
    auto warm = slb.hottest(1000);
    CHECK(warm.size() == 99 && slb.hottest(5).size() == 5 && slb.hottest(0).empty());
    CHECK(warm[0].entry == index["name 7"].get() && warm[0].temperature > warm[1].temperature);
    for (std::size_t i = 1; i < warm.size(); i++) CHECK(warm[i - 1].temperature >= warm[i].temperature);
    CHECK(slb.resize(8192) && slb.get("name 4") == nullptr && !slb.resize(1) && *lookaside::last_error());
    slb.emit("name 4", index["name 4"].get());
    CHECK(slb.get("name 4") == index["name 4"].get());
    CHECK(slb.clear() && slb.get("name 4") == nullptr && slb.occupancy() == 0);
}

// Whoever searches may use the buffer meanwhile: replace its table, put the entry in by himself, throw.
template <class Buffer>
static void searched_within() {
    Buffer slb(4096);
    slb.monitor(false);
    std::vector<std::unique_ptr<Record>> records;
    std::vector<std::string> names;
    for (int i = 0; i < 3000; i++) {
        records.push_back(std::make_unique<Record>("name " + std::to_string(i), i));
        names.push_back(records.back()->name);
    }
    int searched = 0;
    auto search = [&](const std::string& name) {
        Record* record = records[std::stoul(name.substr(5))].get();
        searched++;
        if (searched % 5 == 0) CHECK(slb.resize(64 * (1 + searched % 97)));
        if (searched % 7 == 0) CHECK(slb.find(name, [&] { return record; }) == record);
        if (searched % 11 == 0) slb.emit(name, record);
        if (searched % 13 == 0) slb.monitor(searched % 2 == 0);
        if (searched % 17 == 0) throw std::runtime_error("by a search");
        return record;
    };
    for (int turn = 0; turn < 4; turn++) {
        for (std::size_t i = 0; i < records.size(); i += 50) {
            std::vector<Record*> found(50);
            try {
                if (turn % 2 == 0) {
                    slb.find_many(&names[i], 50, found.data(), search);
                } else {
                    for (std::size_t k = 0; k < 50; k++) {
                        found[k] = slb.find(names[i + k], [&] { return search(names[i + k]); });
                    }
                }
            } catch (const std::runtime_error&) {
                continue;
            }
            for (std::size_t k = 0; k < 50; k++) CHECK(found[k] == records[i + k].get());
        }
    }
    CHECK(searched > 3000);
    for (auto& record : records) slb.invalidate(record->name);
    CHECK(slb.occupancy() == 0);
}

// Keys of C are looked at: they may be constants.
static std::uint64_t hash_of_name(void* name) { return std::hash<std::string_view>()(static_cast<const char*>(name)); }
static bool is_named(void* entry, void* name) {
    return static_cast<Record*>(entry)->name == static_cast<const char*>(name);
}
static std::uint64_t hash_of_record(void* entry) {
    return std::hash<std::string_view>()(static_cast<Record*>(entry)->name);
}

static void constant_keys() {
    SLB* b = SLB_create(4096, is_named, hash_of_name, hash_of_record);
    Record rome("rome", 753);
    SLB_emit(b, &rome);
    CHECK(SLB_get(b, "rome") == &rome && SLB_get(b, "remus") == nullptr);
    SLB_invalidate(b, "rome");
    CHECK(SLB_get(b, "rome") == nullptr);
    SLB_destroy(b);
}

// Used as it is, or mixed: what a hash says of itself decides.
struct Even {
    using is_avalanching = void;
    std::size_t operator()(int key) const { return static_cast<std::size_t>(key) * 0x9e3779b97f4a7c15u; }
};
struct Uneven {
    using is_avalanching = std::false_type;
    std::size_t operator()(int key) const { return static_cast<std::size_t>(key); }
};
static_assert(lookaside::detail::IsAvalanching<Even>::value && !lookaside::detail::IsAvalanching<Uneven>::value);
static_assert(!lookaside::detail::IsAvalanching<std::hash<int>>::value);

template <class Hash>
static void found_by() {
    struct Same {
        bool operator()(int entry, int key) const { return entry == key; }
    };
    lookaside::OwnedBuffer<int, int, Hash, Same> owned(1 << 18);
    lookaside::Buffer<int, int, Hash, Same> shared(1 << 18);
    std::vector<int> numbers(2000);
    for (int number = 0; number < 2000; number++) {
        numbers[number] = number;
        owned.emit(number, &numbers[number]), shared.emit(number, &numbers[number]);
    }
    auto pin = shared.pin();
    // Of a batch, those that are missing are searched, and found by the next.
    int keys[20], searched = 0;
    int *found[20], absent = 5000;
    for (int i = 0; i < 20; i++) keys[i] = i % 5 == 0 ? 3000 + i : i;
    auto search = [&](int) { return searched++, &absent; };
    owned.find_many(keys, 20, found, search), pin.find_many(keys, 20, found, search);
    CHECK(searched == 8 && found[5] == &absent && found[6] == &numbers[6]);
    {
        // What waits to be emitted is, when the pin goes.
        auto other = shared.pin();
        CHECK(other.find(4000, [&] { return &absent; }) == &absent);
    }
    CHECK(shared.counts().emissions == 2001);
    for (int number = 0; number < 2000; number++) {
        CHECK(owned.get(number) == &numbers[number] && pin.get(number) == &numbers[number]);
    }
    lookaside::OwnedBuffer<int, int, Hash, Same> moved = std::move(owned);
    CHECK(moved.get(7) == &numbers[7] && owned.get(7) == nullptr);
}

int main() {
    constant_keys();
    found_by<Even>(), found_by<Uneven>();
    searched_within<lookaside::OwnedBuffer<std::string, Record, std::hash<std::string>, Same>>();
    searched_within<lookaside::Buffer<std::string, Record, std::hash<std::string>, Same>>();
    int compared = 0;
    auto match = [&compared](const Record& record, const std::string& name) {
        compared++;
        if (name == "thrown") throw std::runtime_error("by a comparison");
        return record.name == name;
    };
    using Hash = std::hash<std::string>;
    {
        lookaside::OwnedBuffer<std::string, Record, Hash, decltype(match)> slb(1 << 20, {}, match);
        CHECK(slb);
        used_alone(slb, compared);
    }
    compared = 0;
    {
        lookaside::Buffer<std::string, Record, Hash, decltype(match)> slb(lookaside::paper_options(1 << 20), {}, match);
        CHECK(slb);
        used_alone(slb, compared);
    }
    {
        lookaside::Buffer<std::string, Record, Hash, decltype(match)> none(std::size_t{0}, {}, match);
        CHECK(!none && *lookaside::last_error());
        Record record("one", 1);
        CHECK(none.get("one") == nullptr && none.find("one", [&] { return &record; }) == &record);
        none.invalidate("one");
        std::string name = "one";
        Record* found = &record;
        CHECK(none.get_many(&name, 1, &found) == 0 && found == nullptr);
        CHECK(none.pin().get("one") == nullptr);
        none.reclaim();
        CHECK(none.occupancy() == 0 && none.hottest(1).empty() && !(none.share<int, Record, std::hash<int>, Number>()));
    }
    {
        lookaside_options options = lookaside::default_options(1 << 16);
        options.indexes = 2;
        lookaside::Buffer<std::string, Record, Hash, Same> names(options);
        auto numbers = names.share<int, Record, std::hash<int>, Number>();
        CHECK(names && numbers);
        auto third = names.share<int, Record, std::hash<int>, Number>();
        CHECK(!third && *lookaside::last_error());
        names.monitor(false);
        auto one = new Record("one", 1), two = new Record("two", 2);
        names.emit("one", one);
        numbers.emit(2, two);
        CHECK(names.get("one") == one && numbers.get(2) == two && numbers.get(1) == nullptr);
        // The table is one, and each index sees its own of it.
        CHECK(names.occupancy() == 2 && numbers.occupancy() == 2 && names.counts().hits == 2);
        CHECK(names.hottest(9).size() == 1 && numbers.hottest(9)[0].entry == two);
        int before = alive;
        numbers.invalidate(2);
        numbers.retire(two);
        for (int i = 0; i < 1000 && alive == before; i++) numbers.reclaim();
        CHECK(alive == before - 1);
        names.invalidate("one");
        names.retire(one);
    }
    CHECK(alive == 0);
    {
        // One hash for all, so that the comparison is asked about a key that is not there, and throws through our own
        // frames.
        auto same_hash = [](const std::string&) { return std::size_t{1}; };
        lookaside::Buffer<std::string, Record, decltype(same_hash), decltype(match)> slb(1 << 16, same_hash, match);
        slb.monitor(false);
        Record record("one", 1);
        slb.emit("one", &record);
        bool caught = false;
        try {
            slb.get("thrown");
        } catch (const std::runtime_error&) {
            caught = true;
        }
        CHECK(caught && slb.get("one") == &record);
    }
    {
        lookaside::Buffer<std::string, Record, Hash, Same> slb(1 << 16);
        slb.monitor(false);
        std::atomic<Record*> index{new Record("one", 0)};
        std::atomic<bool> writing{true};
        std::thread reader([&] {
            int last = 0;
            while (writing) {
                auto pin = slb.pin();
                Record* found = pin.find("one", [&] { return index.load(); });
                CHECK(found->name == "one" && found->value >= last);
                last = found->value;
                pin.refresh();
            }
        });
        for (int i = 1; i <= 20000; i++) {
            Record* fresh = new Record("one", i);
            Record* old;
            {
                auto write = slb.write("one");
                old = index.exchange(fresh);
                write.put(fresh);
            }
            slb.retire(old);
        }
        writing = false;
        reader.join();
        {
            auto lock = slb.lock("one");
            CHECK(slb.find("one", [&] { return index.load(); })->value == 20000);
            slb.invalidate("one");
        }
        CHECK(slb.get("one") == nullptr && slb.verdict().on);
        slb.retire(index.load());
    }
    CHECK(alive == 0);
    std::puts("wrapper: as it says");
}
