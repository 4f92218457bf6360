//! A compiled container under QEMU, by the same configurations as guests in this process.

use indicatif::ProgressBar;
use sim_lab::configuration::{Configuration, Guest, Lengths};
use sim_lab::error::RunError;
use sim_lab::guest::{Container, Variant};
use sim_lab::run::Run;
use sim_lab::store::Store;
use sim_lab::sweep::{Place, sweep};
use sim_qemu::GuestError;

use crate::shared::{self, qemu};

fn configuration(container: Container, variant: Variant) -> Configuration {
    let lengths = Lengths { warm_up: 20_000, functional: 10_000, settle: 200, windows: 2, window: 1_000 };
    shared::configuration(Guest::Qemu, (container, variant), (5_000, 1 << 18), lengths)
}

#[test]
fn a_compiled_map_is_measured_as_one_in_this_process_is() {
    let Some(qemu) = qemu() else { return };
    let measured =
        |variant| qemu.run(&configuration(Container::UnorderedMap, variant)).expect("a measurement");
    let (alone, stlt) = (measured(Variant::Alone), measured(Variant::Stlt));
    for (measurement, variant) in [(&alone, "alone"), (&stlt, "stlt")] {
        assert_eq!((measurement.windows.len(), measurement.variant.as_str()), (2, variant));
        assert!(measurement.windows.iter().all(|window| window.operations == 1_000));
        assert!(measurement.windows.iter().all(|window| window.core.instructions > 20_000));
    }
    assert_eq!(alone.windows[0].memory.stlt.hits, 0);
    assert!(stlt.windows[0].memory.stlt.hits > 800);
    assert_eq!(stlt.windows[0].fast_path.map(|counts| counts.total()), Some(1_000));
}

#[test]
fn an_unmodified_redis_is_measured() {
    let Some(qemu) = qemu() else { return };
    let measured = |variant| qemu.run(&configuration(Container::Redis, variant));
    let alone = match measured(Variant::Alone) {
        Err(RunError::Compiled(error @ GuestError::Redis)) => {
            outside::skip(error);
            return;
        }
        alone => alone.expect("a measurement"),
    };
    let stlt = measured(Variant::Stlt).expect("a measurement");
    assert_eq!((alone.guest.as_str(), alone.windows[0].operations), ("redis", 1_000));
    assert_eq!(alone.windows[0].memory.stlt.hits, 0);
    assert!(stlt.windows[0].memory.stlt.hits > 800);
}

#[test]
fn what_only_this_process_has_is_refused() {
    let Some(qemu) = qemu() else { return };
    let refused = qemu.run(&configuration(Container::Map, Variant::Known));
    assert!(matches!(refused, Err(RunError::Unknown(_))), "{refused:?}");
}

#[test]
fn a_run_of_other_builds_is_made_anew() {
    let Some(qemu) = qemu() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open(folder.path()).expect("a store");
    let wanted = configuration(Container::Map, Variant::Alone);
    let swept = || sweep(std::slice::from_ref(&wanted), &store, &Place::Here, 1, &ProgressBar::hidden());
    let first = swept();
    assert_eq!((first.made, first.failed.len()), (1, 0), "{:?}", first.failed);
    assert_eq!((swept().kept, swept().made), (1, 0), "the same builds");
    let kept = store.get(&wanted).expect("it was kept");
    assert_eq!(kept.programs, Some(qemu.identity(Container::Map).expect("it was compiled")));
    // As if the plugin had been another one when it was run.
    for programs in [Some("0123456789abcdef".to_owned()), None] {
        store.put(&Run { programs, ..kept.clone() }).expect("written");
        assert_eq!(store.get(&wanted), None);
        assert_eq!((swept().made, swept().kept), (1, 1), "made once, then kept");
        assert_eq!(store.get(&wanted).map(|run| run.programs), Some(kept.programs.clone()));
    }
    assert_ne!(kept.programs, qemu.identity(Container::UnorderedMap).ok(), "another guest");
}
