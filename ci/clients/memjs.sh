# memjs (Node.js, binary protocol): its own suite, which has a server of its own in it, and then a program of ours.
prepare() {
    [ -e node_modules/memjs ] || npm install --silent --no-audit --no-fund memjs@1.3.2
    cp "$programs/memjs.js" .
}

check() {
    serve -p 11211 && until_answered 11211
    MEMCACHIER_SERVERS=127.0.0.1:11211 node memjs.js
}
