//! Long visits to an epoch, during which what was retired is freed all the same.
//!
//! Who pins for each request pays for it, and who pins once for many keeps all that was retired meanwhile: crossbeam-epoch
//! looks for what could be freed at every 128th time that a thread pins which was not pinned, and never while it stays so. Twenty
//! million requests, half of them writes, would take gigabytes of new memory, and page faults with it, where a program
//! would use again what it has freed. So whoever measures writes lets go from time to time, and looks for what to free.

use crossbeam_epoch::Guard;

/// Requests after which a visit is to be renewed.
pub const REQUESTS: usize = 1024;

/// A look frees eight bags of up to 64 things: so many free twice what all requests retire, two things each, for not all bags are
/// full.
const LOOKS: usize = 2 * 2 * REQUESTS / (8 * 64);

/// Lets go of what was retired so far, by whomever, and frees what everybody has let go of.
pub fn renew(guard: &mut Guard) {
    guard.repin();
    free_retired(guard);
}

/// Frees what everybody has let go of. To be called when the epoch was just pinned, or pinned anew.
pub fn free_retired(guard: &Guard) {
    (0..LOOKS).for_each(|_| guard.flush());
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crossbeam_epoch::Collector;

    use super::*;

    #[test]
    fn a_long_visit_keeps_little() {
        // A collector of its own: other tests are pinned as they like.
        let collector = Collector::new();
        let mut guard = collector.register().pin();
        let retired = Arc::new(());
        let mut most = 0;
        for _ in 0..100 {
            for _ in 0..2 * REQUESTS {
                let thing = retired.clone();
                guard.defer(move || drop(thing));
            }
            most = most.max(Arc::strong_count(&retired) - 1);
            renew(&mut guard);
        }
        // An epoch's things wait for two more.
        assert!(most <= 5 * 2 * REQUESTS, "{most} things waited");
    }
}
