// std::map behind a Search Lookaside Buffer, by the paper's own functions. Added lines end in `// +`: without them, it
// is the program as it was. A node of the map stays where it is as long as it lives: it is the entry.
#include <map>

#include "workload.hpp"
#include <lookaside.h>  // +

using Index = std::map<std::string, std::uint64_t>;
using Entry = Index::value_type;
static bool same(void* e, void* key) { return static_cast<Entry*>(e)->first == *static_cast<std::string*>(key); }  // +
static uint64_t hash_of_key(void* key) { return std::hash<std::string>()(*static_cast<std::string*>(key)); }  // +
static uint64_t hash_of_entry(void* entry) { return std::hash<std::string>()(static_cast<Entry*>(entry)->first); }  // +

struct Store {
    Index index;
    SLB* slb = SLB_create(4 << 20, same, hash_of_key, hash_of_entry);  // +
    ~Store() { SLB_destroy(slb); }  // +

    const std::uint64_t* get(std::string& name) {
        if (void* entry = SLB_get(slb, &name)) return &static_cast<Entry*>(entry)->second;  // +
        auto at = index.find(name);
        if (at == index.end()) return nullptr;
        SLB_emit(slb, &*at);  // +
        return &at->second;
    }

    void put(const std::string& name, std::uint64_t value) { index[name] = value; }

    void remove(std::string& name) {
        SLB_invalidate(slb, &name);  // +
        index.erase(name);
    }
};

int main() {
    Store store;
    run(store);
    lookaside_counts counts; lookaside_get_counts(store.slb, &counts, sizeof counts); report(counts.hits);  // +
}
