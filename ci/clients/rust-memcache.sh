# memcache (Rust, text, binary and meta protocol): its own suite.
prepare() {
    crate_source memcache 0.21.0
    (cd source && CARGO_TARGET_DIR="$PWD/../target" cargo test --locked --no-run --all-features)
}

check() {
    for port in 12345 12346 12347 12348 12349; do serve -p $port; done
    serve -s /tmp/memcached.sock
    serve -s /tmp/memcached2.sock
    until_answered 12345 12346 12347 12348 12349 /tmp/memcached.sock /tmp/memcached2.sock
    cd source
    # TLS and UDP this server does not have yet.
    CARGO_TARGET_DIR="$PWD/../target" cargo test --offline --locked --all-features --no-fail-fast -- \
        --skip ssl --skip tls --skip udp
}
