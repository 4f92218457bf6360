//! Between QEMU's callbacks and the simulation.
//!
//! ```text
//!   qemu_plugin_install   arguments, machine; registers translation, system calls, exit
//!   a block is translated loading: only STLT instructions are watched
//!                         otherwise: the block's start and every access, too
//!   a phase changes       between loading and anything else all translations are thrown away (a reset)
//!   the guest exits       the measurement is written
//! ```
//!
//! One simulated core runs the guest's first thread. Other threads run, but unseen: no block, no access and no STLT
//! instruction of theirs counts, only the pages that they unmap. So the simulation belongs to the thread of the
//! first virtual processor, and needs no lock.
//!
//! A process that the guest forks has a copy of all this, which goes on and answers it. Only the first process writes
//! what was measured, and what it recorded.
//!
//! A translated block is kept for ever (the callbacks hold its address), once for all translations of the same
//! bytes at the same place.

#![allow(unsafe_code, reason = "the border to QEMU")]

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use sim::{Core, FORMAT, Measurement, MemoryAccess};

use crate::address_space::{AddressSpace, Change};
use crate::api::{self, Functions, Id, Info, MemInfo};
use crate::arguments::Arguments;
use crate::decode::Translator;
use crate::protocol::{self, Operation, Phase, Request};
use crate::simulation::{Block, Simulation, Watch};

/// QEMU asks for this before anything else.
// SAFETY: the name is the interface's, and nobody else's.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = api::VERSION;

/// The first virtual processor: that of the guest's first thread.
const FIRST: c_uint = 0;
/// In the word that an access carries: it may be half of a wider one.
const HALVES: usize = 1 << 31;

/// A block, and what to watch in its instructions.
type Known = (&'static Block, Vec<Watch>);

/// Blocks by where they begin and what their bytes are.
#[derive(Default)]
struct Translations {
    translator: Translator,
    known: HashMap<(u64, Vec<u8>), Known>,
}

struct Plugin {
    functions: Functions,
    /// Where the guest's page for operands is in this process; 0 until it has greeted.
    mailbox: AtomicUsize,
    arguments: Arguments,
    /// A child that the guest forks must not write the measurement.
    process: u32,
    /// Blocks and accesses are watched in what is translated from now on.
    watching: AtomicBool,
    translations: Mutex<Translations>,
    address_space: Mutex<AddressSpace>,
    /// What happened to pages since the simulation last heard of any.
    changes: Mutex<Vec<Change>>,
    any_changes: AtomicBool,
    simulation: UnsafeCell<Simulation>,
}

// SAFETY: `simulation` is touched only by `Plugin::simulation`, whose callers are on the first virtual processor's
// thread, or alone. The translator's factory is plain memory behind a lock.
unsafe impl Sync for Plugin {}
// SAFETY: as above; it is made on one thread and stays where it is.
unsafe impl Send for Plugin {}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

#[expect(clippy::print_stderr, reason = "a plugin has no other way to tell the person who started QEMU")]
fn tell(message: &str) {
    eprintln!("lookaside simulator: {message}");
}

/// QEMU calls this once, when it loads the plugin.
///
/// # Safety
/// `info` and the `count` strings of `arguments` are what QEMU's plugin interface says.
// SAFETY: the name is the interface's, and nobody else's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    // SAFETY: passed on.
    match unsafe { install(id, info, count, arguments) } {
        Ok(()) => 0,
        Err(message) => {
            tell(&message);
            1
        }
    }
}

/// # Safety
/// As [`qemu_plugin_install`].
unsafe fn install(
    id: Id,
    info: *const Info,
    count: c_int,
    arguments: *const *const c_char,
) -> Result<(), String> {
    // SAFETY: the caller's.
    let (info, target) = unsafe { (&*info, CStr::from_ptr((*info).target)) };
    if info.system || target != c"x86_64" {
        return Err(format!(
            "this is {}; only qemu-x86_64, user mode, can be simulated",
            target.to_string_lossy()
        ));
    }
    if !(info.minimum..=info.current).contains(&api::VERSION) {
        return Err(format!(
            "this QEMU takes plugins of versions {} to {}, this one is of version {}: use {}; {}",
            info.minimum,
            info.current,
            api::VERSION,
            api::RELEASES,
            api::OTHER_RELEASES
        ));
    }
    let functions = Functions::find()
        .map_err(|name| format!("this QEMU has no {name}: use {}; {}", api::RELEASES, api::OTHER_RELEASES))?;
    let arguments = (0..count.max(0) as usize).map(|place| {
        // SAFETY: the caller's.
        unsafe { CStr::from_ptr(*arguments.add(place)) }.to_string_lossy().into_owned()
    });
    let arguments = Arguments::parse(arguments).map_err(|error| error.to_string())?;
    let core = Core::new(&arguments.profile).map_err(|error| error.to_string())?;
    let simulation = Simulation::new(core);
    let plugin = Plugin {
        functions,
        mailbox: AtomicUsize::new(0),
        arguments,
        process: std::process::id(),
        watching: AtomicBool::new(false),
        translations: Mutex::default(),
        address_space: Mutex::default(),
        changes: Mutex::default(),
        any_changes: AtomicBool::new(false),
        simulation: UnsafeCell::new(simulation),
    };
    if PLUGIN.set(plugin).is_err() {
        return Err("loaded twice: once is enough".into());
    }
    register(id);
    Ok(())
}

fn plugin() -> &'static Plugin {
    PLUGIN.get().expect("callbacks are registered after it was set")
}

extern "C" fn register(id: Id) {
    let functions = &plugin().functions;
    // SAFETY: `id` is ours; the callbacks are of the interface's types.
    unsafe {
        (functions.on_translation)(id, translated);
        (functions.on_call)(id, called);
        (functions.on_return)(id, returned);
        (functions.on_exit)(id, exits, ptr::null_mut());
    }
}

impl Plugin {
    /// # Safety
    /// On the thread of the first virtual processor, or when no other callback can run; and no other reference is
    /// alive.
    #[expect(clippy::mut_from_ref, reason = "the callers are one after the other")]
    unsafe fn simulation(&self) -> &mut Simulation {
        // SAFETY: the caller's.
        unsafe { &mut *self.simulation.get() }
    }

    /// A word of the guest's page for operands, once it has greeted.
    fn word(&self, offset: u64) -> Option<&AtomicU64> {
        let at = self.mailbox.load(Ordering::Relaxed);
        // SAFETY: a guest that greets has the page and keeps it (`protocol` demands that): its own moves of operands go
        // there, before and after each thing that is asked here. The words that `protocol` names are aligned, within
        // it, and the guest's own memory.
        (at != 0).then(|| unsafe { &*ptr::with_exposed_provenance(at + offset as usize) })
    }

    fn write(&self, offset: u64, value: u64) {
        if let Some(word) = self.word(offset) {
            word.store(value, Ordering::Relaxed);
        }
    }

    #[cold]
    fn tell_of_pages(&self, simulation: &mut Simulation) {
        self.any_changes.store(false, Ordering::Relaxed);
        for change in self.changes.lock().drain(..) {
            simulation.pages_change(change);
        }
    }
}

extern "C" fn translated(_: Id, block: *mut api::Block) {
    let plugin = plugin();
    let functions = &plugin.functions;
    let mut all = Vec::new();
    // SAFETY: `block` and its instructions are valid during this callback.
    let instructions: Vec<(*mut api::Insn, u64, Range<usize>)> = unsafe {
        (0..(functions.block_length)(block))
            .map(|place| {
                let insn = (functions.block_insn)(block, place);
                let start = all.len();
                functions.append_bytes(insn, &mut all);
                (insn, (functions.insn_address)(insn), start..all.len())
            })
            .collect()
    };
    let Some(&(_, address, _)) = instructions.first() else { return };
    let mut translations = plugin.translations.lock();
    let Translations { translator, known } = &mut *translations;
    let (kept, watches) = known.entry((address, all)).or_insert_with_key(|(_, all)| {
        let each = instructions.iter().map(|(_, address, bytes)| (*address, &all[bytes.clone()]));
        let (block, watches) = Block::new(translator, each);
        (Box::leak(Box::new(block)), watches)
    });
    let watching = plugin.watching.load(Ordering::Relaxed);
    // SAFETY: `block` and its instructions are valid, the callbacks of the interface's types; what they are
    // given is a number, or a block that lives for ever.
    unsafe {
        if watching {
            let kept = ptr::from_ref(*kept).cast_mut().cast();
            (functions.on_block)(block, begins, api::NO_REGISTERS, kept);
        }
        for (&(insn, ..), watch) in instructions.iter().zip(watches) {
            match *watch {
                Watch::Accesses { place, halves } if watching => {
                    let word = place as usize | if halves { HALVES } else { 0 };
                    let word = ptr::without_provenance_mut(word);
                    (functions.on_access)(insn, accesses, api::NO_REGISTERS, api::READS_AND_WRITES, word);
                }
                Watch::Stlt(operation) => {
                    let word = ptr::without_provenance_mut(operation as usize);
                    (functions.on_insn)(insn, stlt, api::NO_REGISTERS, word);
                }
                Watch::Accesses { .. } | Watch::Nothing => {}
            }
        }
    }
}

extern "C" fn begins(processor: c_uint, block: *mut c_void) {
    if processor != FIRST {
        return;
    }
    let plugin = plugin();
    // SAFETY: the first processor's thread; `block` was leaked by `translated`.
    let (simulation, block) = unsafe { (plugin.simulation(), &*block.cast::<Block>().cast_const()) };
    if plugin.any_changes.load(Ordering::Relaxed) {
        plugin.tell_of_pages(simulation);
    }
    simulation.begin(block);
}

extern "C" fn accesses(processor: c_uint, info: MemInfo, address: u64, word: *mut c_void) {
    if processor != FIRST {
        return;
    }
    let plugin = plugin();
    let word = word.addr();
    // SAFETY: `info` is QEMU's.
    let (shift, store) =
        unsafe { ((plugin.functions.mem_size_shift)(info), (plugin.functions.mem_is_store)(info)) };
    let access = MemoryAccess { address, bytes: 1 << shift, store };
    // SAFETY: the first processor's thread.
    let simulation = unsafe { plugin.simulation() };
    simulation.access((word & (HALVES - 1)) as u32, word & HALVES != 0, access);
}

extern "C" fn stlt(processor: c_uint, word: *mut c_void) {
    let plugin = plugin();
    if processor != FIRST {
        plugin.write(protocol::RESULT, 0);
        return;
    }
    let operand = |offset| plugin.word(offset).map(|word| word.load(Ordering::Relaxed));
    let (Some(integer), Some(address)) = (operand(protocol::INTEGER), operand(protocol::ADDRESS)) else {
        return;
    };
    let load = word.addr() == Operation::LoadVa as usize;
    let operation = if load { Operation::LoadVa } else { Operation::InsertStlt };
    // SAFETY: the first processor's thread.
    let simulation = unsafe { plugin.simulation() };
    if plugin.any_changes.load(Ordering::Relaxed) {
        plugin.tell_of_pages(simulation);
    }
    plugin.write(protocol::RESULT, simulation.stlt(operation, integer, address));
}

extern "C" fn called(
    id: Id,
    processor: c_uint,
    number: i64,
    first: u64,
    second: u64,
    third: u64,
    fourth: u64,
    fifth: u64,
    _: u64,
    _: u64,
    _: u64,
) {
    let plugin = plugin();
    if number != protocol::CALL {
        plugin.address_space.lock().called(processor, number, [first, second, third, fourth]);
        return;
    }
    let request = Request::of([first, second, third, fourth, fifth]);
    match request {
        Some(Request::Greeting(mailbox)) if mailbox == protocol::MAILBOX => {
            plugin.mailbox.store(api::guest_base().wrapping_add(mailbox) as usize, Ordering::Relaxed);
            plugin.write(protocol::WHO, protocol::PRESENT);
            return;
        }
        _ if plugin.mailbox.load(Ordering::Relaxed) == 0 => {
            tell("the guest has not greeted: call stlt_open() first");
            return;
        }
        _ => {}
    }
    if processor != FIRST {
        tell(&format!(
            "the guest asks on another thread than its first, which is simulated: {first}, {second}"
        ));
        plugin.write(protocol::ANSWER, protocol::REFUSED);
        return;
    }
    let Some(request) = request else {
        tell(&format!("the guest asks for what does not exist: {first}, {second}"));
        plugin.write(protocol::ANSWER, protocol::REFUSED);
        return;
    };
    // SAFETY: the first processor's thread.
    let simulation = unsafe { plugin.simulation() };
    if plugin.any_changes.load(Ordering::Relaxed) {
        plugin.tell_of_pages(simulation);
    }
    let answer = simulation.answer(request);
    if let Err(error) = &answer {
        tell(&error.to_string());
    }
    plugin.write(protocol::ANSWER, if answer.is_err() { protocol::REFUSED } else { 0 });
    let watching = simulation.phase() != Phase::Load;
    if plugin.watching.swap(watching, Ordering::Relaxed) != watching {
        // SAFETY: `id` is ours.
        unsafe { (plugin.functions.reset)(id, register) };
    }
}

extern "C" fn returned(_: Id, processor: c_uint, number: i64, result: i64) {
    let plugin = plugin();
    let changes = plugin.address_space.lock().returned(processor, number, result);
    if !changes.is_empty() {
        plugin.changes.lock().extend(changes);
        plugin.any_changes.store(true, Ordering::Relaxed);
    }
}

extern "C" fn exits(_: Id, _: *mut c_void) {
    let plugin = plugin();
    if std::process::id() != plugin.process {
        return;
    }
    // SAFETY: QEMU has stopped all processors.
    let simulation = unsafe { plugin.simulation() };
    let Arguments { profile, out } = &plugin.arguments;
    // What ran, whoever started it knows.
    let (machine, windows) = (profile.name.clone(), simulation.windows().to_vec());
    let (guest, variant) = Default::default();
    let measurement = Measurement { format: FORMAT, machine, guest, variant, seed: 0, windows };
    if let Err(error) = measurement.write(out) {
        tell(&error.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_that_qemu_asks_for_is_the_chosen_one() {
        assert_eq!(qemu_plugin_version, if cfg!(feature = "plugin-v3") { 3 } else { 1 });
    }
}
