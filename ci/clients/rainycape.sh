# rainycape/memcache (Go, binary protocol): a program of ours, for its own suite fails by its own rules with any server.
prepare() {
    cp "$programs/rainycape_test.go" .
    printf 'module clients\ngo 1.22\n' >go.mod
    go get github.com/rainycape/memcache@v0.0.0-20150622160815-1031fa0ce2f2
    go test -c -o suite .
}

check() {
    serve -p 11211 && until_answered 11211
    MEMCACHED=127.0.0.1:11211 ./suite -test.v
}
