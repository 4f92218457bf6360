# async-memcached (Rust, text and meta protocol): its own suite, which starts memcached by name and asks its version.
prepare() {
    crate_source async-memcached 0.9.0
    (cd source && CARGO_TARGET_DIR="$PWD/../target" cargo test --locked --no-run --all-features --tests)
}

check() {
    cd source
    # Without Toxiproxy, which Debian does not have.
    CARGO_TARGET_DIR="$PWD/../target" cargo test --offline --locked --all-features --tests -- --include-ignored
}
