# gomemcache (Go, text protocol): its own suite, which also starts a memcached by that name.
prepare() {
    printf 'module clients\ngo 1.22\n' >go.mod
    go get github.com/bradfitz/gomemcache@v0.0.0-20260422231931-4d751bb6e37c
    go test -c -o suite github.com/bradfitz/gomemcache/memcache
}

check() {
    # It flushes on one connection and goes on at once on another: one thread serves them in this order.
    serve -p 11211 -t 1 && until_answered 11211
    # TLS this server does not have yet.
    ./suite -test.v -test.skip TestTLS
}
