// A C++ exception that leaves a callback ends the process, though the caller would catch it. `exception match`, and so
// on.
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "check.h"
#include "lookaside.h"

static const char* thrown_by = "";

static void perhaps_throw(const char* callback) {
    if (std::strcmp(thrown_by, callback) == 0) throw std::runtime_error("a mistake in a callback");
}

int main(int count, char** arguments) {
    int entry = 7;
    auto match = [](void*, void*) { perhaps_throw("match"); return true; };
    auto keyhash = [](void*) -> uint64_t { perhaps_throw("keyhash"); return 1; };
    auto entryhash = [](void*) -> uint64_t { perhaps_throw("entryhash"); return 1; };
    auto free = [](void*, void*) { perhaps_throw("free"); };
    SLB* b = SLB_create(4096, match, keyhash, entryhash);
    CHECK(b != nullptr);
    SLB_emit(b, &entry);
    CHECK(SLB_get(b, &entry) == &entry);
    std::puts("ready");
    std::fflush(stdout);
    if (count > 1) thrown_by = arguments[1];
    try {
        SLB_get(b, &entry);
        SLB_emit(b, &entry);
        lookaside_retire(b, &entry, free, nullptr);
        SLB_destroy(b);
    } catch (const std::exception& caught) {
        std::printf("caught: %s\n", caught.what());
        return 2;
    }
    std::puts("nothing was thrown");
}
