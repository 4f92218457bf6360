//! include/lookaside.h is what cbindgen makes of the crate.

use std::path::Path;

#[test]
fn the_header_checked_in_is_the_one_that_the_sources_make() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(home.join("cbindgen.toml")).unwrap();
    let mut made = Vec::new();
    // By file, not by crate: so nothing but the sources is asked.
    let sources = ["handle", "layout", "figure4", "extended", "options", "stats", "owned"];
    let builder = cbindgen::Builder::new().with_config(config);
    let with_sources = sources.iter().fold(builder, |builder, source| {
        builder.with_src(home.join("src").join(source).with_extension("rs"))
    });
    with_sources.generate().unwrap().write(&mut made);
    let (made, path) = (String::from_utf8(made).unwrap(), home.join("include/lookaside.h"));
    if std::env::var_os("LOOKASIDE_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let checked_in = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = made.lines().zip(checked_in.lines()).find(|(made, checked_in)| made != checked_in);
    assert_eq!(
        differs, None,
        "write it anew with LOOKASIDE_WRITE_HEADER=1 cargo test -p lookaside-capi header"
    );
    assert_eq!(made.lines().count(), checked_in.lines().count());
    for name in ["create", "destroy", "get", "emit", "invalidate", "update", "lock", "unlock"] {
        assert!(made.contains(&format!("SLB_{name}(")), "Figure 4's SLB_{name} is missing");
    }
}
