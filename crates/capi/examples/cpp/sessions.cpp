// A store of sessions that threads share, through lookaside.hpp: keys are strings, entries are C++ objects.
//
//     sessions [THREADS]
//
// The index is a std::map under a std::shared_mutex. A lookup that hits takes no lock and walks no tree. A session that
// is replaced or ended is retired: it is deleted when all threads that may have found it have let go of their pins.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lookaside.hpp>

// An entry: it says its key, and does not change.
struct Session {
    std::string token;
    std::string user;
};

struct SameToken {
    bool operator()(const Session& session, const std::string& token) const { return session.token == token; }
};

class Sessions {
public:
    // A thread at the store: what it has found stays until it goes, or is refreshed.
    class Reader {
    public:
        explicit Reader(Sessions& store) : store_(store), pin_(store.slb_.pin()) {}

        const Session* find(const std::string& token) {
            return pin_.find(token, [&] { return store_.search(token); });
        }

        void refresh() { pin_.refresh(); }

    private:
        Sessions& store_;
        lookaside::Buffer<std::string, Session, std::hash<std::string>, SameToken>::Pin pin_;
    };

    explicit Sessions(std::size_t buffer_bytes) : slb_(buffer_bytes) {}

    // Begins a session, or lets another take its place.
    void put(const std::string& token, const std::string& user) {
        auto next = std::make_unique<Session>(Session{token, user});
        std::unique_ptr<Session> old;
        {
            auto write = slb_.write(token);
            std::unique_lock<std::shared_mutex> lock(mutex_);
            std::unique_ptr<Session>& place = index_[token];
            write.put(next.get());
            old = std::exchange(place, std::move(next));
        }
        if (old) slb_.retire(old.release());
    }

    // Ends a session; whether there was one.
    bool end(const std::string& token) {
        std::unique_ptr<Session> old;
        {
            auto write = slb_.write(token);
            std::unique_lock<std::shared_mutex> lock(mutex_);
            auto at = index_.find(token);
            if (at == index_.end()) return false;
            old = std::move(at->second);
            index_.erase(at);
        }
        slb_.retire(old.release());
        return true;
    }

    lookaside_counts counts() const { return slb_.counts(); }

private:
    Session* search(const std::string& token) {
        std::shared_lock<std::shared_mutex> lock(mutex_);
        auto at = index_.find(token);
        return at == index_.end() ? nullptr : at->second.get();
    }

    // The buffer is declared last and goes first: nothing that it knows of has gone before it.
    std::map<std::string, std::unique_ptr<Session>> index_;
    std::shared_mutex mutex_;
    lookaside::Buffer<std::string, Session, std::hash<std::string>, SameToken> slb_;
};

int main(int count, char** arguments) {
    constexpr unsigned SESSIONS = 20'000, LOOKUPS = 200'000, REFRESH = 256;
    const unsigned threads = count > 1 ? static_cast<unsigned>(std::atoi(arguments[1])) : 2;
    auto token = [](unsigned number) { return "token-" + std::to_string(number); };

    Sessions store(1 << 20);
    for (unsigned number = 0; number < SESSIONS; number++) store.put(token(number), "user-" + std::to_string(number));

    std::vector<std::uint64_t> found(threads);
    std::vector<std::thread> readers;
    for (unsigned thread = 0; thread < threads; thread++) {
        readers.emplace_back([&, thread] {
            Sessions::Reader reader(store);
            std::uint64_t state = thread + 1;
            for (unsigned lookup = 0; lookup < LOOKUPS; lookup++) {
                state ^= state << 13, state ^= state >> 7, state ^= state << 17;
                // Seven in eight are for one session of fifty.
                auto number = static_cast<unsigned>(state >> 3) % (state % 8 == 0 ? SESSIONS : SESSIONS / 50);
                const Session* session = reader.find(token(number));
                if (session && session->user == "user-" + std::to_string(number)) found[thread]++;
                if (lookup % REFRESH == 0) reader.refresh();
            }
        });
    }
    for (auto& reader : readers) reader.join();
    for (auto of_thread : found) std::printf("%llu of %u found\n", static_cast<unsigned long long>(of_thread), LOOKUPS);

    store.put(token(7), "somebody else");
    Sessions::Reader reader(store);
    const Session* session = reader.find(token(7));
    std::printf("then: %s\n", session ? session->user.c_str() : "nobody");
    store.end(token(7));
    std::printf("at last: %s\n", reader.find(token(7)) ? "somebody" : "nobody");
    std::fprintf(stderr, "%llu hits\n", static_cast<unsigned long long>(store.counts().hits));
}
