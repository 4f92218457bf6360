// The phases of a run, the same for all guests.
//
//   REQUESTS records=N value=BYTES variant=V [rows=N] [ways=N] [slb=BYTES] [slb-options=paper] [hash=H]
//      load=N functional=N detailed=N window=N windows=N
//
// REQUESTS holds words of 32 bits: a record's number to GET, or with the highest bit the wish to SET a new record. The
// first `load` are performed without simulation, only to fill the table; the next `functional` to warm the caches;
// then, for each window, `detailed` to fill the pipeline and `window` that are measured. Whoever wrote the file knows
// the distribution; a guest only looks up.
//
// The keys of GROUP requests are made ahead of them, as a server finds a buffer full of requests. Made one at a time, a
// key takes more of the core's window than its lookup by way of a table, and keeps the next lookup out of it.
#ifndef DRIVER_HPP
#define DRIVER_HPP

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include "fast_path.hpp"

/// What a guest answers with: read by nobody, but the compiler does not know.
inline unsigned char reply[1 << 16];

inline void answer(const unsigned char *value, std::size_t bytes) {
    std::memcpy(reply, value, bytes);
    __asm__ volatile("" : : "r"(reply) : "memory");
}

struct Options {
    const char *requests = nullptr;
    std::uint64_t records = 0, value = 64, rows = 1 << 20, ways = 4, slb = 1 << 24;
    std::uint64_t load = 0, functional = 0, detailed = 0, window = 0, windows = 1;
    std::string_view variant = "alone", slb_options = "default";
    FastHash hash = FastHash::xxh3;

    Options(int count, char **arguments) {
        if (count < 1) refuse("the first argument is a file of requests");
        requests = arguments[0];
        for (int place = 1; place < count; place++) {
            std::string_view argument = arguments[place];
            std::size_t equals = argument.find('=');
            if (equals == argument.npos) refuse("arguments are name=value");
            set(argument.substr(0, equals), arguments[place] + equals + 1);
        }
        if (records == 0) refuse("records= is missing");
        if (value > sizeof reply) refuse("a value has 65536 bytes at most");
    }

private:
    void set(std::string_view name, const char *value_text) {
        if (name == "variant") { variant = value_text; return; }
        if (name == "slb-options") { slb_options = value_text; return; }
        if (name == "hash") { set_hash(value_text); return; }
        struct { const char *name; std::uint64_t *number; } numbers[] = {
            {"records", &records}, {"value", &value}, {"rows", &rows}, {"ways", &ways}, {"slb", &slb},
            {"load", &load}, {"functional", &functional}, {"detailed", &detailed}, {"window", &window},
            {"windows", &windows},
        };
        for (auto &known : numbers) {
            if (name == known.name) {
                char *end;
                *known.number = std::strtoull(value_text, &end, 10);
                if (*end || end == value_text) refuse("a number is none");
                return;
            }
        }
        refuse("unknown argument");
    }

    void set_hash(std::string_view name) {
        struct { const char *name; FastHash hash; } hashes[] = {
            {"xxh3", FastHash::xxh3}, {"xxh64", FastHash::xxh64}, {"murmur", FastHash::murmur},
            {"djb2", FastHash::djb2}, {"sip", FastHash::sip},
        };
        for (auto &known : hashes) {
            if (name == known.name) { hash = known.hash; return; }
        }
        refuse("hash= is xxh3, xxh64, murmur, djb2 or sip");
    }
};

struct Requests {
    const std::uint32_t *words;
    std::size_t count;

    explicit Requests(const char *path) {
        int file = open(path, O_RDONLY);
        struct stat status;
        if (file < 0 || fstat(file, &status) != 0) refuse("the requests cannot be read");
        count = static_cast<std::size_t>(status.st_size) / sizeof *words;
        // Read, not mapped: then its pages are the program's own.
        auto *memory = static_cast<std::uint32_t *>(std::malloc(count * sizeof *words + 1));
        std::size_t done = 0;
        while (done < count * sizeof *words) {
            ssize_t part = read(file, reinterpret_cast<char *>(memory) + done, count * sizeof *words - done);
            if (part <= 0) refuse("the requests cannot be read");
            done += static_cast<std::size_t>(part);
        }
        close(file);
        words = memory;
    }
};

/// Requests whose keys are made at once: they stay in the first-level cache.
constexpr std::uint64_t GROUP = 64;

/// Performs the requests on an engine: `bool get(key)` says whether the record was there, `set()` inserts the next one,
/// `tally` is its fast path's, `gets_leave_nothing` whether a GET changes nothing that a later one could see. 0 if
/// every GET found its record.
template <class Engine>
class Driver {
public:
    Driver(const Options &options, Engine &engine) : options(options), requests(options.requests), engine(engine) {
        std::uint64_t clocked = options.windows * (options.detailed + options.window);
        std::uint64_t wanted = options.load + options.functional + clocked;
        if (requests.count < wanted) refuse("there are fewer requests than phases ask for");
        for (std::uint64_t record = 0; record < options.records; record++) engine.set();
    }

    int run() {
        // Nobody looks on yet: GETs that leave nothing behind would only take time, of a tree half of that of a run.
        if (Engine::gets_leave_nothing) {
            insert(options.load);
        } else {
            perform(options.load);
        }
        stlt_phase(STLT_FUNCTIONAL, 0, 0, 0);
        perform(options.functional);
        for (std::uint64_t window = 0; window < options.windows; window++) {
            stlt_phase(STLT_DETAILED, 0, 0, 0);
            perform(options.detailed);
            engine.tally = {};
            stlt_phase(STLT_MEASURED, 0, 0, 0);
            perform(options.window);
            stlt_phase(STLT_DETAILED, options.window, engine.tally.hits, engine.tally.misses);
        }
        stlt_phase(STLT_LOAD, 0, 0, 0);
        std::printf("%" PRIu64 " requests, %" PRIu64 " not found\n", next, lost);
        std::fflush(stdout);
        return lost == 0 ? 0 : 1;
    }

private:
    static constexpr std::uint32_t SET = std::uint32_t{1} << 31;

    /// The SETs among so many requests.
    void insert(std::uint64_t count) {
        for (std::uint64_t end = next + count; next < end; next++) {
            if (requests.words[next] & SET) engine.set();
        }
    }

    [[gnu::noinline]] void perform(std::uint64_t count) {
        Key keys[GROUP];
        for (std::uint64_t end = next + count; next < end;) {
            std::uint64_t group = std::min(GROUP, end - next);
            const std::uint32_t *words = requests.words + next;
            for (std::uint64_t i = 0; i < group; i++) keys[i] = Key::of(words[i] & ~SET);
            for (std::uint64_t i = 0; i < group; i++) {
                if (__builtin_expect((words[i] & SET) != 0, 0)) {
                    engine.set();
                } else if (!engine.get(keys[i])) {
                    lost++;
                }
            }
            next += group;
        }
    }

    const Options options;
    Requests requests;
    Engine &engine;
    std::uint64_t next = 0, lost = 0;
};

/// Calls `run` with the fast path that was asked for, for records of type `Held`.
template <class Held, class Run>
int with_fast_path(const Options &options, Run run) {
    bool simulated = stlt_anywhere_is_simulated();
    Buffer<Held>::which = options.hash;
    auto ways = static_cast<unsigned>(options.ways);
    if (options.variant == "alone") return run(Alone<Held>{});
    if (options.variant == "slb") return run(Buffer<Held>(options.slb, options.slb_options == "paper"));
    if (options.variant == "stlt-sw") return run(Software<Held>(options.rows, ways));
    if (options.variant == "stlt" || options.variant == "stlt-va") {
        if (!simulated) return run(Software<Held>(options.rows, ways));
        return run(Hardware<Held>(options.rows, ways, options.variant == "stlt" ? STLT_FULL : STLT_VIRTUAL_ADDRESS));
    }
    refuse("variant= is alone, slb, stlt, stlt-va or stlt-sw");
}

#endif
