# spymemcached and xmemcached (Java), each by the binary protocol and by text.
prepare() {
    command -v mvn >/dev/null && command -v javac >/dev/null || debian_packages maven default-jdk-headless
    cp "$programs/java.xml" pom.xml
    cp "$programs/Clients.java" .
    [ -e jars ] || mvn --quiet --batch-mode dependency:copy-dependencies -DoutputDirectory=jars
    javac -cp 'jars/*' -d classes Clients.java
}

check() {
    serve -p 11211 && until_answered 11211
    java -cp 'jars/*:classes' Clients 127.0.0.1 11211
}
