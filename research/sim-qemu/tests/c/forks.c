/* A guest that forks within a window, in two ways: the children are not measured, and find what their parent
 * inserted. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "../../../../crates/capi/tests/c/check.h"
#include "stlt.h"

/* Some thousand instructions: of a trace, many buffers. */
static void work(void) {
    static volatile int words[1024];
    for (int place = 0; place < 1024; place++) words[place]++;
}

static void window(void) {
    stlt_phase(STLT_MEASURED, 0, 0, 0);
    work();
    stlt_phase(STLT_DETAILED, 1, 0, 0);
}

int main(void) {
    static const uint64_t integer = 7 << 12;
    static int record;
    CHECK(stlt_open() && stlt_alloc(1024, 4, STLT_FULL));
    stlt_insert(integer, &record);
    stlt_phase(STLT_FUNCTIONAL, 0, 0, 0);
    stlt_phase(STLT_DETAILED, 0, 0, 0);
    stlt_phase(STLT_MEASURED, 0, 0, 0);
    work();
    for (int way = 0; way < 2; way++) {
        pid_t child = way == 0 ? fork() : (pid_t)syscall(SYS_fork);
        if (child == 0) {
            work();
            stlt_phase(STLT_DETAILED, 1, 0, 0);
            window();
            _exit(stlt_load_va(integer) == &record ? 0 : 1);
        }
        int status;
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        work();
    }
    stlt_phase(STLT_DETAILED, 1, 0, 0);
    stlt_phase(STLT_LOAD, 0, 0, 0);
    return 0;
}
