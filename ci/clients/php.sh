# php-memcached (PHP over libmemcached) with its default settings, binary protocol and text, and PHP's sessions in it.
prepare() {
    debian_packages php-cli php-memcached
}

check() {
    serve -p 11211 && until_answered 11211
    php -d display_errors=1 -d zend.assertions=1 -d assert.exception=1 "$programs/client.php" 127.0.0.1 11211
    # Two requests of one session, each a process, as a web server has them.
    for turn in 1 2 3; do
        php -d session.save_handler=memcached -d session.save_path=127.0.0.1:11211 -d session.use_strict_mode=0 \
            -d session.use_cookies=0 -d session.cache_limiter= "$programs/session.php" "$turn"
    done
}
