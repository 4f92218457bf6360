use super::*;
use crate::slb::Slb;

#[test]
fn sizes_that_no_table_has_are_refused() {
    for size in [0, 1, 63] {
        for config in [Config::paper(size), Config::with_size(size)] {
            assert!(
                matches!(Slb::new(&config), Err(CreateError::TooSmall { size: said, least: 64 }) if said == size)
            );
        }
    }
    for size in [usize::MAX, usize::MAX / 2, (1 << 38) + 64] {
        for config in [Config::paper(size), Config::with_size(size)] {
            assert!(matches!(Slb::new(&config), Err(CreateError::TooLarge { .. })), "{size}");
        }
    }
    // The Log Table counts, too.
    let config = Config::paper(1 << 34).log_ratio(64);
    assert!(matches!(Slb::new(&config), Err(CreateError::TooLarge { .. })));
}

#[test]
#[cfg_attr(miri, ignore = "maps what no machine has")]
fn memory_that_is_not_there_is_an_error() {
    // A process has 2^47 bytes of addresses: 511 of these leave no room for another, whatever the system promises.
    let config = Config::with_size(1 << 38).pages(PageKind::Base);
    let mut tables = Vec::new();
    let refused = (0..512).find_map(|_| Slb::new(&config).map(|table| tables.push(table)).err());
    assert!(matches!(refused, Some(CreateError::Memory(_))), "{refused:?}");
}

#[test]
fn sizes_are_rounded_down_to_lines() {
    let capacity = |size| Slb::new(&Config::with_size(size)).unwrap().capacity();
    assert_eq!([64, 127, 128, 64 * 1000 + 63].map(capacity), [7, 7, 14, 7000]);
}

fn refused(config: &Config) -> Option<&'static str> {
    match Slb::new(config) {
        Err(CreateError::Parameter { parameter, .. }) => Some(parameter),
        Ok(_) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn shares_are_above_nothing_and_at_most_all() {
    for sampling in [0.0, -0.0, -1.0, 1.0 + f64::EPSILON, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        for admission in [Admission::Logged { threshold: 3, sampling }, Admission::Sampled { sampling }] {
            assert_eq!(refused(&Config::paper(64).admission(admission)), Some("sampling"), "{sampling}");
        }
    }
    for sampling in [f64::MIN_POSITIVE, 0.5, 1.0] {
        for admission in [Admission::Logged { threshold: 3, sampling }, Admission::Sampled { sampling }] {
            assert_eq!(refused(&Config::paper(64).admission(admission)), None, "{sampling}");
        }
    }
}

#[test]
fn a_threshold_is_below_what_a_log_holds() {
    let with = |threshold| Config::paper(64).admission(Admission::Logged { threshold, sampling: 1.0 });
    assert_eq!([0, 14].map(|threshold| refused(&with(threshold))), [None; 2]);
    assert_eq!([15, 255].map(|threshold| refused(&with(threshold))), [Some("threshold"); 2]);
}

#[test]
fn a_log_is_needed_only_where_something_is_logged() {
    for log_ratio in [0, 65, usize::MAX] {
        assert_eq!(refused(&Config::paper(64).log_ratio(log_ratio)), Some("log_ratio"));
        assert_eq!(refused(&Config::with_size(64).log_ratio(log_ratio)), None);
    }
}

#[test]
fn errors_say_what_to_do() {
    let error = |config: &Config| Slb::new(config).unwrap_err().to_string();
    assert!(error(&Config::with_size(0)).contains("at least 64"));
    assert!(error(&Config::with_size(usize::MAX)).contains("at most 2^38"));
    let sampling = Config::default().admission(Admission::Sampled { sampling: 2.0 });
    assert_eq!(error(&sampling), "sampling is 2: it must be above 0 and at most 1");
}
