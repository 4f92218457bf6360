// A key-value store of one index, without the network: kv REQUESTS name=value..., as driver.hpp has it.

#include <type_traits>

#include "driver.hpp"
#include "index.hpp"

namespace {

template <class FastPath>
class Store {
public:
    Store(const Options &options, FastPath path) : value(options.value), hash(options.hash), path(path) {}

    static constexpr bool gets_leave_nothing = std::is_same_v<FastPath, Alone<Record>>;

    Tally tally;

    void set() { index.insert(Record::make(records++, value)); }

    bool get(const Key &key) {
        Record *record = path.lookup(key, hash, tally, [&] { return index.find(key); });
        if (!record) return false;
        answer(record->value(), value);
        return true;
    }

private:
    const std::size_t value;
    const FastHash hash;
    FastPath path;
    Index index;
    std::uint64_t records = 0;
};

} // namespace

int main(int count, char **arguments) {
    Options options(count - 1, arguments + 1);
    return with_fast_path<Record>(options, [&](auto path) {
        // On the heap, for good: its end would only cost time.
        auto *store = new Store<decltype(path)>(options, path);
        return Driver(options, *store).run();
    });
}
