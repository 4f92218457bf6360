# dogpile.cache (Python): the backends on pylibmc, python-memcached, bmemcached and pymemcache, by its own suite.
prepare() {
    debian_packages libmemcached-dev zlib1g-dev libsasl2-dev gcc
    python_source dogpile.cache==1.5.0
    python_packages dogpile.cache==1.5.0 pytest==8.4.2 mako pylibmc==1.6.3 python-memcached==1.62 \
        python-binary-memcached==0.33.0 pymemcache==4.0.0
}

check() {
    serve -p 11211 && until_answered 11211
    python_with_packages
    cd source
    DOGPILE_MEMCACHED_PORT=11211 python3 -m pytest -q -p no:cacheprovider tests/cache/test_memcached_backend.py
}
