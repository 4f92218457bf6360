// What the examples do with their index: look up, put in, change and take out records, by keys of which few are hot,
// and print a checksum of all answers. With a Search Lookaside Buffer or without it must be the same.
#ifndef WORKLOAD_HPP
#define WORKLOAD_HPP

#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#ifndef WORKLOAD_OPERATIONS
#define WORKLOAD_OPERATIONS 2'000'000
#endif

inline std::string name_of(std::uint64_t number) {
    char name[25];
    std::snprintf(name, sizeof name, "record-%017" PRIu64, number);
    return name;
}

// `Store` has get(name), which gives a pointer to a value or null, put(name, value) and remove(name).
template <class Store>
void run(Store& store) {
    constexpr std::uint64_t OPERATIONS = WORKLOAD_OPERATIONS, RECORDS = OPERATIONS / 20;
    std::uint64_t state = 88172645463325252u, answers = 0;
    auto random = [&] { return state ^= state << 13, state ^= state >> 7, state ^= state << 17, state; };
    for (std::uint64_t number = 0; number < RECORDS; number++) store.put(name_of(number), number);
    auto began = std::chrono::steady_clock::now();
    for (std::uint64_t done = 0; done < OPERATIONS; done++) {
        // The log of a uniform number: about one in ten of the numbers below n for each factor e of n.
        double share = static_cast<double>(random() >> 11) / 9007199254740992.0;
        std::string name = name_of(static_cast<std::uint64_t>(std::exp(share * std::log(1.1 * RECORDS))));
        std::uint64_t action = random() % 100;
        if (action == 0) {
            store.remove(name);
        } else if (action < 5) {
            store.put(name, done);
        } else {
            const std::uint64_t* value = store.get(name);
            answers = (answers ^ (value ? *value + 1 : 0)) * 0x9e3779b97f4a7c15u;
        }
    }
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    std::fprintf(stderr, "%.2f million operations per second\n", OPERATIONS / took.count() / 1e6);
    std::printf("answers %016" PRIx64 "\n", answers);
}

// Where a table stands before the index: how many lookups it answered.
inline void report(std::uint64_t hits) { std::fprintf(stderr, "hits %" PRIu64 "\n", hits); }

#endif
