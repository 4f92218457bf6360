"""Three servers behind something that spreads keys over them; one is killed and comes back, empty.

    three_servers.py twemproxy|pymemcache|pylibmc
"""

import socket
import subprocess
import sys
import time

PORTS = (11211, 11212, 11213)
KEYS = [f"key:{number}" for number in range(600)]
WAY = sys.argv[1]


def start(port):
    process = subprocess.Popen(["memcached", "-p", str(port), "-l", "127.0.0.1"])
    await_port(port)
    return process


def await_port(port):
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                sys.exit(f"{WAY}: nobody listens at {port}")
            time.sleep(0.02)


def client():
    if WAY == "twemproxy":
        from pymemcache.client.base import Client

        return Client(("127.0.0.1", 22121), timeout=3, connect_timeout=3)
    if WAY == "pymemcache":
        from pymemcache.client.hash import HashClient

        return HashClient(
            [("127.0.0.1", port) for port in PORTS],
            timeout=3,
            connect_timeout=3,
            retry_attempts=0,
            dead_timeout=1,
            ignore_exc=True,
        )
    import pylibmc

    behaviours = {"ketama": True, "remove_failed": 1, "retry_timeout": 1, "dead_timeout": 1, "connect_timeout": 1000}
    return pylibmc.Client([f"127.0.0.1:{port}" for port in PORTS], binary=False, behaviors=behaviours)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def ask(cache, what, *arguments):
    """One call; what fails because a server was killed is asked again, until the client knows that it is dead."""
    for _ in range(100):
        try:
            return getattr(cache, what)(*arguments)
        except Exception:
            time.sleep(0.05)
    sys.exit(f"{WAY}: {what} fails for ever")


def main():
    servers = {port: start(port) for port in PORTS}
    proxy = None
    if WAY == "twemproxy":
        proxy = subprocess.Popen(["nutcracker", "-c", "/tmp/nutcracker.yml", "-v", "1"], stderr=subprocess.DEVNULL)
        await_port(22121)
    try:
        cache = client()

        def get(key):
            return text(ask(cache, "get", key))

        for key in KEYS:
            ask(cache, "set", key, f"{key}=1")
        assert all(get(key) == f"{key}=1" for key in KEYS), "all are there"
        shares = {port: items(port) for port in PORTS}
        assert sum(shares.values()) == len(KEYS) and min(shares.values()) > 100, f"spread over all: {shares}"

        servers[11212].kill()
        servers[11212].wait()
        for _ in range(2):
            found = [get(key) for key in KEYS]
        wrong = [(key, value) for key, value in zip(KEYS, found) if value not in (None, f"{key}=1")]
        assert not wrong, f"wrong values: {wrong[:3]}"
        kept = sum(value is not None for value in found)
        assert kept >= len(KEYS) - shares[11212], f"{kept} of the others' {len(KEYS) - shares[11212]} are served"

        for key in KEYS:
            ask(cache, "set", key, f"{key}=2")
        servers[11212] = start(11212)
        time.sleep(2)
        for key in KEYS:
            # What one of two ways to a key has kept from before may be old; what is set now is read now.
            ask(cache, "set", key, f"{key}=3")
        found = [get(key) for key in KEYS]
        assert all(value == f"{key}=3" for key, value in zip(KEYS, found)), "all are new again"
        assert items(11212) > 0, "who came back takes part"
        print(f"three servers, {WAY}: {kept} of {len(KEYS)} keys served while one of three was dead")
    finally:
        for process in [*servers.values(), *([proxy] if proxy else [])]:
            process.terminate()
            process.wait()


def items(port):
    with socket.create_connection(("127.0.0.1", port), 3) as connection:
        connection.sendall(b"stats\r\n")
        said = b""
        while not said.endswith(b"END\r\n"):
            said += connection.recv(65536)
    stats = dict(line.split()[1:3] for line in said.decode().splitlines() if line.startswith("STAT "))
    return int(stats["curr_items"])


main()
