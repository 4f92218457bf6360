# twemproxy (Debian's nutcracker) before three servers, and pymemcache and libmemcached that hash over the three
# themselves; one server is killed and brought back: no wrong value, and the others' keys stay served.
prepare() {
    debian_packages nutcracker libmemcached-dev zlib1g-dev libsasl2-dev gcc
    python_packages pymemcache==4.0.0 pylibmc==1.6.3
}

check() {
    cat >/tmp/nutcracker.yml <<'EOF'
three:
  listen: 127.0.0.1:22121
  hash: fnv1a_64
  distribution: ketama
  timeout: 1000
  auto_eject_hosts: true
  server_retry_timeout: 500
  server_failure_limit: 1
  servers:
   - 127.0.0.1:11211:1 first
   - 127.0.0.1:11212:1 second
   - 127.0.0.1:11213:1 third
EOF
    python_with_packages
    for way in twemproxy pymemcache pylibmc; do python3 "$programs/three_servers.py" "$way"; done
}
