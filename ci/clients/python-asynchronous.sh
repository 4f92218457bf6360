# aiomcache and emcache (Python's asyncio, text protocol) and meta-memcache (Python, meta protocol).
prepare() {
    python_packages aiomcache==0.8.2 emcache==1.3.3 meta-memcache==4.3.0
}

check() {
    serve -p 11211 && until_answered 11211
    python_with_packages
    for client in aiomcache emcache meta-memcache; do
        python3 "$programs/asynchronous.py" 127.0.0.1 11211 "$client"
    done
}
