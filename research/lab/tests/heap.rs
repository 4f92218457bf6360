//! What an index has freed is the kernel's before the next one is built. Alone in its program, because it measures the
//! program's memory.
#![cfg(target_env = "gnu")]

use lookaside_lab::measure::{Resident, release_freed_memory};

#[test]
fn what_was_freed_in_small_pieces_is_resident_no_more() {
    // Pieces so small that the allocator keeps each in a list by itself; and one behind them, so that they are not the
    // end.
    let before = Resident::now();
    let pieces: Vec<Box<[u64; 8]>> = (0..2_000_000).map(|n| Box::new([n; 8])).collect();
    let last = Box::new([0u8; 100]);
    let filled = Resident::now().since(before).bytes;
    drop(pieces);
    release_freed_memory();
    let left = Resident::now().since(before).bytes;
    assert!(filled > 128 << 20 && left < filled / 4, "of {filled} bytes, {left} are left");
    drop(last);
}
