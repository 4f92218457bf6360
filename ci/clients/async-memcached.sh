# async-memcached (Rust, text and meta protocol): its own suite, which starts memcached by name and asks its version.
prepare() {
    crate_source async-memcached 0.9.0
    (cd source && CARGO_TARGET_DIR="$PWD/../target" cargo test --locked --no-run --all-features --tests)
}

check() {
    cd source
    # Toxiproxy, which two of its files ask for, Debian does not have. Its two tests of key dumps do not know the OK
    # that memcached 1.6.45 answers first.
    CARGO_TARGET_DIR="$PWD/../target" cargo test --offline --locked --all-features --no-fail-fast --lib \
        --test ascii_proto_integration_tests --test client_integration_tests --test meta_proto_integration_tests \
        --test pipeline_integration_tests --test wire_integration_tests -- --include-ignored --skip key_dump
}
