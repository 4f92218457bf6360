// absl::btree_map behind a Search Lookaside Buffer, by the header for C++. Added lines end in `// +`: without them, it
// is the program as it was. The tree moves what it holds, so it holds pointers: the record is the entry.
#include <memory>

#include <absl/container/btree_map.h>

#include "workload.hpp"
#include <lookaside.hpp>  // +

struct Record {
    std::string name;
    std::uint64_t value;
};
struct Same { bool operator()(const Record& entry, const std::string& key) const { return entry.name == key; } };  // +

struct Store {
    absl::btree_map<std::string, std::unique_ptr<Record>> index;
    lookaside::OwnedBuffer<std::string, Record, std::hash<std::string>, Same> slb{4 << 20};  // +

    const std::uint64_t* get(const std::string& name) {
        if (auto* record = slb.get(name)) return &record->value;  // +
        auto at = index.find(name);
        if (at == index.end()) return nullptr;
        slb.emit(name, at->second.get());  // +
        return &at->second->value;
    }

    void put(const std::string& name, std::uint64_t value) {
        auto record = std::make_unique<Record>(Record{name, value});
        slb.update(name, record.get());  // +
        index[name] = std::move(record);
    }

    void remove(const std::string& name) {
        slb.invalidate(name);  // +
        index.erase(name);
    }
};

int main() {
    Store store;
    run(store);
    report(store.slb.counts().hits);  // +
}
