//! An item being written: header, key and value, into chunks of its own.

#![allow(unsafe_code)]

use cuckoo::Location;

use crate::access::{Access, Accessed};
use crate::arena::{Arena, Mark, State};
use crate::item::{
    CHAIN_FIELDS, FURTHER_HEADER, GENERATION_SHIFT, Generation, HAS_OWN_CAS, HEADER, Item, MAX_KEY_LEN,
    OWN_CAS, Outline,
};
use crate::recency::Recency;

/// Begins an item that is a copy of another one of one chunk, without an expiry or a number of the client's; says
/// where its value is, to be written over. It is whole once it [goes live](goes_live).
///
/// # Safety
/// The chunk at `at` must be in state `Filling`, owned by the caller, and have as many bytes as the item.
#[inline]
pub(crate) unsafe fn copy(
    arena: &Arena,
    at: Location,
    of: Item<'_>,
    recency: Recency,
    accessed: Accessed,
) -> *mut [u8] {
    debug_assert!(!of.is_chained() && !of.has_expiry_field() && of.own_cas().is_none());
    let (start, from, len) = (arena.start(at), arena.start(of.location()), of.value_len());
    let size = of.size();
    // SAFETY: within both chunks, which are two. Of the header what may change meanwhile is not read: the mark and the
    // access; all else of an item is written once. The value is the end of the item, and nobody else's.
    let value = unsafe {
        start.add(1).copy_from_nonoverlapping(from.add(1), 3);
        start.add(6).cast::<Access>().write(Access::new(accessed));
        start.add(HEADER).copy_from_nonoverlapping(from.add(HEADER), size - HEADER);
        std::ptr::slice_from_raw_parts_mut(start.add(size - len), len)
    };
    let mark = Mark::new(State::Filling).with_recency(recency).with_fields(of.has_flags(), false, false);
    arena.set_mark(at, if of.is_fetched() { mark.with_fetched() } else { mark });
    value
}

/// The item there, of one chunk, is whole: from here on it may be put into the index.
#[inline]
pub(crate) fn goes_live(arena: &Arena, at: Location) {
    arena.set_mark(at, arena.mark(at).with_state(State::Live));
}

/// An item being written: its chunks are in state `Filling` and belong to whoever has this.
///
/// The value is appended piece by piece; the engine adds further chunks as they are needed.
#[derive(Debug)]
pub(crate) struct Unfinished {
    first: Location,
    /// The chunk that is being filled, and the offsets in it of the next byte and of the end of its room.
    current: Location,
    next_byte: usize,
    end: usize,
    /// Bytes of the value that are still to come.
    missing: usize,
}

impl Unfinished {
    /// Writes the header and the key of an item into its first chunk.
    ///
    /// # Safety
    /// The chunk at `at` must be in state `Filling`, owned by the caller, and have at least
    /// [`outline.first_chunk()`](Outline::first_chunk) bytes.
    pub(crate) unsafe fn begin(
        arena: &Arena,
        at: Location,
        outline: &Outline<'_>,
        newcomer: Recency,
    ) -> Unfinished {
        let (chained, has_expiry, has_flags) =
            (outline.is_chained(), outline.has_expiry(), outline.has_flags());
        assert!((1..=MAX_KEY_LEN).contains(&outline.key.len()), "a key has 1 to {MAX_KEY_LEN} bytes");
        let key_len = outline.key.len() as u8;
        let start = arena.start(at);
        let inline_len = if chained { 0 } else { outline.value_len as u16 };
        let has_own_cas = if outline.cas.is_some() { HAS_OWN_CAS } else { 0 };
        let mut offset = HEADER;
        // SAFETY: every write is within the chunk, by the caller's promise on its size, and aligned: fields of four and
        // eight bytes lie at multiples of these from a start that is a multiple of eight. The expiry and the references
        // are written as plain words before anybody else can see them.
        unsafe {
            start.add(1).write(key_len);
            start.add(2).cast::<u16>().write(inline_len | has_own_cas);
            if let Some(cas) = outline.cas {
                start.add(outline.first_chunk() - OWN_CAS).cast::<u64>().write_unaligned(cas);
            }
            if chained {
                start
                    .add(8)
                    .cast::<u32>()
                    .write(u32::try_from(outline.value_len).expect("a value below 4 GiB"));
                start.add(12).cast::<u32>().write(0);
                start.add(16).cast::<u64>().write(0);
                offset += CHAIN_FIELDS;
            }
            if has_expiry {
                start.add(offset).cast::<u32>().write(outline.expiry.to_word());
                offset += 4;
            }
            if has_flags {
                start.add(offset).cast::<u32>().write(outline.flags);
                offset += 4;
            }
            start.add(offset).copy_from_nonoverlapping(outline.key.as_ptr(), outline.key.len());
            offset += outline.key.len();
        }
        let mark =
            Mark::new(State::Filling).with_recency(newcomer).with_fields(has_flags, has_expiry, chained);
        arena.set_mark(at, mark);
        Unfinished {
            first: at,
            current: at,
            next_byte: offset,
            end: offset + outline.first_room(),
            missing: outline.value_len,
        }
    }

    /// Writes an item that is not chained but for what [`finish`](Unfinished::finish) writes.
    ///
    /// # Safety
    /// As [`Unfinished::begin`]; the item is not chained.
    #[inline]
    pub(crate) unsafe fn whole(
        arena: &Arena,
        at: Location,
        outline: &Outline<'_>,
        newcomer: Recency,
        value: &[u8],
    ) -> Unfinished {
        let key = outline.key;
        let is_plain = !outline.has_flags() && !outline.has_expiry_if_unchained() && outline.cas.is_none();
        if !is_plain || key.len().wrapping_sub(1) >= MAX_KEY_LEN || value.len() != outline.value_len {
            // SAFETY: the caller's.
            let mut unfinished = unsafe { Unfinished::begin(arena, at, outline, newcomer) };
            unfinished.append(arena, value);
            return unfinished;
        }
        let start = arena.start(at);
        let (value_at, end) = (HEADER + key.len(), HEADER + key.len() + value.len());
        // SAFETY: as in `begin`, of an item that is header, key and value, as long as was announced.
        unsafe {
            start.add(1).write(key.len() as u8);
            start.add(2).cast::<u16>().write(value.len() as u16);
            start.add(HEADER).copy_from_nonoverlapping(key.as_ptr(), key.len());
            start.add(value_at).copy_from_nonoverlapping(value.as_ptr(), value.len());
        }
        arena.set_mark(at, Mark::new(State::Filling).with_recency(newcomer));
        Unfinished { first: at, current: at, next_byte: end, end, missing: 0 }
    }

    pub(crate) fn first(&self) -> Location {
        self.first
    }

    /// Bytes of the value that are still to come.
    pub(crate) fn missing(&self) -> usize {
        self.missing
    }

    /// Room left in the chunk that is being filled: where there is none although bytes are missing, a further chunk is
    /// needed.
    pub(crate) fn room(&self) -> usize {
        self.end - self.next_byte
    }

    /// Appends as much of `data` as the current chunk has room for, and says how much.
    pub(crate) fn append(&mut self, arena: &Arena, data: &[u8]) -> usize {
        let len = data.len().min(self.room());
        // SAFETY: the chunk is ours and has the room.
        unsafe {
            arena.start(self.current).add(self.next_byte).copy_from_nonoverlapping(data.as_ptr(), len);
        }
        self.next_byte += len;
        self.missing -= len;
        len
    }

    /// Goes on in a further chunk with room for `len` bytes, which is written when the pool's clock says `born`.
    ///
    /// # Safety
    /// The chunk at `at` must be in state `Filling`, owned by the caller, and have at least `FURTHER_HEADER + len`
    /// bytes.
    pub(crate) unsafe fn extend(&mut self, arena: &Arena, at: Location, len: usize, born: u32) {
        debug_assert!(self.room() == 0 && len <= self.missing);
        let start = arena.start(at);
        let link_offset = if self.current == self.first { 16 } else { 8 };
        // SAFETY: within both chunks, which are ours; fields are aligned as in `begin`.
        unsafe {
            start.add(1).write(0);
            start.add(2).cast::<u16>().write(u16::try_from(len).expect("data within a chunk"));
            start.add(4).cast::<u32>().write(born);
            start.add(8).cast::<u64>().write(0);
            start.add(16).cast::<u64>().write(self.first.get());
            arena.start(self.current).add(link_offset).cast::<u64>().write(at.get() + 1);
        }
        arena.set_mark(at, Mark::new(State::Filling).with_fields(false, false, true));
        self.current = at;
        self.next_byte = FURTHER_HEADER;
        self.end = FURTHER_HEADER + len;
    }

    /// Completes the header, but for the stamp: from here on the item may be put into the index. Its chunks are live.
    #[inline]
    pub(crate) fn finish(&self, arena: &Arena, generation: Generation, accessed: Accessed) {
        assert_eq!(self.missing, 0, "a value that was promised has not been written");
        let start = arena.start(self.first);
        // SAFETY: the header of a chunk that is ours; aligned as in `begin`.
        unsafe {
            let len = start.add(2).cast::<u16>().read();
            let rest = len & ((1 << GENERATION_SHIFT) - 1);
            start.add(2).cast::<u16>().write(rest | u16::from(generation.get()) << GENERATION_SHIFT);
            start.add(6).cast::<Access>().write(Access::new(accessed));
        }
        let mark = arena.mark(self.first);
        if mark.is_chained() {
            // SAFETY: ours until it is published, which is after this.
            let item = unsafe { Item::at(arena, self.first) };
            for further in item.further() {
                arena.set_mark(further.location(), arena.mark(further.location()).with_state(State::Live));
            }
        }
        arena.set_mark(self.first, mark.with_state(State::Live));
    }
}
