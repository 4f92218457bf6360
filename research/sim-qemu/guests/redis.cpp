// Debian's redis-server as a guest, unmodified on disk: preloaded, it is taken over when its event loop would begin.
//
//   LD_PRELOAD=this GUEST="REQUESTS name=value ..." GUEST_SOCKET=path redis-server --port 0 --unixsocket path
//
// GUEST holds what driver.hpp has; the socket, which the server insists on, is taken away as soon as it is not needed.
//
// * Requests come from here, not from a socket: a SET is createStringObject() and dbAdd(), a GET is
//   lookupKeyReadWithFlags(), all of the server's own. What lies around them in a server (sockets, parsing, replies)
//   the STLT paper leaves out as well.
// * The fast path stands before dictFind(), by which lookupKey() searches the dictionary of all keys. Its first
//   instructions are replaced by a jump to here; what they were is done in a copy of them that then goes on behind
//   them. They are compared with what they must be: another build is refused.
// * What the table holds is the dictionary's entry, as the paper's twelve lines in Redis would have it. Entries
//   stay where they are when the dictionary grows. Nothing is deleted: there would have to be a word to the table then.
//
// The dictionary's hash is seeded at random by the server; here it gets a fixed seed, while it is empty. So the
// instructions of a run repeat. Its cycles do not quite (by 5 % at 100 000 keys): where the server's memory lies
// depends on what it does before it is taken over, with random numbers and the time. Take several runs.

#include <dlfcn.h>
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

#include "driver.hpp"

namespace {

/// dictEntry: its key is an sds, whose kind and length lie in the byte before it.
struct Entry {
    const unsigned char *sds;

    const Key &key_of() const { return *reinterpret_cast<const Key *>(sds); }
    /// A key of 24 bytes, in a dictionary, is of the smallest kind: five bits of length, three zeroes.
    bool is_of(const Key &key) const { return sds[-1] == sizeof(Key) << 3 && key_of() == key; }
};

/// robj: a word of properties, then the pointer.
struct Object {
    std::uint64_t properties;
    unsigned char *pointer;
};

struct Dictionary {
    const void *type;
};

struct Database {
    Dictionary *keys;
};

using Find = Entry *(*)(Dictionary *, const void *);

template <class Function>
Function symbol(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) refuse((std::string("this redis-server does not export ") + name).c_str());
    return reinterpret_cast<Function>(found);
}

/// The first instructions of dictFind: five pushes, two instructions that read the sizes of its tables. None of them
/// knows where it is.
constexpr unsigned char FIND[] = {0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x55, 0x53,
                                  0x48, 0x8b, 0x47, 0x20, 0x48, 0x03, 0x47, 0x18};
/// Those of aeMain, which is never run: only to know that there is room for a jump.
constexpr unsigned char MAIN[] = {0x53, 0x48, 0x89, 0xfb, 0xc7, 0x47, 0x28, 0, 0, 0, 0, 0x0f, 0x1f, 0x44, 0, 0};

/// jmp [rip]; the address. It changes no register and no flag.
constexpr std::size_t JUMP = 14;

void write_jump(unsigned char *at, const void *to) {
    const unsigned char code[] = {0xff, 0x25, 0, 0, 0, 0};
    std::memcpy(at, code, sizeof code);
    std::memcpy(at + sizeof code, &to, sizeof to);
}

template <std::size_t N>
unsigned char *expect(const char *name, const unsigned char (&bytes)[N]) {
    static_assert(N >= JUMP, "room for a jump");
    auto *code = symbol<unsigned char *>(name);
    if (std::memcmp(code, bytes, N) != 0) {
        auto why = " of this redis-server does not begin as that of Debian's 7.0.15 does: it cannot be detoured";
        refuse((std::string(name) + why).c_str());
    }
    return code;
}

void detour(unsigned char *code, const void *to) {
    auto page = reinterpret_cast<std::uintptr_t>(code) & ~std::uintptr_t{4095};
    if (mprotect(reinterpret_cast<void *>(page), 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        refuse("the server's code cannot be made writable");
    }
    write_jump(code, to);
}

/// dictFind as it was.
Find original;
const void *all_keys;

template <class FastPath>
struct Engine {
    /// They rehash its dictionaries.
    static constexpr bool gets_leave_nothing = false;

    Tally tally;
    const std::size_t value;
    const FastHash hash;
    FastPath path;
    Database *database;
    Object *wanted;
    std::vector<char> content;
    std::uint64_t records = 0;

    Object *(*make)(const char *, std::size_t) = symbol<Object *(*)(const char *, std::size_t)>("createStringObject");
    void (*add)(Database *, Object *, Object *) = symbol<void (*)(Database *, Object *, Object *)>("dbAdd");
    Object *(*look)(Database *, Object *, int) =
        symbol<Object *(*)(Database *, Object *, int)>("lookupKeyReadWithFlags");

    Engine(const Options &options, FastPath path)
        : value(options.value), hash(options.hash), path(path), content(options.value) {
        // Its place in the server's struct, and whether it is what it should be.
        database = *reinterpret_cast<Database **>(symbol<unsigned char *>("server") + 64);
        if (database->keys->type != all_keys) {
            refuse("the server's first database is not where that of Debian's 7.0.15 is");
        }
        Key key{};
        wanted = make(reinterpret_cast<const char *>(&key), sizeof key);
    }

    void set() {
        Key key = Key::of(records);
        std::memset(content.data(), static_cast<int>(records++ & 0xff), value);
        add(database, make(reinterpret_cast<const char *>(&key), sizeof key), make(content.data(), value));
    }

    bool get(const Key &key) {
        std::memcpy(wanted->pointer, &key, sizeof key);
        Object *found = look(database, wanted, 0);
        if (!found) return false;
        answer(found->pointer, value);
        return true;
    }

    /// In the place of dictFind.
    static Entry *find(Dictionary *dictionary, const void *sds) {
        // The key of a request is of the kind with a byte of length: that, the room, the kind.
        auto *bytes = static_cast<const unsigned char *>(sds);
        if (dictionary->type != all_keys || bytes[-1] != 1 || bytes[-3] != sizeof(Key)) {
            return original(dictionary, sds);
        }
        Engine &engine = *only;
        const Key &key = *static_cast<const Key *>(sds);
        return engine.path.lookup(key, engine.hash, engine.tally, [&] { return original(dictionary, sds); });
    }

    static inline Engine *only = nullptr;
};

/// In the place of the event loop.
void take_over(void *) {
    if (const char *socket = getenv("GUEST_SOCKET")) unlink(socket);
    std::vector<char *> arguments;
    char *text = strdup(getenv("GUEST"));
    for (char *word = std::strtok(text, " "); word; word = std::strtok(nullptr, " ")) arguments.push_back(word);
    Options options(static_cast<int>(arguments.size()), arguments.data());

    unsigned char seed[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    symbol<void (*)(unsigned char *)>("dictSetHashFunctionSeed")(seed);
    _exit(with_fast_path<Entry>(options, [&](auto path) {
        using Redis = Engine<decltype(path)>;
        Redis::only = new Redis(options, path);
        if (options.variant != "alone") {
            detour(expect("dictFind", FIND), reinterpret_cast<const void *>(Redis::find));
        }
        return Driver(options, *Redis::only).run();
    }));
}

[[gnu::constructor]] void preloaded() {
    if (!getenv("GUEST")) refuse("GUEST is not set");
    unsigned char *find = expect("dictFind", FIND);
    unsigned char *loop = expect("aeMain", MAIN);
    all_keys = symbol<const void *>("dbDictType");
    void *copy = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) refuse("no memory");
    std::memcpy(copy, find, sizeof FIND);
    write_jump(static_cast<unsigned char *>(copy) + sizeof FIND, find + sizeof FIND);
    original = reinterpret_cast<Find>(copy);
    detour(loop, reinterpret_cast<const void *>(take_over));
}

} // namespace
