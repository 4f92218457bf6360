"""pymemcache's main calls against a server: python3 pymemcache_test.py HOST:PORT (or the path of a Unix socket)."""

import pickle
import sys
import unittest
from contextlib import closing

from pymemcache import serde
from pymemcache.client.base import Client, PooledClient
from pymemcache.client.hash import HashClient
from pymemcache.exceptions import (
    MemcacheClientError,
    MemcacheIllegalInputError,
    MemcacheServerError,
    MemcacheUnknownCommandError,
)

address = sys.argv.pop()
if not address.startswith("/"):
    host, port = address.rsplit(":", 1)
    address = (host, int(port))


class Calls(unittest.TestCase):
    """Each call twice where it makes a difference: with and without waiting for the reply."""

    def setUp(self):
        self.client = Client(address, timeout=20, default_noreply=False)
        self.silent = Client(address, timeout=20, default_noreply=True)
        self.client.flush_all()

    def tearDown(self):
        self.client.close()
        self.silent.close()

    def settle(self):
        """What was sent without waiting for the reply has been carried out when this returns."""
        self.assertTrue(self.silent.version())

    def test_set_and_get(self):
        self.assertIsNone(self.client.get("key"))
        self.assertEqual(self.client.get("key", "default"), "default")
        self.assertIs(self.client.set("key", "value"), True)
        self.assertEqual(self.client.get("key"), b"value")
        self.assertIs(self.client.set("key", ""), True)
        self.assertEqual(self.client.get("key"), b"")
        self.assertIs(self.silent.set("key", "silent"), True)
        self.settle()
        self.assertEqual(self.client.get("key"), b"silent")

    def test_flags(self):
        self.assertTrue(self.client.set("key", b"value", flags=4294967295))
        self.client.serde = serde.PickleSerde()
        self.assertTrue(self.client.set("object", {"a": [1, 2.5, None], "b": ("c", b"\x00")}))
        self.assertEqual(self.client.get("object"), {"a": [1, 2.5, None], "b": ("c", b"\x00")})
        self.assertTrue(self.client.set("number", 123))
        self.assertEqual(self.client.get("number"), 123)

    def test_get_many(self):
        values = {f"key-{i}": f"value-{i}".encode() for i in range(1000)}
        self.assertEqual(self.client.set_many(values), [])
        self.assertEqual(self.client.get_many(list(values)), values)
        self.assertEqual(self.client.get_many(["key-1", "nothing", "key-3"]),
                         {"key-1": b"value-1", "key-3": b"value-3"})
        self.assertEqual(self.client.get_many([]), {})
        self.assertEqual(self.silent.set_many({key: b"other" for key in values}), [])
        self.settle()
        self.assertEqual(self.client.get_many(values), {key: b"other" for key in values})
        self.assertEqual(self.client.get_multi(["key-0"]), {"key-0": b"other"})

    def test_add(self):
        self.assertIs(self.client.add("key", "first"), True)
        self.assertIs(self.client.add("key", "second"), False)
        self.silent.add("other", "first")
        self.silent.add("other", "second")
        self.settle()
        self.assertEqual(self.client.get_many(["key", "other"]), {"key": b"first", "other": b"first"})

    def test_replace(self):
        self.assertIs(self.client.replace("key", "first"), False)
        self.assertIs(self.client.set("key", "first"), True)
        self.assertIs(self.client.replace("key", "second"), True)
        self.silent.replace("key", "third")
        self.silent.replace("nothing", "third")
        self.settle()
        self.assertEqual(self.client.get_many(["key", "nothing"]), {"key": b"third"})

    def test_append_and_prepend(self):
        self.assertIs(self.client.append("key", "c"), False)
        self.assertIs(self.client.prepend("key", "a"), False)
        self.assertIs(self.client.set("key", "b"), True)
        self.assertIs(self.client.append("key", "c"), True)
        self.assertIs(self.client.prepend("key", "a"), True)
        self.silent.append("key", "d")
        self.silent.prepend("key", "_")
        self.settle()
        self.assertEqual(self.client.get("key"), b"_abcd")

    def test_gets_and_cas(self):
        self.assertEqual(self.client.gets("key"), (None, None))
        self.assertIsNone(self.client.cas("key", "value", "1"))
        self.assertTrue(self.client.set("key", "value"))
        value, number = self.client.gets("key")
        self.assertEqual(value, b"value")
        self.assertIs(self.client.cas("key", "next", number), True)
        self.assertIs(self.client.cas("key", "late", number), False)
        self.assertEqual(self.client.get("key"), b"next")
        number = self.client.gets("key")[1]
        self.assertIs(self.silent.cas("key", "silent", number, noreply=True), True)
        self.settle()
        self.assertEqual(self.client.get("key"), b"silent")

    def test_gets_many(self):
        self.client.set_many({"a": "1", "b": "2"})
        values = self.client.gets_many(["a", "b", "c"])
        self.assertEqual({key: value for key, (value, _) in values.items()}, {"a": b"1", "b": b"2"})
        self.assertNotEqual(values["a"][1], values["b"][1])
        self.assertIs(self.client.cas("a", "3", values["a"][1]), True)

    def test_gat_and_gats(self):
        # pymemcache has no calls for these: their commands as they are.
        def ask(command):
            return self.client.raw_command(command, b"END\r\n")

        self.assertEqual(ask(b"gat 10 key"), b"")
        self.assertTrue(self.client.set("key", "value", flags=5))
        self.assertEqual(ask(b"gat 1000 key nothing"), b"VALUE key 5 5\r\nvalue\r\n")
        number = self.client.gets("key")[1]
        self.assertEqual(ask(b"gats 0 key"), b"VALUE key 5 5 " + number + b"\r\nvalue\r\n")
        self.assertEqual(ask(b"gat -1 key"), b"VALUE key 5 5\r\nvalue\r\n")
        self.assertIsNone(self.client.get("key"))

    def test_incr_and_decr(self):
        self.assertIsNone(self.client.incr("key", 1))
        self.assertIsNone(self.client.decr("key", 1))
        self.assertTrue(self.client.set("key", "8"))
        self.assertEqual(self.client.incr("key", 5), 13)
        self.assertEqual(self.client.decr("key", 4), 9)
        self.assertEqual(self.client.decr("key", 100), 0)
        self.silent.incr("key", 7, noreply=True)
        self.silent.decr("key", 2, noreply=True)
        self.settle()
        self.assertEqual(int(self.client.get("key")), 5)
        self.assertTrue(self.client.set("key", str(2**64 - 1)))
        self.assertEqual(self.client.incr("key", 1), 0)
        self.assertTrue(self.client.set("key", "text"))
        with self.assertRaises(MemcacheClientError):
            self.client.incr("key", 1)
        self.assertEqual(self.client.get("key"), b"text")

    def test_touch(self):
        self.assertIs(self.client.touch("key", 10), False)
        self.assertTrue(self.client.set("key", "value"))
        self.assertIs(self.client.touch("key", 1000), True)
        self.assertEqual(self.client.get("key"), b"value")
        self.assertIs(self.silent.touch("key", -1), True)
        self.settle()
        self.assertIsNone(self.client.get("key"))

    def test_delete(self):
        self.assertIs(self.client.delete("key"), False)
        self.assertTrue(self.client.set("key", "value"))
        self.assertIs(self.client.delete("key"), True)
        self.assertIsNone(self.client.get("key"))
        self.assertTrue(self.client.set("key", "value"))
        self.assertIs(self.silent.delete("key"), True)
        self.settle()
        self.assertIsNone(self.client.get("key"))

    def test_delete_many(self):
        keys = [f"key-{i}" for i in range(300)]
        for client in (self.client, self.silent):
            self.client.set_many({key: "x" for key in keys})
            self.assertIs(client.delete_many(keys[:200]), True)
            self.settle()
            self.assertEqual(sorted(self.client.get_many(keys)), sorted(keys[200:]))

    def test_expire(self):
        self.assertTrue(self.client.set("key", "value", expire=-1))
        self.assertIsNone(self.client.get("key"))
        self.assertTrue(self.client.set("key", "value", expire=100))
        self.assertEqual(self.client.get("key"), b"value")

    def test_flush_all(self):
        self.client.set_many({"a": "1", "b": "2"})
        self.assertIs(self.client.flush_all(), True)
        self.assertEqual(self.client.get_many(["a", "b"]), {})
        self.client.set("a", "1")
        self.assertIs(self.client.flush_all(delay=1000), True)
        self.assertEqual(self.client.get("a"), b"1")
        self.assertIs(self.silent.flush_all(), True)
        self.settle()
        self.assertIsNone(self.client.get("a"))

    def test_version_verbosity_and_stats(self):
        self.settle()
        version = self.client.version()
        self.assertTrue(version.startswith(b"1.6."), version)
        stats = self.client.stats()
        # It takes what stands before a space for the value.
        self.assertEqual(stats[b"version"], version.split(b" ")[0])
        self.assertGreaterEqual(stats[b"curr_connections"], 2)
        self.assertIsInstance(stats[b"rusage_user"], float)
        settings = self.client.stats("settings")
        self.assertEqual(settings[b"item_size_max"], 1048576)
        self.client.set("key", "value")
        self.assertTrue(any(name.startswith(b"items:") for name in self.client.stats("items")))
        self.assertIn(b"active_slabs", self.client.stats("slabs"))

    def test_values_of_every_kind_and_size(self):
        everything = bytes(range(256)) * 17
        for value in (b"\r\n", b"END\r\n", b"VALUE key 0 1\r\n", b"\x00", everything):
            self.assertTrue(self.client.set("key", value))
            self.assertEqual(self.client.get("key"), value)
        for size in (1, 1000, 8192, 16384, 65536, 500_000, 1_048_000):
            value = pickle.dumps(everything)[:50] * (size // 50) + b"y" * (size % 50)
            self.assertTrue(self.client.set("key", value))
            self.assertEqual(self.client.get("key"), value)
            self.silent.set("key", value + b"!")
            self.settle()
            self.assertEqual(self.client.get("key"), value + b"!")
        with self.assertRaises(MemcacheServerError):
            self.client.set("key", b"x" * (1 << 20))
        self.assertIsNone(self.client.get("key"))

    def test_keys(self):
        for key in ("k", "k" * 250, "key:with/punctuation!?#", "0", "-1", "noreply", "get"):
            self.assertTrue(self.client.set(key, key))
            self.assertEqual(self.client.get(key), key.encode())
        with closing(Client(address, allow_unicode_keys=True, encoding="utf8")) as client:
            self.assertTrue(client.set("Schlüssel-钥匙-🔑", "Wert-值".encode(), noreply=False))
            self.assertEqual(client.get("Schlüssel-钥匙-🔑"), "Wert-值".encode())
        for key in ("k" * 251, "two words", "line\nfeed"):
            with self.assertRaises(MemcacheIllegalInputError):
                self.client.set(key, "x")
        with closing(Client(address, key_prefix=b"prefix:")) as client:
            client.set("k", "prefixed", noreply=False)
        self.assertEqual(self.client.get("prefix:k"), b"prefixed")

    def test_an_error_leaves_the_connection_usable(self):
        with self.assertRaises((MemcacheUnknownCommandError, MemcacheClientError)):
            self.client.raw_command(b"nonsense")
        self.assertEqual(self.client.raw_command(b"verbosity 1"), b"OK")
        self.assertTrue(self.client.set("key", "value"))
        self.assertEqual(self.client.get("key"), b"value")

    def test_pooled_client(self):
        client = PooledClient(address, max_pool_size=4, default_noreply=False)
        self.assertTrue(client.set("key", "value"))
        self.assertEqual(client.get("key"), b"value")
        self.assertEqual(client.get_many(["key"]), {"key": b"value"})
        self.assertTrue(client.delete("key"))
        client.quit()

    def test_hash_client(self):
        client = HashClient([address], default_noreply=False)
        self.assertTrue(client.set("key", "value"))
        self.assertEqual(client.get("key"), b"value")
        self.assertEqual(client.set_many({"a": "1", "b": "2"}), [])
        self.assertEqual(client.get_many(["a", "b", "c"]), {"a": b"1", "b": b"2"})
        self.assertTrue(client.delete_many(["a", "b"]))
        client.quit()


if __name__ == "__main__":
    unittest.main()
