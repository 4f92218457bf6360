# libmemcached's tools (C): its test of servers by both protocols, and what operators look with.
prepare() {
    debian_packages libmemcached-tools memcached
}

check() {
    serve -p 11211 && until_answered 11211
    memccapable -h 127.0.0.1 -p 11211 | tee said
    [ "$(grep -c '\[pass\]' said)" = 54 ]
    memcflush --servers=127.0.0.1:11211
    printf 'hello' >greeting
    memccp --servers=127.0.0.1:11211 greeting
    [ "$(memccat --servers=127.0.0.1:11211 greeting)" = hello ]
    [ "$(memccat --binary --servers=127.0.0.1:11211 greeting)" = hello ]
    memcexist --servers=127.0.0.1:11211 greeting
    memctouch --servers=127.0.0.1:11211 --expire=100 greeting
    memcstat --servers=127.0.0.1:11211 | grep 'curr_items: [1-9]'
    # A dump tells items that were stored a while ago.
    memcdump --servers=127.0.0.1:11211 | grep -x greeting
    memcping --servers=127.0.0.1:11211
    memcrm --servers=127.0.0.1:11211 greeting
    if memcexist --servers=127.0.0.1:11211 greeting; then return 1; fi
    memcslap --servers=127.0.0.1:11211 --concurrency=4 --execute-number=2000 --test=set
    memcslap --servers=127.0.0.1:11211 --concurrency=4 --execute-number=2000 --test=get --binary
    for what in display stats settings sizes dump; do
        /usr/share/memcached/scripts/memcached-tool 127.0.0.1:11211 "$what" >said
        [ -s said ] || [ "$what" = dump ]
    done
    memcflush --servers=127.0.0.1:11211
    echo "libmemcached: memccapable 54 of 54, and its tools"
}
