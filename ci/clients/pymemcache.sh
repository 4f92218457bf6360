# pymemcache (Python, text protocol): its own suite, integration tests included.
prepare() {
    python_source pymemcache==4.0.0
    python_packages pymemcache==4.0.0 pytest==8.4.2 faker==37.8.0 zstd==1.5.7.2
}

check() {
    serve -p 11211 && until_answered 11211
    python_with_packages
    cd source
    # Without TLS, which this server does not have yet; benchmarks compare clients.
    python3 -m pytest -q -p no:cacheprovider --override-ini addopts= pymemcache/test --server localhost --port 11211 \
        --ignore pymemcache/test/test_benchmark.py -k 'not tls'
}
