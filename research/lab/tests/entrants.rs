//! All indexes with each form of a table, as experiments compare them.

use lookaside_lab::experiment::Session;
use lookaside_lab::lookaside::lookups::{Missing, Parameters, run_with};
use lookaside_lab::lookaside::{Call, Key, Lot, Request, Tally, Value, fill, model, own_entrants};

#[test]
fn our_contestants_answer_requests() {
    own_entrants::<24>().iter().for_each(model::check_entrant);
}

#[test]
fn what_is_missing_is_left_out_and_what_nobody_knows_is_refused() {
    let parameters: Parameters = toml::from_str(
        "indexes = ['BTreeMap', 'elsewhere']
        forms = ['alone', 'slb', 'slb-call']
        records = 100
        points = [{ name = 'few', range = 10, bytes = 4096 }]
        warm_up = 100
        operations = 100
        threads = [1]",
    )
    .unwrap();
    let run = |missing: &[Missing]| {
        let mut session = Session::new(1, indicatif::ProgressBar::hidden());
        run_with(&parameters, &mut session, own_entrants(), own_entrants(), missing).map(|()| session)
    };
    let session = run(&[Missing { name: "elsewhere", why: "it is not installed" }]).unwrap();
    let text = format!("{session:?}");
    assert!(text.contains("\"BTreeMap, SLB\"") && !text.contains("\"elsewhere\""), "{text}");
    // Each row that a definition promises of it is excused by name.
    for row in ["elsewhere, alone", "elsewhere, SLB", "elsewhere, SLB, by calls"] {
        assert!(text.contains(&format!("{row:?}, reason: \"it is not installed\"")), "{text}");
    }
    let why = run(&[]).unwrap_err().to_string();
    assert!(why.contains("'elsewhere'") && why.contains("BTreeMap"), "{why}");
}

/// A value that is changed in its place is the one that is found from then on, in the index and in the table.
#[test]
fn values_are_renewed_where_they_are() {
    let entrants = own_entrants::<24>();
    let config = lookaside::Config::with_size(4096);
    for name in ["BTreeMap", "HashMap", "chaining"] {
        let entrant = entrants.iter().find(|entrant| entrant.name == name).unwrap();
        for contestant in [(entrant.alone)(10), (entrant.shared.unwrap())(10, &config, false)] {
            let contestant = contestant.unwrap();
            fill(&*contestant, 0, 0..10);
            let to = |record| Request { key: Key::of(3), record, set: true };
            assert!(contestant.abilities().renews);
            let renewals = [to(7), Request { set: false, ..to(0) }];
            let answer = contestant.ask(0, Call::Single, [&[], &renewals[..]].map(Lot::Renewals));
            let expected = Tally { found: 1, sum: Value::expected(7), refused: 0 };
            assert_eq!(answer.tally, expected, "{name}");
            let found = contestant.get(0, Call::Single, &[], &[Key::of(3), Key::of(4), Key::of(10)]);
            let expected = Tally { found: 2, sum: Value::expected(7) + Value::expected(4), refused: 0 };
            assert_eq!(found.tally, expected, "{name}");
        }
    }
}
