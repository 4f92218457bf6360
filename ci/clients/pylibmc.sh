# pylibmc (Python over libmemcached, binary protocol and text): its own suite.
prepare() {
    debian_packages libmemcached-dev zlib1g-dev libsasl2-dev gcc
    python_source pylibmc==1.6.3
    python_packages pylibmc==1.6.3 pytest==8.4.2
}

check() {
    serve -p 11211 && until_answered 11211
    python_with_packages
    cd source
    python3 -m pytest -q -p no:cacheprovider tests
}
