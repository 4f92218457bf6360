"""Waits until a memcached answers at each of the ports and socket paths named, ten seconds at the most."""

import socket
import sys
import time

for place in sys.argv[1:]:
    deadline = time.monotonic() + 10
    while True:
        try:
            if place.isdigit():
                connection = socket.create_connection(("127.0.0.1", int(place)), 1)
            else:
                connection = socket.socket(socket.AF_UNIX)
                connection.connect(place)
            with connection:
                connection.sendall(b"version\r\n")
                assert connection.recv(100).startswith(b"VERSION "), place
            break
        except OSError:
            if time.monotonic() > deadline:
                sys.exit(f"nobody answers at {place}")
            time.sleep(0.02)
