# memcache (Rust, text, binary and meta protocol): its own suite.
prepare() {
    crate_source memcache 0.21.0
    # One test asks several servers, of which one by TLS, which this server does not have yet.
    sed -i '/memcache+tls/d' source/tests/tests.rs
    (cd source && CARGO_TARGET_DIR="$PWD/../target" cargo test --locked --no-run --all-features)
}

check() {
    for port in 12345 12346 12347 12348 12349; do serve -p $port; done
    serve -s /tmp/memcached.sock
    serve -s /tmp/memcached2.sock
    until_answered 12345 12346 12347 12348 12349 /tmp/memcached.sock /tmp/memcached2.sock
    cd source
    # Nor does it have UDP. One after the other: a test flushes in a second from now, which hides from another one what
    # that stores meanwhile, with memcached as well.
    CARGO_TARGET_DIR="$PWD/../target" cargo test --offline --locked --all-features --lib --tests --no-fail-fast -- \
        --skip ssl --skip tls --skip udp --test-threads 1
}
