// A container of C++, alone or with a Search Lookaside Buffer in front, as research/peers/src/lookaside/containers.rs
// knows it.
//
// A call takes many keys or requests, so that what is measured is the container and the border between C++ and the
// library, not the one between the experiment and C++. Rust has the lock of the index, once a call: whoever looks up
// shares it, whoever writes has it alone. Nothing is thrown across: a container that is made without memory is null;
// one that has none for a record ends the process, as in Rust.
#ifndef LOOKASIDE_PEERS_CONTESTANT_HPP
#define LOOKASIDE_PEERS_CONTESTANT_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include <sys/mman.h>

#include <lookaside_inline.h>

#include "../../../sim-qemu/guests/stlt_software.h"

namespace peers {

/// Keys that a caller hands over at once where it asks in batches.
constexpr std::size_t BATCH = 16;

/// As in research/lab/src/lookaside/record.rs: bytes, aligned to one.
template <std::size_t N>
struct Key {
    unsigned char bytes[N];

    std::uint64_t word(std::size_t number) const {
        std::uint64_t word;
        std::memcpy(&word, bytes + 8 * number, sizeof word);
        return word;
    }

    std::string_view view() const { return {reinterpret_cast<const char *>(bytes), N}; }

    friend bool operator<(const Key &a, const Key &b) { return std::memcmp(a.bytes, b.bytes, N) < 0; }

    friend bool operator==(const Key &a, const Key &b) {
        std::uint64_t differences = 0;
        for (std::size_t number = 0; number < N / 8; number++) differences |= a.word(number) ^ b.word(number);
        return differences == 0;
    }

    friend bool operator!=(const Key &a, const Key &b) { return !(a == b); }
};

/// With the standard library's hash, which knows strings and no arrays.
struct StandardHash {
    template <std::size_t N>
    std::size_t operator()(const Key<N> &key) const {
        return std::hash<std::string_view>()(key.view());
    }
};

struct Value {
    std::uint64_t words[8];

    explicit Value(std::uint64_t record) {
        for (std::uint64_t &word : words) word = record;
    }

    std::uint64_t read() const { return words[0] + words[7]; }
};

/// With a buffer in front: one entry on the heap.
template <std::size_t N>
struct Record {
    Key<N> key;
    Value value;

    Record(const Key<N> &key, std::uint64_t record) : key(key), value(record) {}
};

template <std::size_t N>
struct Request {
    Key<N> key;
    std::uint64_t record;
    bool set;
};

struct Tally {
    std::uint64_t found, sum;

    void count(const Value *value) {
        if (value) {
            found++;
            sum += value->read();
        }
    }
};

/// What is asked of all.
class Contestant {
public:
    virtual ~Contestant() = default;
    virtual void get(bool batches, const void *keys, std::size_t count, Tally &tally) = 0;
    virtual void perform(bool batches, const void *requests, std::size_t count, Tally &tally) = 0;
    virtual bool resize(std::size_t) { return true; }
    virtual void counts(lookaside_counts &) {}
    virtual void verdict(lookaside_verdict &) {}
};

/// What the buffer is asked with: one folded multiplication for three words. It need not be a good hash, only different
/// for different keys: the library mixes it once more.
template <std::size_t N>
std::uint64_t hash(const Key<N> &key) {
    std::uint64_t state = key.word(0);
    for (std::size_t number = 1; number + 1 < N / 8; number += 2) {
        __extension__ using Wide = unsigned __int128;
        Wide product = static_cast<Wide>(state ^ 0x2d358dccaa6c78a5u) * (key.word(number) ^ 0x8bb84b93962eacc9u);
        state = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64) ^ key.word(number + 1);
    }
    static_assert(N % 16 == 8, "words in pairs after the first");
    return state;
}

/// The callbacks of the library. A record begins with its key, so that one hash serves both.
template <std::size_t N>
std::uint64_t hash_of(void *key) {
    return hash(*static_cast<const Key<N> *>(key));
}

template <std::size_t N>
bool is_of(void *entry, void *key) {
    return static_cast<const Record<N> *>(entry)->key == *static_cast<const Key<N> *>(key);
}

template <std::size_t N>
void *address(const Key<N> &key) {
    return const_cast<Key<N> *>(&key);
}

/// The item of a key, or null.
template <class Index, std::size_t N>
auto search(const Index &index, const Key<N> &key) {
    auto at = index.find(key);
    return at == index.end() ? nullptr : at->second;
}

/// A container as its users have it: from keys to pointers to values.
template <class Container, std::size_t N>
class Alone final : public Contestant {
public:
    explicit Alone(std::size_t records) { Container::prepare(index_, records); }

    ~Alone() override {
        for (auto &item : index_) delete item.second;
    }

    void get(bool, const void *keys, std::size_t count, Tally &tally) override {
        const Key<N> *key = static_cast<const Key<N> *>(keys);
        for (std::size_t i = 0; i < count; i++) tally.count(search(index_, key[i]));
    }

    void perform(bool, const void *requests, std::size_t count, Tally &tally) override {
        const Request<N> *request = static_cast<const Request<N> *>(requests);
        for (std::size_t i = 0; i < count; i++, request++) {
            if (request->set) {
                Value *&place = index_[request->key];
                delete std::exchange(place, new Value(request->record));
            } else {
                tally.count(search(index_, request->key));
            }
        }
    }

private:
    typename Container::template Index<N, Value> index_;
};

/// Lookups in a buffer of either form, compiled in.
template <class Raw>
class Compiled {
public:
    /// Whether the monitor has not switched the table off.
    bool uses_table() const { return session_->uses_table != 0; }

    template <std::size_t N>
    void *get(const Key<N> &key) {
        return lookaside_inline_get(raw_, session_, hash(key), address(key), is_of<N>);
    }

    template <std::size_t N>
    std::size_t get_many(void *const *keys, std::size_t count, void **entries) {
        return lookaside_inline_get_group(raw_, session_, keys, count, entries, sizeof(Record<N>), hash_of<N>,
                                          is_of<N>);
    }

protected:
    Compiled(Raw *raw, lookaside_session *session) : raw_(raw), session_(session) {}

    Raw *raw_;
    lookaside_session *session_;
};

/// The buffer as threads share it, its hit path compiled in.
struct Inlined {
    using Raw = SLB;
    static Raw *create(const lookaside_options &options) { return lookaside_create(&options); }
    static void destroy(Raw *raw) { SLB_destroy(raw); }
    static bool resize(Raw *raw, std::size_t bytes) { return lookaside_resize(raw, bytes); }
    static void counts(Raw *raw, lookaside_counts &counts) { lookaside_get_counts(raw, &counts, sizeof counts); }
    static void verdict(Raw *raw, lookaside_verdict &verdict) { lookaside_get_verdict(raw, &verdict, sizeof verdict); }
    /// Nobody writes the index meanwhile: no ticket is needed.
    template <std::size_t N>
    static void emit(Raw *raw, const Key<N> &key, void *entry) {
        lookaside_emit_key(raw, address(key), entry, nullptr);
    }
    template <std::size_t N>
    static void update(Raw *raw, const Key<N> &key, void *entry) {
        SLB_update(raw, address(key), entry);
    }

    /// A thread at the buffer, pinned before it asks for its session.
    class Visit : public Compiled<Raw> {
    public:
        explicit Visit(Raw *raw) : Compiled((lookaside_pin(raw), raw), lookaside_inline_attach(raw)) {}
        ~Visit() { lookaside_unpin(raw_); }
    };
};

/// The same buffer, asked by calls.
struct Called : Inlined {
    class Visit {
    public:
        explicit Visit(Raw *raw) : raw_(raw) { lookaside_pin(raw); }
        ~Visit() { lookaside_unpin(raw_); }

        /// Callers need not know.
        bool uses_table() const { return true; }

        template <std::size_t N>
        void *get(const Key<N> &key) {
            return SLB_get(raw_, address(key));
        }

        template <std::size_t N>
        std::size_t get_many(void *const *keys, std::size_t count, void **entries) {
            return lookaside_get_many(raw_, keys, count, entries, nullptr);
        }

    private:
        Raw *raw_;
    };
};

/// The form for one owner, compiled in.
struct Owned {
    using Raw = lookaside_owned;
    static Raw *create(const lookaside_options &options) { return lookaside_owned_create(&options); }
    static void destroy(Raw *raw) { lookaside_owned_destroy(raw); }
    static bool resize(Raw *raw, std::size_t bytes) { return lookaside_owned_resize(raw, bytes); }
    static void counts(Raw *raw, lookaside_counts &counts) { lookaside_owned_get_counts(raw, &counts, sizeof counts); }
    static void verdict(Raw *raw, lookaside_verdict &verdict) {
        lookaside_owned_get_verdict(raw, &verdict, sizeof verdict);
    }
    template <std::size_t N>
    static void emit(Raw *raw, const Key<N> &key, void *entry) {
        lookaside_owned_emit_key(raw, address(key), entry);
    }
    template <std::size_t N>
    static void update(Raw *raw, const Key<N> &key, void *entry) {
        lookaside_owned_update(raw, address(key), entry);
    }

    class Visit : public Compiled<Raw> {
    public:
        explicit Visit(Raw *raw) : Compiled(raw, lookaside_owned_attach(raw, LOOKASIDE_INLINE_LAYOUT)) {}
    };
};

/// A container, from keys to pointers to records, with a buffer in front.
template <class Container, std::size_t N, class Front>
class Fronted final : public Contestant {
    using Visit = typename Front::Visit;

public:
    Fronted(std::size_t records, lookaside_options options) {
        options.match = is_of<N>;
        options.keyhash = options.entryhash = hash_of<N>;
        options.entry_bytes = sizeof(Record<N>);
        options.layout = std::is_same_v<Front, Called> ? 0 : LOOKASIDE_INLINE_LAYOUT;
        raw_.reset(Front::create(options));
        if (!raw_) throw std::bad_alloc();
        Container::prepare(index_, records);
    }

    ~Fronted() override {
        for (auto &item : index_) delete item.second;
    }

    void get(bool batches, const void *keys, std::size_t count, Tally &tally) override {
        Visit visit(raw_.get());
        const Key<N> *key = static_cast<const Key<N> *>(keys);
        if (batches) {
            get_batches(visit, key, count, tally);
        } else {
            for (std::size_t i = 0; i < count; i++) get_one(visit, key[i], tally);
        }
    }

    void perform(bool batches, const void *requests, std::size_t count, Tally &tally) override {
        Visit visit(raw_.get());
        const Request<N> *request = static_cast<const Request<N> *>(requests);
        Key<N> asked[BATCH];
        std::size_t waiting = 0;
        for (std::size_t i = 0; i < count; i++, request++) {
            if (request->set) {
                set(request->key, request->record);
            } else if (!batches) {
                get_one(visit, request->key, tally);
            } else {
                asked[waiting++] = request->key;
                if (waiting == BATCH) {
                    get_batches(visit, asked, BATCH, tally);
                    waiting = 0;
                }
            }
        }
        get_batches(visit, asked, waiting, tally);
    }

    bool resize(std::size_t bytes) override { return Front::resize(raw_.get(), bytes); }
    void counts(lookaside_counts &counts) override { Front::counts(raw_.get(), counts); }
    void verdict(lookaside_verdict &verdict) override { Front::verdict(raw_.get(), verdict); }

private:
    struct Destroy {
        void operator()(typename Front::Raw *raw) const { Front::destroy(raw); }
    };

    static const Value *value(void *entry) { return entry ? &static_cast<const Record<N> *>(entry)->value : nullptr; }

    [[gnu::always_inline]] void get_one(Visit &visit, const Key<N> &key, Tally &tally) {
        void *entry = visit.get(key);
        if (!entry) entry = visit.uses_table() ? search_and_emit(key) : search(index_, key);
        tally.count(value(entry));
    }

    [[gnu::always_inline]] void get_batches(Visit &visit, const Key<N> *keys, std::size_t count, Tally &tally) {
        for (std::size_t first = 0; first < count; first += BATCH) {
            std::size_t length = count - first < BATCH ? count - first : BATCH;
            void *asked[BATCH], *entries[BATCH];
            for (std::size_t i = 0; i < length; i++) asked[i] = address(keys[first + i]);
            if (visit.template get_many<N>(asked, length, entries) < length) {
                search_missed(visit, asked, length, entries);
            }
            for (std::size_t i = 0; i < length; i++) tally.count(value(entries[i]));
        }
    }

    /// Not inlined: it is rare, and long.
    [[gnu::noinline]] void *search_and_emit(const Key<N> &key) {
        Record<N> *record = search(index_, key);
        if (record) Front::emit(raw_.get(), key, record);
        return record;
    }

    [[gnu::noinline]] void search_missed(Visit &visit, void *const *keys, std::size_t count, void **entries) {
        for (std::size_t i = 0; i < count; i++) {
            if (entries[i]) continue;
            const Key<N> &key = *static_cast<const Key<N> *>(keys[i]);
            entries[i] = visit.uses_table() ? search_and_emit(key) : search(index_, key);
        }
    }

    /// Nobody else reads or writes meanwhile, so that the old record may go at once.
    void set(const Key<N> &key, std::uint64_t number) {
        Record<N> *&place = index_[key];
        std::unique_ptr<Record<N>> old(std::exchange(place, new Record<N>(key, number)));
        if (old) Front::update(raw_.get(), key, place);
    }

    typename Container::template Index<N, Record<N>> index_;
    std::unique_ptr<typename Front::Raw, Destroy> raw_;
};

/// STLT-SW, compiled in, for one owner: the table that guests of the simulator have.
struct Software {
    struct Raw {
        stlt_software table{};
        std::size_t bytes = 0;
        std::uint64_t hits = 0, misses = 0;

        ~Raw() { std::free(table.rows); }

        /// An empty table of four ways, in large pages where the system gives any, as the other one is.
        bool open(std::size_t size) {
            constexpr std::size_t WAYS = 4, LARGE = std::size_t(2) << 20;
            std::size_t rows = 1;
            while (rows <= size / sizeof(stlt_row) / 2) rows *= 2;
            if (rows < WAYS || size < WAYS * sizeof(stlt_row)) return false;
            std::size_t length = rows * sizeof(stlt_row);
            void *memory;
            if (posix_memalign(&memory, length < LARGE ? 64 : LARGE, length) != 0) return false;
            if (length >= LARGE) madvise(memory, length, MADV_HUGEPAGE);
            std::memset(memory, 0, length);
            std::free(table.rows);
            table = {static_cast<stlt_row *>(memory), rows / WAYS - 1, WAYS, UINT64_C(0x2545f4914f6cdd1d)};
            bytes = length;
            return true;
        }
    };

    static Raw *create(const lookaside_options &options) {
        std::unique_ptr<Raw> raw(new Raw);
        return raw->open(options.size) ? raw.release() : nullptr;
    }

    static void destroy(Raw *raw) { delete raw; }
    static bool resize(Raw *raw, std::size_t bytes) { return raw->open(bytes); }

    static void counts(Raw *raw, lookaside_counts &counts) {
        counts.hits = raw->hits;
        counts.misses = raw->misses;
        counts.capacity = raw->bytes / sizeof(stlt_row);
        counts.bytes = raw->bytes;
    }

    static void verdict(Raw *, lookaside_verdict &) {}

    /// The other table mixes what it is given, too.
    template <std::size_t N>
    static std::uint64_t integer(const Key<N> &key) {
        std::uint64_t hash = peers::hash(key);
        hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93u;
        return hash ^ hash >> 32;
    }

    template <std::size_t N>
    static void emit(Raw *raw, const Key<N> &key, void *entry) {
        stlt_software_insert(&raw->table, integer(key), entry);
    }

    /// Puts the new entry in only where the old one was: what is written is not hot for that.
    template <std::size_t N>
    static void update(Raw *raw, const Key<N> &key, void *entry) {
        std::uint64_t at = integer(key);
        stlt_software_insert(&raw->table, at, stlt_software_load(&raw->table, at) ? entry : nullptr);
    }

    class Visit {
    public:
        explicit Visit(Raw *raw) : raw_(raw) {}
        bool uses_table() const { return true; }

        template <std::size_t N>
        void *get(const Key<N> &key) {
            return of(stlt_software_load(&raw_->table, integer(key)), key);
        }

        template <std::size_t N>
        std::size_t get_many(void *const *keys, std::size_t count, void **entries) {
            std::uint64_t integers[BATCH];
            for (std::size_t i = 0; i < count; i++) {
                integers[i] = integer(*static_cast<const Key<N> *>(keys[i]));
                __builtin_prefetch(stlt_software_set_(&raw_->table, integers[i]));
            }
            for (std::size_t i = 0; i < count; i++) {
                entries[i] = stlt_software_load(&raw_->table, integers[i]);
                const char *entry = static_cast<const char *>(entries[i]);
                __builtin_prefetch(entry);
                __builtin_prefetch(entry + 64);
                __builtin_prefetch(entry + sizeof(Record<N>) - 1);
            }
            std::size_t found = 0;
            for (std::size_t i = 0; i < count; i++) {
                entries[i] = of(entries[i], *static_cast<const Key<N> *>(keys[i]));
                found += entries[i] != nullptr;
            }
            return found;
        }

    private:
        /// The entry, if it is that of the key.
        template <std::size_t N>
        void *of(void *entry, const Key<N> &key) {
            bool same = entry && static_cast<const Record<N> *>(entry)->key == key;
            same ? raw_->hits++ : raw_->misses++;
            return same ? entry : nullptr;
        }

        Raw *raw_;
    };
};

/// How a container takes part: the same numbers as in containers.rs.
enum class Form : std::uint32_t { Alone, Inlined, Called, Owned, Stlt };

template <class Container, std::size_t N>
Contestant *make(Form form, std::size_t records, const lookaside_options *options) {
    switch (form) {
        case Form::Alone: return new Alone<Container, N>(records);
        case Form::Inlined: return new Fronted<Container, N, Inlined>(records, *options);
        case Form::Called: return new Fronted<Container, N, Called>(records, *options);
        case Form::Owned: return new Fronted<Container, N, Owned>(records, *options);
        case Form::Stlt: return new Fronted<Container, N, Software>(records, *options);
    }
    return nullptr;
}

/// Null without memory, or for keys of a length that there is not.
template <class Container>
Contestant *make(Form form, std::size_t key_bytes, std::size_t records, const lookaside_options *options) noexcept {
    try {
        switch (key_bytes) {
            case 8: return make<Container, 8>(form, records, options);
            case 24: return make<Container, 24>(form, records, options);
            default: return nullptr;
        }
    } catch (const std::exception &) {
        return nullptr;
    }
}

}  // namespace peers

#endif
