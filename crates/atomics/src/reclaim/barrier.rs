//! The two sides' barriers: see [`crate::reclaim`], step 2.

use crate::seam::{AtomicBool, Ordering, fence};

/// By what the store of an epoch and the look at it are kept apart. One for the whole process, decided before anyone
/// pins: a light barrier of one kind is none against a heavy one of another.
#[derive(Debug)]
pub(crate) struct Barrier {
    kind: Kind,
    /// Whether a heavy one could not be had.
    failed: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The system makes all threads of the process execute a fence.
    #[cfg(all(target_os = "linux", not(any(loom, miri, lookaside_portable))))]
    Membarrier,
    /// Both sides execute one.
    Fences,
    /// For tests: no barrier on the readers' side.
    #[cfg(all(test, loom))]
    Missing,
    /// For tests: the system refuses what it has promised.
    #[cfg(all(test, not(loom)))]
    Refused,
}

impl Barrier {
    pub(crate) fn of_kind(kind: Kind) -> Barrier {
        Barrier { kind, failed: AtomicBool::new(false) }
    }

    #[cfg(all(test, not(loom)))]
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn of_this_process() -> Barrier {
        Barrier::of_kind(kind_of_this_process())
    }

    /// The readers' side: between the store of an epoch and the loads behind it.
    #[inline(always)]
    pub(crate) fn light(&self) {
        match self.kind {
            Kind::Fences => fence(Ordering::SeqCst),
            #[cfg(all(test, loom))]
            Kind::Missing => {}
            // Pairs with `heavy`, by which the system makes a fence of it.
            #[cfg(not(loom))]
            #[allow(unreachable_patterns)]
            _ => std::sync::atomic::compiler_fence(Ordering::SeqCst),
        }
    }

    /// The collector's side: between what was unlinked and the look at the epochs. Whether it could be had: a filter
    /// that came into force behind the registration may refuse it.
    #[must_use]
    pub(crate) fn heavy(&self) -> bool {
        let outcome = match self.kind {
            #[cfg(all(target_os = "linux", not(any(loom, miri, lookaside_portable))))]
            Kind::Membarrier => {
                use rustix::thread::{MembarrierCommand, membarrier};
                membarrier(MembarrierCommand::PrivateExpedited).is_ok()
            }
            #[cfg(all(test, not(loom)))]
            Kind::Refused => false,
            _ => {
                fence(Ordering::SeqCst);
                true
            }
        };
        if !outcome {
            self.failed.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Whether there may be something that waits for a heavy one.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// Miri has no such call, loom models fences.
#[cfg(not(all(target_os = "linux", not(any(loom, miri, lookaside_portable)))))]
fn kind_of_this_process() -> Kind {
    Kind::Fences
}

#[cfg(all(target_os = "linux", not(any(loom, miri, lookaside_portable))))]
fn kind_of_this_process() -> Kind {
    use std::sync::OnceLock;

    use rustix::thread::{MembarrierCommand, MembarrierQuery, membarrier, membarrier_query};

    static KIND: OnceLock<Kind> = OnceLock::new();
    *KIND.get_or_init(|| {
        let both = MembarrierQuery::PRIVATE_EXPEDITED | MembarrierQuery::REGISTER_PRIVATE_EXPEDITED;
        let has_it = membarrier_query().contains(both)
            && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
            && membarrier(MembarrierCommand::PrivateExpedited).is_ok();
        if has_it { Kind::Membarrier } else { Kind::Fences }
    })
}
