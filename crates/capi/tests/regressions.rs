//! What went wrong once in the interface for C and C++, each with its story.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use crate::toolchain::{Program, has, home, is_c, standard};
use lookaside_capi::{
    SLB, SLB_create, SLB_destroy, lookaside_pin, lookaside_reclaim, lookaside_refresh, lookaside_retire,
    lookaside_unpin,
};

/// The compilers of C and of C++ that the header is for.
const COMPILERS: [(&str, &str); 2] = [("gcc", "g++"), ("clang", "clang++")];

/// What each of these compilers makes of a source of tests/c.
fn assembly(name: &str, options: &[&str]) -> Vec<String> {
    let source = home().join("tests/c").join(name);
    let made = COMPILERS.iter().filter_map(|(c, cpp)| {
        let compiler = if is_c(&source) { c } else { cpp };
        if Command::new(compiler).arg("--version").output().is_err() {
            outside::skip(format_args!("{name}: install g++ and clang"));
            return None;
        }
        let output = Command::new(compiler)
            .args([standard(&source), "-S", "-o", "-", "-I"])
            .arg(home().join("include"))
            .args(options)
            .arg(&source)
            .output()
            .unwrap();
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8(output.stdout).unwrap())
    });
    made.collect()
}

/// The instructions on vector registers that AVX does not encode.
fn legacy(assembly: &str) -> Vec<&str> {
    let instructions = assembly.lines().map(str::trim).filter(|line| !line.starts_with(['.', '#', '/']));
    let of_vectors = instructions.filter(|line| line.contains("%xmm") || line.contains("%ymm"));
    of_vectors.filter(|line| !line.starts_with('v')).collect()
}

/// The header loaded a line by inline assembly, which has one encoding: SSE's. In code compiled for AVX, where the
/// upper halves of the vector registers are in use, each such instruction waits for them: batches fell from 70 million
/// lookups a second to 5.6 with -march=native, and single ones to a tenth with some compilers. Nobody had compiled a
/// program so.
#[test]
fn code_for_avx_has_no_instruction_of_the_encoding_before_it() {
    for level in ["-O1", "-O2"] {
        for assembly in assembly("lookups.cpp", &[level, "-mavx2"]) {
            assert!(assembly.contains("lookaside_turn"), "{level}: no lookup is compiled in");
            assert_eq!(legacy(&assembly), Vec::<&str>::new(), "{level}");
        }
        // Where one function has AVX, no macro says so.
        for assembly in assembly("target.c", &[level]) {
            assert!(assembly.contains("lookaside_turn"), "{level}: no lookup is compiled in");
            assert_eq!(legacy(&assembly), Vec::<&str>::new(), "{level}, one function");
        }
    }
}

/// g++ copied the options of a buffer by the widest registers there are, and at -O1 it does not end their use. From the
/// line that made the buffer, every instruction of the other encoding waited, those of `exp` and of `snprintf` among
/// them: three of four examples took 2.5 times as long with -march=native. The first mend of this kind had looked at
/// the lookups alone.
#[test]
fn wide_registers_are_left_before_anybody_else_runs() {
    for level in ["-O1", "-O2"] {
        for processor in ["x86-64-v3", "x86-64-v4"] {
            for assembly in assembly("lookups.cpp", &[level, &format!("-march={processor}")]) {
                assert_eq!(leaves_wide(&assembly), Vec::<&str>::new(), "{level} {processor}");
            }
        }
    }
    let copied = "vmovdqu 64(%rsp), %ymm1\nvmovdqu %ymm1, 160(%rsp)\ncall elsewhere";
    assert_eq!(leaves_wide(copied), ["call elsewhere"]);
}

/// The calls and returns with something left in the upper halves of the vector registers.
fn leaves_wide(assembly: &str) -> Vec<&str> {
    let mut wide = false;
    let ends = assembly.lines().map(str::trim).filter(|line| {
        // What is written is the last operand. What is stored from a wide register need not have been wide: zero is
        // not.
        let written = line.rsplit([' ', '\t']).next().unwrap_or_default();
        wide |= written.starts_with("%ymm") || written.starts_with("%zmm");
        wide &= !line.starts_with("vzeroupper");
        wide && (line.starts_with("call") || line.starts_with("ret"))
    });
    ends.collect()
}

/// Every program that made a buffer ended under valgrind: the library that asks for memory read the vector of the
/// kernel's parameters by a system call, which valgrind does not know, and gave up at what it shows programs instead.
/// Users debug with it; we had only run it on programs without a buffer.
#[test]
fn programs_that_make_a_buffer_run_under_valgrind() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        outside::skip("install Debian's package valgrind");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let examples = home().join("examples/cpp");
    for source in [home().join("tests/c/smallest.c"), examples.join("std_unordered_map.cpp")] {
        let name = source.file_name().unwrap();
        if !has(&["stdint.h"], &directory.path().join(name)) {
            outside::skip("there is no compiler for C++: install g++");
            return;
        }
        let binary = directory.path().join("program");
        let options = vec!["-DWORKLOAD_OPERATIONS=20000".to_string()];
        Program { source: &source, include: examples.clone(), options }.build(&binary);
        let output = Command::new("valgrind")
            .args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"])
            .arg(&binary)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {}: {said}", Path::new(name).display(), output.status);
    }
}

/// A buffer that threads share, to which entries are retired that nobody follows.
#[derive(Clone, Copy)]
struct Buffer(*mut SLB);
// SAFETY: its functions may be called by any thread.
unsafe impl Send for Buffer {}

extern "C-unwind" fn hash(opaque: *mut c_void) -> u64 {
    opaque.addr() as u64
}

extern "C-unwind" fn matches(entry: *mut c_void, key: *mut c_void) -> bool {
    entry == key
}

unsafe extern "C-unwind" fn count(_: *mut c_void, freed: *mut c_void) {
    // SAFETY: each retirement passes its counter.
    unsafe { &*freed.cast::<AtomicUsize>() }.fetch_add(1, Ordering::SeqCst);
}

impl Buffer {
    fn new() -> Buffer {
        // SAFETY: callbacks that follow no pointer.
        let b = unsafe { SLB_create(4096, Some(matches), Some(hash), Some(hash)) };
        assert!(!b.is_null());
        Buffer(b)
    }

    fn retire(self, entries: usize, freed: &AtomicUsize) {
        let context = std::ptr::from_ref(freed).cast_mut().cast();
        for number in 1..=entries {
            let entry = std::ptr::without_provenance_mut(64 * number);
            // SAFETY: nobody follows the entry; the counter outlives the buffer.
            unsafe { lookaside_retire(self.0, entry, Some(count), context) };
        }
    }

    fn pin(self) {
        // SAFETY: a buffer.
        unsafe { lookaside_pin(self.0) };
    }

    fn unpin(self) {
        // SAFETY: a buffer.
        unsafe { lookaside_unpin(self.0) };
    }

    fn refresh(self) {
        // SAFETY: a buffer.
        unsafe { lookaside_refresh(self.0) };
    }

    fn destroy(self) {
        // SAFETY: the last call.
        unsafe { SLB_destroy(self.0) };
    }
}

/// A thread collected when it had retired 256 entries, and before that never: 40 values of 20 MB stayed until the
/// buffer ended, whatever the thread did. Now few are enough: none waits longer than two refreshes, and never more than
/// 64 after one.
#[test]
fn few_retired_entries_are_freed_as_well() {
    for entries in [1, 40, 63] {
        let (b, freed) = (Buffer::new(), AtomicUsize::new(0));
        b.pin();
        b.retire(entries, &freed);
        assert_eq!(freed.load(Ordering::SeqCst), 0, "freed under the pin of who retired");
        (0..2).for_each(|_| b.refresh());
        assert_eq!(freed.load(Ordering::SeqCst), entries, "after two refreshes");
        b.retire(100, &freed);
        b.refresh();
        assert!(freed.load(Ordering::SeqCst) + 64 >= entries + 100, "after one");
        b.unpin();
        b.destroy();
        assert_eq!(freed.load(Ordering::SeqCst), entries + 100);
    }
}

/// The same of threads that pin for each lookup: what each retires under its pin, and with none, is never more than 64
/// afterwards.
#[test]
fn at_most_64_retired_entries_of_a_thread_wait_after_it_unpins() {
    for pinned in [true, false] {
        let (b, freed, mut retired) = (Buffer::new(), AtomicUsize::new(0), 0);
        for round in 0..1000 {
            let entries = round % 90;
            if pinned {
                b.pin();
            }
            b.retire(entries, &freed);
            retired += entries;
            if pinned {
                b.unpin();
            }
            let waiting = retired - freed.load(Ordering::SeqCst);
            assert!(waiting <= 64, "{waiting} wait after {entries} more, pinned: {pinned}");
        }
        b.destroy();
        assert_eq!(freed.load(Ordering::SeqCst), retired);
    }
}

/// What a thread had retired when it ended went into a queue of the collector, and was freed when others had pinned
/// often enough. It is the buffer's now: whoever collects next takes it.
#[test]
fn what_an_ended_thread_has_retired_others_free() {
    let freed = AtomicUsize::new(0);
    for by_refreshes in [true, false] {
        let b = Buffer::new();
        let before = freed.load(Ordering::SeqCst);
        std::thread::scope(|scope| {
            let freed = &freed;
            let thread = scope.spawn(move || {
                let b = { b };
                b.pin();
                b.retire(10, freed);
                // It ends while it is pinned: its pin goes with it.
            });
            // The thread itself, its sessions with it, which a scope does not wait for.
            thread.join().unwrap();
        });
        if by_refreshes {
            b.pin();
            b.retire(1, &freed);
            (0..2).for_each(|_| b.refresh());
            b.unpin();
        } else {
            b.retire(1, &freed);
            // SAFETY: a buffer.
            unsafe { lookaside_reclaim(b.0) };
        }
        assert_eq!(freed.load(Ordering::SeqCst) - before, 11, "by refreshes: {by_refreshes}");
        b.destroy();
    }
}

/// The end of a buffer runs every release before it returns, also where a thread has retired and pinned that is still
/// there.
#[test]
fn the_end_of_a_buffer_frees_what_every_thread_has_retired() {
    let (b, freed) = (Buffer::new(), AtomicUsize::new(0));
    b.retire(3, &freed);
    std::thread::scope(|scope| {
        let ((ready, is_ready), (end, may_end)) = (channel(), channel::<()>());
        let freed = &freed;
        scope.spawn(move || {
            let b = { b };
            b.pin();
            b.retire(70, freed);
            ready.send(()).unwrap();
            // Its last call was made. It ends after the buffer.
            let _ = may_end.recv();
        });
        is_ready.recv().unwrap();
        b.destroy();
        assert_eq!(freed.load(Ordering::SeqCst), 73);
        drop(end);
    });
}
