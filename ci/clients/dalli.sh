# Dalli (Ruby): the binary protocol, its default up to version 3, and the meta protocol, the only one of newer ones.
prepare() {
    debian_packages ruby ruby-dalli
}

check() {
    serve -p 11211 && until_answered 11211
    for protocol in binary meta; do ruby "$programs/dalli.rb" 127.0.0.1:11211 "$protocol"; done
}
