//! How large the chunks of each slab class are.
//!
//! Sizes go up in steps of eight bytes, the unit of a location, as long as that is more than a thirtieth; then by about
//! a twenty-fifth, each as large as a page holds a whole number of. So an item wastes nothing where it is a multiple of
//! eight and small, a few per cent where it is larger, and an eighth at the very worst, just above 7 KiB. (memcached
//! steps by a quarter.)
//!
//! Pages are 64 KiB, not memcached's 1 MiB: a class that holds a few items costs little, and memory moves between
//! classes in small pieces. Items too large for the largest chunk are chained: see [`crate::item`].

use crate::arena::PAGE;

/// Bytes of the largest chunk: an eighth of a page.
pub(crate) const LARGEST_CHUNK: usize = PAGE / 8;
/// Bytes of the smallest chunk: the shortest key and no value.
const SMALLEST_CHUNK: usize = 16;
/// Chunk sizes, and so items, are multiples of this.
const STEP: usize = 8;
/// Steps to the largest chunk.
const MOST_STEPS: usize = LARGEST_CHUNK / STEP;

/// The slab class of a chunk: an index into the sizes.
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClassId(pub(crate) u8);

/// The chunk sizes, smallest first.
#[derive(Debug)]
pub(crate) struct SizeClasses {
    sizes: Vec<usize>,
    /// The class for every size in steps.
    class_of_steps: [u8; MOST_STEPS + 1],
}

impl SizeClasses {
    pub(crate) fn new() -> Self {
        let mut sizes = vec![SMALLEST_CHUNK];
        while let Some(&last) = sizes.last()
            && last < LARGEST_CHUNK
        {
            let wanted = (last + STEP).max(last * 33 / 32);
            // The largest chunk of which a page holds as many as of the wanted one.
            let per_page = PAGE / wanted;
            let size = PAGE / per_page / STEP * STEP;
            sizes.push(size.min(LARGEST_CHUNK).max(last + STEP));
        }
        let mut class_of_steps = [0; MOST_STEPS + 1];
        let mut class = 0;
        for (steps, class_of) in class_of_steps.iter_mut().enumerate() {
            while sizes[class] < steps * STEP {
                class += 1;
            }
            *class_of = u8::try_from(class).expect("fewer than 256 classes");
        }
        SizeClasses { sizes, class_of_steps }
    }

    /// The class of the smallest chunk with room for `bytes`; `None` where there is none.
    #[inline]
    pub(crate) fn class_for(&self, bytes: usize) -> Option<ClassId> {
        self.class_of_steps.get(bytes.div_ceil(STEP)).copied().map(ClassId)
    }

    /// The class that an item is counted in that takes so much of its first chunk.
    #[inline]
    pub(crate) fn class_of_item(&self, first_chunk: usize) -> ClassId {
        self.class_for(first_chunk).expect("at most the largest chunk")
    }

    /// Bytes of a chunk.
    #[inline]
    pub(crate) fn chunk_size(&self, class: ClassId) -> usize {
        self.sizes[class.0 as usize]
    }

    /// Every class, smallest chunk first.
    pub(crate) fn all(&self) -> impl Iterator<Item = ClassId> + use<> {
        (0..self.sizes.len() as u8).map(ClassId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_chunk_that_holds_it() {
        let classes = SizeClasses::new();
        assert!(classes.all().count() < 256);
        for bytes in 1..=LARGEST_CHUNK {
            let class = classes.class_for(bytes).unwrap();
            assert!(classes.chunk_size(class) >= bytes);
            assert!(class.0 == 0 || classes.chunk_size(ClassId(class.0 - 1)) < bytes);
        }
        assert_eq!(classes.class_for(LARGEST_CHUNK + 1), None);
    }

    #[test]
    fn little_is_wasted() {
        let classes = SizeClasses::new();
        for bytes in (16..=160).step_by(8) {
            assert_eq!(
                classes.chunk_size(classes.class_for(bytes).unwrap()),
                bytes,
                "multiples of eight fit exactly"
            );
        }
        for bytes in 16..=LARGEST_CHUNK {
            let chunk = classes.chunk_size(classes.class_for(bytes).unwrap());
            let bearable = if bytes <= 4096 { bytes / 13 } else { bytes / 7 };
            assert!(chunk - bytes <= bearable.max(8), "{bytes} in {chunk}");
        }
        for class in classes.all() {
            let chunk = classes.chunk_size(class);
            assert!(
                chunk.is_multiple_of(STEP) && PAGE % chunk <= PAGE / 32,
                "{} of a page left by {chunk}",
                PAGE % chunk
            );
        }
    }
}
