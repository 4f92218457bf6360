# python-binary-memcached (Python, binary protocol): its own suite.
prepare() {
    python_source python-binary-memcached==0.33.0
    python_packages python-binary-memcached==0.33.0 pytest==8.4.2
}

check() {
    for port in 11211 11212 11213 5000; do serve -p $port; done
    serve -s /tmp/memcached.sock
    until_answered 11211 11212 11213 5000 /tmp/memcached.sock
    python_with_packages
    cd source
    # TLS and SASL, which this server does not have yet, start a memcached of their own; the test of IPv6 wants a file
    # that the package does not ship.
    MEMCACHED_HOST=localhost python3 -m pytest -q -p no:cacheprovider test \
        --ignore test/test_tls.py --ignore test/test_sasl_integration.py --ignore test/test_ipv6.py
}
