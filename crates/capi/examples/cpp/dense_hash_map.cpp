// google::dense_hash_map behind a Search Lookaside Buffer, by the header for C++ and with a lambda: the form that
// threads may share, here used by one. Added lines end in `// +`: without them, it is the program as it was. The table
// moves what it holds, so it holds pointers: the record is the entry.
#include <google/dense_hash_map>

#include "workload.hpp"
#include <lookaside.hpp>  // +

struct Record {
    std::string name;
    std::uint64_t value;
};
auto same = [](const Record& record, const std::string& name) { return record.name == name; };  // +

struct Store {
    google::dense_hash_map<std::string, Record*, std::hash<std::string>> index;
    lookaside::Buffer<std::string, Record, std::hash<std::string>, decltype(same)> slb{4 << 20, {}, same};  // +

    Store() {
        index.set_empty_key("");
        index.set_deleted_key("-");
    }

    ~Store() {
        for (auto& [name, record] : index) delete record;
    }

    const std::uint64_t* get(const std::string& name) {
        if (auto* record = slb.get(name)) return &record->value;  // +
        auto at = index.find(name);
        if (at == index.end()) return nullptr;
        slb.emit(name, at->second);  // +
        return &at->second->value;
    }

    void put(const std::string& name, std::uint64_t value) {
        Record*& record = index[name];
        if (record) {
            record->value = value;
        } else {
            record = new Record{name, value};
        }
    }

    void remove(const std::string& name) {
        auto at = index.find(name);
        if (at == index.end()) return;
        Record* record = at->second;
        index.erase(at);
        slb.invalidate(name);  // +
        delete record;
    }
};

int main() {
    Store store;
    run(store);
    report(store.slb.counts().hits);  // +
}
