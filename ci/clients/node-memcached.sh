# memcached (Node.js, text protocol): its own suite.
prepare() {
    [ -e node_modules/memcached ] || npm install --silent --no-audit --no-fund memcached@2.2.2 mocha@11 should@13
}

check() {
    for port in 11211 11212 11213; do serve -p $port; done
    until_answered 11211 11212 11213
    cd node_modules/memcached
    # Its tests of lost connections ask for hosts that are not there, and for ping.
    rm -f test/memcached-connections.test.js
    MEMCACHED__HOST=127.0.0.1 ../.bin/mocha --exit --require should test/*.test.js
}
