// The Search Lookaside Buffer for C++17: header only, over lookaside.h.
//
//     lookaside::Buffer<std::string, Record, std::hash<std::string>, SameName> slb(64 << 20);
//     Record* record = slb.find(name, [&] { return index.search(name); });
//
// A buffer is made for a type of keys, a type of entries, a hash of keys, and a comparison: `bool match(const Entry&,
// const Key&)`. The last two may be lambdas, with captures: they are kept in the buffer, and compiled into its lookups.
// Nothing is thrown across the library's border: lookups and comparisons are compiled into your code, and may throw. In
// every other call the hash has been computed before the library is entered.
//
// A hash that has a member type is_avalanching says that each bit of its results depends on the whole key, as other
// libraries have it: those are used as they are, and all others are mixed. std::hash has none.
//
// Who may call what, and when, is said at the head of lookaside.h: alone, with locks, or with tickets. Here:
//
//     alone:    slb.find(key, search), slb.get(key), slb.emit(key, entry), slb.invalidate(key), slb.update(key, entry)
//     locks:    auto lock = slb.lock(key);  then as above, until `lock` goes
//     tickets:  auto pin = slb.pin();       pin.find(key, search)
//               auto write = slb.write(key); change the index; write.put(entry);
//               then slb.retire(old) after `write` has gone
//
// slb.share<Key, Entry>() is the same buffer in front of one more index.
//
// Objects of this header are their thread's, but for Buffer, which all threads share.
#ifndef LOOKASIDE_HPP
#define LOOKASIDE_HPP

#if __cplusplus < 201703L
#error "lookaside.hpp is written in C++17: compile with -std=c++17 or later"
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "lookaside_inline.h"

namespace lookaside {

/// What can be chosen, with what measured best.
inline lookaside_options default_options(std::size_t size) {
    lookaside_options options;
    lookaside_default_options(&options, sizeof options);
    options.size = size;
    return options;
}

/// What can be chosen, with what the paper has.
inline lookaside_options paper_options(std::size_t size) {
    lookaside_options options;
    lookaside_paper_options(&options, sizeof options);
    options.size = size;
    return options;
}

/// Why the last call of this thread that can fail did so.
inline const char* last_error() noexcept { return lookaside_last_error(); }

namespace detail {

// Ends the use of the wide vector registers. g++ copies structures by them; below -O2 it does not end their use where
// it calls a function or returns. Every instruction in SSE's encoding then waits for their upper halves, in the C
// library too, for as long as nobody else ends it: the program takes more than twice as long.
inline void end_wide_vectors() noexcept {
#if defined(__AVX__)
    __builtin_ia32_vzeroupper();
#endif
}

// Whether a hash says that its results are even.
template <class Hash, class = void>
struct IsAvalanching : std::false_type {};
template <class Hash>
struct IsAvalanching<Hash, std::void_t<typename Hash::is_avalanching>>
    : std::bool_constant<!std::is_same_v<typename Hash::is_avalanching, std::false_type>> {};

// Where the lines of a table are.
using Lines = lookaside_inline_lines;

// What a lookup needs of a buffer that threads share. A pin keeps it at hand.
struct Access {
    const SLB* raw = nullptr;
    std::uint64_t others = 0, mark = 0;
    const Lines* const* table = nullptr;

    explicit Access(const SLB* b) noexcept : raw(b) {
        if (!b) return;
        const auto* prefix = reinterpret_cast<const lookaside_inline_prefix*>(b);
        others = prefix->others, mark = prefix->mark, table = prefix->lines;
    }

    std::uint64_t marked(std::uint64_t hash) const noexcept { return (hash & others) | mark; }
    // Acquire pairs with the release of whoever resizes.
    Lines lines() const noexcept { return *__atomic_load_n(table, __ATOMIC_ACQUIRE); }
};

// And of an owner's: there is one index, and nobody else who replaces the table.
struct OwnAccess {
    const lookaside_owned* raw;
    const lookaside_session* session;

    static std::uint64_t marked(std::uint64_t hash) noexcept { return hash; }
    Lines lines() const noexcept { return {session->base, session->count}; }
};

// Ends no session: the buffer does, or the thread.
struct Borrowed {
    void operator()(lookaside_session*) const noexcept {}
};

// What the library knows of keys: their hash, computed before it is entered. Entries it does not compare by itself.
inline std::uint64_t hash_of(void* key) noexcept { return *static_cast<std::uint64_t*>(key); }

struct Shared {
    using Raw = SLB;
    static Raw* create(const lookaside_options& options) noexcept { return lookaside_create(&options); }
    static void destroy(Raw* raw) noexcept { SLB_destroy(raw); }
    static lookaside_session* attach(Raw* raw) noexcept { return lookaside_attach(raw, LOOKASIDE_INLINE_LAYOUT); }
    // Each thread has its own.
    static lookaside_session* attach_for_good(Raw*) noexcept { return nullptr; }
    static Access access(const Raw* raw, const lookaside_session*) noexcept { return Access(raw); }
    static void emit(Raw* raw, std::uint64_t hash, void* entry) noexcept {
        lookaside_emit_key(raw, &hash, entry, nullptr);
    }
    static void invalidate(Raw* raw, std::uint64_t hash) noexcept { SLB_invalidate(raw, &hash); }
    static void update(Raw* raw, std::uint64_t hash, void* entry) noexcept { SLB_update(raw, &hash, entry); }
    static bool resize(Raw* raw, std::size_t size) noexcept { return lookaside_resize(raw, size); }
    static bool clear(Raw* raw) noexcept { return lookaside_clear(raw); }
    static void monitor(Raw* raw, bool watching) noexcept { lookaside_monitor(raw, watching); }
    static void counts(Raw* raw, lookaside_counts* counts) noexcept {
        lookaside_get_counts(raw, counts, sizeof *counts);
    }
    static void verdict(Raw* raw, lookaside_verdict* verdict) noexcept {
        lookaside_get_verdict(raw, verdict, sizeof *verdict);
    }
    static std::size_t occupancy(Raw* raw) noexcept { return lookaside_occupancy(raw); }
    static std::size_t hottest(Raw* raw, void** entries, std::uint8_t* temperatures, std::size_t most) noexcept {
        return lookaside_hottest(raw, entries, temperatures, most);
    }
};

struct Owned {
    using Raw = lookaside_owned;
    static Raw* create(const lookaside_options& options) noexcept { return lookaside_owned_create(&options); }
    static void destroy(Raw* raw) noexcept { lookaside_owned_destroy(raw); }
    static lookaside_session* attach_for_good(Raw* raw) noexcept {
        return lookaside_owned_attach(raw, LOOKASIDE_INLINE_LAYOUT);
    }
    static OwnAccess access(const Raw* raw, const lookaside_session* session) noexcept { return {raw, session}; }
    static void emit(Raw* raw, std::uint64_t hash, void* entry) noexcept {
        lookaside_owned_emit_key(raw, &hash, entry);
    }
    static void invalidate(Raw* raw, std::uint64_t hash) noexcept { lookaside_owned_invalidate(raw, &hash); }
    static void update(Raw* raw, std::uint64_t hash, void* entry) noexcept {
        lookaside_owned_update(raw, &hash, entry);
    }
    static bool resize(Raw* raw, std::size_t size) noexcept { return lookaside_owned_resize(raw, size); }
    static bool clear(Raw* raw) noexcept { return lookaside_owned_clear(raw); }
    static void monitor(Raw* raw, bool watching) noexcept { lookaside_owned_monitor(raw, watching); }
    static void counts(Raw* raw, lookaside_counts* counts) noexcept {
        lookaside_owned_get_counts(raw, counts, sizeof *counts);
    }
    static void verdict(Raw* raw, lookaside_verdict* verdict) noexcept {
        lookaside_owned_get_verdict(raw, verdict, sizeof *verdict);
    }
    static std::size_t occupancy(Raw* raw) noexcept { return lookaside_owned_occupancy(raw); }
    static std::size_t hottest(Raw* raw, void** entries, std::uint8_t* temperatures, std::size_t most) noexcept {
        return lookaside_owned_hottest(raw, entries, temperatures, most);
    }
};

// A buffer of either form.
template <class Key, class Entry, class Hash, class Match, class Form>
class Table {
public:
    /// Of so many bytes. Test it: without memory it is false, and everything misses; last_error() says why.
    explicit Table(std::size_t size, Hash hash = Hash(), Match match = Match())
        : Table(default_options(size), std::move(hash), std::move(match)) {}

    /// As chosen; the callbacks among the options are not used.
    explicit Table(lookaside_options options, Hash hash = Hash(), Match match = Match())
        : hash_(std::move(hash)), match_(std::move(match)) {
        options.match = nullptr;
        options.keyhash = hash_of;
        options.entryhash = nullptr;
        options.layout = LOOKASIDE_INLINE_LAYOUT;
        // What the library is given is mixed here, where the type of the hash is known.
        options.avalanching = true;
        end_wide_vectors();
        raw_.reset(Form::create(options));
        session_.reset(Form::attach_for_good(raw()));
    }

    explicit operator bool() const noexcept { return raw_ != nullptr; }

    /// What the functions of lookaside.h take. Their keys are pointers to hashes here: pass none of your own; and
    /// entries that are emitted without a key do not enter.
    typename Form::Raw* raw() const noexcept { return raw_.get(); }

    /// The entry of a key, or null.
    [[gnu::always_inline]] inline Entry* get(const Key& key) const {
        lookaside_session* session = attach();
        return session ? get_in(Form::access(raw(), session), session, key) : nullptr;
    }

    /// The entry of a key: from the table, or else what `search()` gives, an Entry* or null, which is emitted.
    template <class Search>
    [[gnu::always_inline]] inline Entry* find(const Key& key, Search&& search) {
        lookaside_session* session = attach();
        if (!session || !lookaside_inline_asks(raw(), session, 1)) return std::forward<Search>(search)();
        std::uint64_t hash = raw_hash(key);
        if (Entry* entry = look(Form::access(raw(), session), session, hash, key)) return entry;
        return search_missed(session, hash, std::forward<Search>(search));
    }

    /// The entries of many keys: `entries[i]` becomes that of `keys[i]`, or null; how many were found. Not under locks.
    std::size_t get_many(const Key* keys, std::size_t count, Entry** entries) const {
        lookaside_session* session = attach();
        return get_many_in(Form::access(raw(), session), session, keys, count, entries);
    }

    /// The entries of many keys: from the table, or else what `search(key)` gives, an Entry* or null, which is emitted.
    /// Not under locks.
    template <class Search>
    void find_many(const Key* keys, std::size_t count, Entry** entries, Search&& search) {
        lookaside_session* session = attach();
        find_many_in(Form::access(raw(), session), session, keys, count, entries, search,
                     [&](std::uint64_t hash, auto&& missed) { return search_missed(session, hash, missed); });
    }

    /// Offers what the index gave for a key; null is offered in vain.
    void emit(const Key& key, Entry* entry) {
        if (!entry) return;
        std::uint64_t hash = raw_hash(key);
        if constexpr (std::is_same_v<Form, Owned>) {
            lookaside_session* session = attach();
            if (session) {
                const std::uint64_t* its = line(Form::access(raw(), session).lines(), hash);
                if (lookaside_inline_enter(session, its, hash, pointer(entry))) return;
            }
        }
        Form::emit(raw(), hash, pointer(entry));
    }

    /// Forgets the entry of a key.
    void invalidate(const Key& key) { Form::invalidate(raw(), raw_hash(key)); }

    /// The entry of a key is now another. Nobody else may write the same key from before the index is changed until
    /// this returns: see SLB_update().
    void update(const Key& key, Entry* entry) { Form::update(raw(), raw_hash(key), pointer(entry)); }

    /// Replaces the table by an empty one of so many bytes; false if that cannot be.
    bool resize(std::size_t size) noexcept { return Form::resize(raw(), size); }

    /// Forgets all entries; false, and none is forgotten, without memory for an empty table.
    bool clear() noexcept { return Form::clear(raw()); }

    /// Lets the monitor watch, or not.
    void monitor(bool watching) noexcept { Form::monitor(raw(), watching); }

    /// What has happened so far. Under a pin where others may resize.
    lookaside_counts counts() const noexcept {
        lookaside_counts counts{};
        Form::counts(raw(), &counts);
        return counts;
    }

    /// What the monitor has found.
    lookaside_verdict verdict() const noexcept {
        lookaside_verdict verdict{};
        Form::verdict(raw(), &verdict);
        return verdict;
    }

    /// Entries that the table holds; counted by walking over it. Under a pin as counts().
    std::size_t occupancy() const noexcept { return Form::occupancy(raw()); }

    /// An entry, and how warm it is: 0 to 255.
    struct Warm {
        Entry* entry;
        std::uint8_t temperature;
    };

    /// The warmest entries of this index, warmest first, at most so many. Walks over the table. Under a pin where
    /// threads share.
    std::vector<Warm> hottest(std::size_t most) const {
        most = std::min<std::size_t>(most, counts().capacity);
        std::vector<void*> entries(most);
        std::vector<std::uint8_t> temperatures(most);
        std::vector<Warm> warmest(Form::hottest(raw(), entries.data(), temperatures.data(), most));
        for (std::size_t i = 0; i < warmest.size(); i++) {
            warmest[i] = {static_cast<Entry*>(entries[i]), temperatures[i]};
        }
        return warmest;
    }

protected:
    // One that the library has made.
    Table(typename Form::Raw* made, Hash hash, Match match)
        : hash_(std::move(hash)), match_(std::move(match)), raw_(made) {}

    // Keys looked up at once.
    static constexpr std::size_t GROUP = LOOKASIDE_INLINE_GROUP;

    struct Destroy {
        void operator()(typename Form::Raw* raw) const noexcept { Form::destroy(raw); }
    };

    static void* pointer(Entry* entry) noexcept {
        return const_cast<void*>(static_cast<const void*>(entry));
    }

    // Not inlined: it is rare. Whoever searches may have put the entry in by himself, or replaced the table.
    template <class Search>
    [[gnu::noinline]] Entry* search_missed(lookaside_session* session, std::uint64_t hash, Search&& search) {
        Entry* entry = std::forward<Search>(search)();
        if (!entry) return entry;
        if constexpr (std::is_same_v<Form, Owned>) {
            const std::uint64_t* its = line(Form::access(raw(), session).lines(), hash);
            if (lookaside_inline_enter_cold(session, its, hash, pointer(entry))) return entry;
            if (lookaside_inline_enter(session, its, hash, pointer(entry))) return entry;
        }
        Form::emit(raw(), hash, pointer(entry));
        return entry;
    }

    // As the library is to be given it.
    std::uint64_t raw_hash(const Key& key) const {
        std::uint64_t hash = static_cast<std::uint64_t>(hash_(key));
        return IsAvalanching<Hash>::value ? hash : lookaside_inline_mix(hash);
    }

    // This thread's, or null.
    lookaside_session* attach() const noexcept {
        if constexpr (std::is_same_v<Form, Owned>) {
            return session_.get();
        } else {
            return Form::attach(raw());
        }
    }

    bool matches(const void* entry, const Key& key) const {
        return __builtin_expect(match_(*static_cast<const Entry*>(entry), key), 1);
    }

    static const std::uint64_t* line(const Lines& lines, std::uint64_t hash) noexcept {
        return lookaside_inline_line_of(lines.base, lines.count, hash);
    }

    template <class Access>
    [[gnu::always_inline]] inline Entry* get_in(const Access& access, lookaside_session* session,
                                                const Key& key) const {
        return lookaside_inline_asks(access.raw, session, 1) ? look(access, session, raw_hash(key), key) : nullptr;
    }

    // Of a lookup that asks.
    template <class Access>
    [[gnu::always_inline]] inline Entry* look(const Access& access, lookaside_session* session, std::uint64_t raw_hash,
                                              const Key& key) const {
        std::uint64_t hash = access.marked(raw_hash);
        return find_in(session, line(access.lines(), hash), hash, key);
    }

    // As lookaside_inline_find_in().
    [[gnu::always_inline]] inline Entry* find_in(lookaside_session* session, const std::uint64_t* line,
                                                 std::uint64_t hash, const Key& key) const {
        for (unsigned slot = 0; slot < 7; slot++) {
            void* entry = lookaside_inline_entry(line, slot, hash);
            if (entry && matches(entry, key)) {
                lookaside_inline_warm(session, line, slot);
                return static_cast<Entry*>(entry);
            }
        }
        session->misses++;
        return nullptr;
    }

    template <class Access>
    std::size_t get_many_in(const Access& access, lookaside_session* session, const Key* keys, std::size_t count,
                            Entry** entries) const {
        std::size_t found = 0;
        std::uint64_t hashes[GROUP];
        for (std::size_t first = 0; first < count; first += GROUP) {
            std::size_t group = std::min(GROUP, count - first);
            if (session && lookaside_inline_asks(access.raw, session, static_cast<std::int32_t>(group))) {
                found += get_group(access, session, keys + first, group, entries + first, hashes);
            } else {
                std::fill_n(entries + first, group, nullptr);
            }
        }
        return found;
    }

    // `missed` is given the hash of a key that was not found, and what searches for it.
    template <class Access, class Search, class Missed>
    void find_many_in(const Access& access, lookaside_session* session, const Key* keys, std::size_t count,
                      Entry** entries, Search& search, Missed missed) {
        std::uint64_t hashes[GROUP];
        for (std::size_t first = 0; first < count; first += GROUP) {
            std::size_t group = std::min(GROUP, count - first), found = group;
            Entry** answers = entries + first;
            bool asks = session && lookaside_inline_asks(access.raw, session, static_cast<std::int32_t>(group));
            if (asks) found = get_group(access, session, keys + first, group, answers, hashes);
            else for (std::size_t i = 0; i < group; i++) answers[i] = search(keys[first + i]);
            for (std::size_t i = 0; found < group && i < group; i++) {
                if (!answers[i]) answers[i] = missed(hashes[i], [&] { return search(keys[first + i]); });
            }
        }
    }

    // As lookaside_inline_get_group(), of lookups that ask. Gives their hashes, too, as the table has them.
    template <class Access>
    std::size_t get_group(const Access& access, lookaside_session* session, const Key* keys, std::size_t count,
                          Entry** entries, std::uint64_t* hashes) const {
        // What a comparison is likely to read.
        constexpr std::size_t AHEAD = sizeof(Entry) < 128 ? sizeof(Entry) : 128;
        const Lines lines = access.lines();
        unsigned slots[GROUP];
        for (std::size_t i = 0; i < count; i++) {
            hashes[i] = access.marked(raw_hash(keys[i]));
            __builtin_prefetch(line(lines, hashes[i]));
        }
        for (std::size_t i = 0; i < count; i++) {
            void* entry = lookaside_inline_peek_in(line(lines, hashes[i]), hashes[i], slots + i);
            entries[i] = static_cast<Entry*>(entry);
            if (entry) lookaside_inline_fetch(entry, AHEAD);
        }
        std::size_t found = 0;
        for (std::size_t i = 0; i < count; i++) {
            if (entries[i] && matches(entries[i], keys[i])) {
                lookaside_inline_warm(session, line(lines, hashes[i]), slots[i]);
            } else {
                entries[i] = find_in(session, line(lines, hashes[i]), hashes[i], keys[i]);
            }
            found += entries[i] != nullptr;
        }
        return found;
    }

    Hash hash_;
    Match match_;
    std::unique_ptr<typename Form::Raw, Destroy> raw_;
    // An owner's.
    std::unique_ptr<lookaside_session, Borrowed> session_;
};

}  // namespace detail

/// A buffer for one thread and its index: the fastest form.
template <class Key, class Entry, class Hash = std::hash<Key>, class Match = std::equal_to<>>
class OwnedBuffer : public detail::Table<Key, Entry, Hash, Match, detail::Owned> {
    using Base = detail::Table<Key, Entry, Hash, Match, detail::Owned>;

public:
    using Base::Base;
};

/// A buffer that threads may share.
template <class Key, class Entry, class Hash = std::hash<Key>, class Match = std::equal_to<>>
class Buffer : public detail::Table<Key, Entry, Hash, Match, detail::Shared> {
    using Base = detail::Table<Key, Entry, Hash, Match, detail::Shared>;

public:
    using Base::Base;

    /// A key's lock, until this goes: the paper's protocol.
    class Lock {
    public:
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;
        ~Lock() { SLB_unlock(raw_, &hash_); }

    private:
        friend class Buffer;
        Lock(SLB* raw, std::uint64_t hash) noexcept : raw_(raw), hash_(hash) { SLB_lock(raw_, &hash_); }
        SLB* raw_;
        std::uint64_t hash_;
    };

    /// A write of a key, until this goes: change the index meanwhile.
    class Write {
    public:
        Write(const Write&) = delete;
        Write& operator=(const Write&) = delete;
        ~Write() { lookaside_write_end(raw_, &hash_, entry_); }

        /// What the index now has for the key: it enters if the old one was there.
        void put(Entry* entry) noexcept { entry_ = Base::pointer(entry); }

    private:
        friend class Buffer;
        Write(SLB* raw, std::uint64_t hash) noexcept : raw_(raw), hash_(hash) { lookaside_write_begin(raw_, &hash_); }
        SLB* raw_;
        std::uint64_t hash_;
        void* entry_ = nullptr;
    };

    /// A thread's pin: what is found under it stays until it goes. Its buffer must not be moved before.
    class Pin {
    public:
        Pin(const Pin&) = delete;
        Pin& operator=(const Pin&) = delete;
        ~Pin() {
            emit_waiting();
            lookaside_unpin(buffer_->raw());
        }

        /// The entry of a key, or null.
        [[gnu::always_inline]] inline Entry* get(const Key& key) const {
            return session_ ? buffer_->get_in(access_, session_, key) : nullptr;
        }

        /// The entry of a key: from the table, or else what `search()` gives, which is emitted with a ticket.
        template <class Search>
        [[gnu::always_inline]] inline Entry* find(const Key& key, Search&& search) {
            if (!session_ || !lookaside_inline_asks(access_.raw, session_, 1)) return std::forward<Search>(search)();
            std::uint64_t hash = buffer_->raw_hash(key);
            if (Entry* entry = buffer_->look(access_, session_, hash, key)) return entry;
            return search_missed(hash, std::forward<Search>(search));
        }

        /// As Buffer::get_many.
        std::size_t get_many(const Key* keys, std::size_t count, Entry** entries) const {
            return buffer_->get_many_in(access_, session_, keys, count, entries);
        }

        /// As Buffer::find_many, with tickets.
        template <class Search>
        void find_many(const Key* keys, std::size_t count, Entry** entries, Search&& search) {
            buffer_->find_many_in(access_, session_, keys, count, entries, search,
                                  [&](std::uint64_t hash, auto&& missed) { return search_missed(hash, missed); });
        }

        /// Lets go of what was found so far, and pins anew.
        void refresh() noexcept {
            emit_waiting();
            lookaside_refresh(buffer_->raw());
        }

    private:
        friend class Buffer;

        // Not inlined: it is rare.
        template <class Search>
        [[gnu::noinline]] Entry* search_missed(std::uint64_t hash, Search&& search) {
            lookaside_ticket ticket = lookaside_ticket_take(buffer_->raw(), &hash);
            Entry* entry = std::forward<Search>(search)();
            if (entry) {
                waiting_[waits_++] = {hash, ticket, Base::pointer(entry)};
                if (waits_ == waiting_.size()) emit_waiting();
            }
            return entry;
        }

        // Each emission takes words by atomic exchanges, which wait for every load before them: together they wait
        // once. What was found stays until the pin goes.
        [[gnu::noinline]] void emit_waiting() noexcept {
            for (std::size_t i = 0; i < waits_; i++) {
                lookaside_emit_key(buffer_->raw(), &waiting_[i].hash, waiting_[i].entry, &waiting_[i].ticket);
            }
            waits_ = 0;
        }

        struct Emission {
            std::uint64_t hash;
            lookaside_ticket ticket;
            void* entry;
        };

        explicit Pin(Buffer* buffer) noexcept
            : buffer_(buffer), session_(buffer->attach()), access_(buffer->raw()) {
            lookaside_pin(buffer->raw());
        }
        Buffer* buffer_;
        lookaside_session* session_;
        detail::Access access_;
        std::array<Emission, 8> waiting_;
        std::size_t waits_ = 0;
    };

    [[nodiscard]] Lock lock(const Key& key) { return Lock(this->raw(), this->raw_hash(key)); }
    [[nodiscard]] Write write(const Key& key) { return Write(this->raw(), this->raw_hash(key)); }
    [[nodiscard]] Pin pin() { return Pin(this); }

    /// Deletes an entry when all threads that are pinned now have unpinned, after its write has ended. Destructors of
    /// entries must not throw, nor use this buffer.
    void retire(Entry* entry) noexcept {
        auto free = [](void* retired, void*) { delete static_cast<Entry*>(retired); };
        lookaside_retire(this->raw(), Base::pointer(entry), free, nullptr);
    }

    /// Deletes now what can be deleted of what this thread has retired. Without this it happens by and by.
    void reclaim() noexcept { lookaside_reclaim(this->raw()); }

    /// The same buffer in front of one more index, which may have other keys and entries: equal keys of the two never
    /// meet. Table, locks, pins and counts are shared, and live until the last of them goes. Test it: it is false where
    /// this was made for fewer indexes (lookaside_options.indexes); last_error() says so.
    template <class OtherKey, class OtherEntry, class OtherHash = std::hash<OtherKey>,
              class OtherMatch = std::equal_to<>>
    [[nodiscard]] Buffer<OtherKey, OtherEntry, OtherHash, OtherMatch> share(OtherHash hash = OtherHash(),
                                                                            OtherMatch match = OtherMatch()) {
        SLB* shared = lookaside_share(this->raw(), nullptr, detail::hash_of, nullptr);
        return Buffer<OtherKey, OtherEntry, OtherHash, OtherMatch>(shared, std::move(hash), std::move(match));
    }

private:
    template <class, class, class, class>
    friend class Buffer;
    Buffer(SLB* made, Hash hash, Match match) : Base(made, std::move(hash), std::move(match)) {}
};

}  // namespace lookaside

#endif  // LOOKASIDE_HPP
