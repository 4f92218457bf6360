// std::unordered_map behind a Search Lookaside Buffer, by the header for C++. Added lines end in `// +`: without them,
// it is the program as it was. A node of the map stays where it is as long as it lives: it is the entry.
#include <unordered_map>

#include "workload.hpp"
#include <lookaside.hpp>  // +

using Index = std::unordered_map<std::string, std::uint64_t>;
using Entry = Index::value_type;
struct Same { bool operator()(const Entry& entry, const std::string& key) const { return entry.first == key; } };  // +

struct Store {
    Index index;
    lookaside::OwnedBuffer<std::string, Entry, std::hash<std::string>, Same> slb{4 << 20};  // +

    const std::uint64_t* get(const std::string& name) {
        if (auto* entry = slb.get(name)) return &entry->second;  // +
        auto at = index.find(name);
        if (at == index.end()) return nullptr;
        slb.emit(name, &*at);  // +
        return &at->second;
    }

    void put(const std::string& name, std::uint64_t value) { index[name] = value; }

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
