# Cache::Memcached::Fast (Perl, text protocol).
prepare() {
    debian_packages libcache-memcached-fast-perl
}

check() {
    serve -p 11211 && serve -p 11212 && until_answered 11211 11212
    perl "$programs/fast.pl" 127.0.0.1:11211 127.0.0.1:11212
}
