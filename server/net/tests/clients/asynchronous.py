"""What three asyncio clients offer: aiomcache and emcache (text protocol), and meta-memcache (meta protocol)."""

import asyncio
import sys

HOST, PORT, CLIENT = sys.argv[1], int(sys.argv[2]), sys.argv[3]


def equal(found, wanted, what):
    if found != wanted:
        sys.exit(f"{CLIENT}: {what}: {found!r} instead of {wanted!r}")


async def with_aiomcache():
    import aiomcache

    client = aiomcache.Client(HOST, PORT, pool_size=4)
    await client.flush_all()
    equal(await client.set(b"greeting", b"hello", 60), True, "set")
    equal(await client.get(b"greeting"), b"hello", "get")
    equal(await client.get(b"absent", b"default"), b"default", "get of what is not there")
    equal(await client.add(b"greeting", b"x"), False, "add")
    equal(await client.replace(b"greeting", b"hi"), True, "replace")
    value, number = await client.gets(b"greeting")
    equal(value, b"hi", "gets")
    equal(await client.cas(b"greeting", b"changed", number), True, "cas")
    equal(await client.cas(b"greeting", b"again", number), False, "cas with an old number")
    await asyncio.gather(*(client.set(b"many:%d" % i, b"v%d" % i) for i in range(300)))
    found = await client.multi_get(*(b"many:%d" % i for i in range(300)))
    equal(list(found), [b"v%d" % i for i in range(300)], "multi_get")
    await client.set(b"count", b"10")
    equal(await client.incr(b"count", 5), 15, "incr")
    equal(await client.decr(b"count", 20), 0, "decr")
    await client.set(b"text", b"middle")
    equal(await client.append(b"text", b" end"), True, "append")
    equal(await client.prepend(b"text", b"start "), True, "prepend")
    equal(await client.get(b"text"), b"start middle end", "what they made")
    equal(await client.touch(b"text", 100), True, "touch")
    equal(await client.delete(b"text"), True, "delete")
    equal(await client.delete(b"text"), False, "delete again")
    equal(int((await client.stats())[b"curr_items"]) > 290, True, "stats")
    equal((await client.version())[:1].isdigit(), True, "version")
    await client.close()


async def with_emcache():
    import emcache

    client = await emcache.create_client([emcache.MemcachedHostAddress(HOST, PORT)], timeout=5.0)
    await client.flush_all(emcache.MemcachedHostAddress(HOST, PORT))
    await client.set(b"greeting", b"hello", flags=7, exptime=60)
    item = await client.get(b"greeting", return_flags=True)
    equal((item.value, item.flags), (b"hello", 7), "get")
    equal(await client.get(b"absent"), None, "get of what is not there")
    item = await client.gets(b"greeting")
    await client.cas(b"greeting", b"changed", item.cas)
    try:
        await client.cas(b"greeting", b"again", item.cas)
        sys.exit("emcache: cas with an old number")
    except emcache.StorageCommandError:
        pass
    await asyncio.gather(*(client.set(b"many:%d" % i, b"v%d" % i) for i in range(300)))
    found = await client.get_many([b"many:%d" % i for i in range(300)])
    found = {key: item.value for key, item in found.items()}
    equal(found, {b"many:%d" % i: b"v%d" % i for i in range(300)}, "get_many")
    equal((await client.gat(100, b"greeting")).value, b"changed", "gat")
    await client.set(b"count", b"10")
    equal(await client.increment(b"count", 5), 15, "increment")
    equal(await client.decrement(b"count", 20), 0, "decrement")
    await client.touch(b"count", 100)
    await client.append(b"greeting", b"!")
    equal((await client.get(b"greeting")).value, b"changed!", "append")
    await client.delete(b"greeting")
    equal(await client.get(b"greeting"), None, "delete")
    await client.close()


def with_meta_memcache():
    from meta_memcache import CacheClient, Key, ServerAddress, connection_pool_factory_builder
    from meta_memcache.configuration import LeasePolicy, RecachePolicy, StalePolicy

    client = CacheClient.cache_client_from_servers(
        servers=[ServerAddress(HOST, PORT)], connection_pool_factory_fn=connection_pool_factory_builder()
    )
    equal(client.set("greeting", {"an": "object"}, ttl=60), True, "set")
    equal(client.get("greeting"), {"an": "object"}, "get")
    equal(client.get("absent"), None, "get of what is not there")
    equal(client.get(Key("a key with spaces and \u00fc")), None, "get of a key that is not ASCII")
    equal(client.set(Key("a key with spaces and \u00fc"), 1, ttl=60), True, "set of it")
    equal(client.get(Key("a key with spaces and \u00fc")), 1, "get of it")
    for i in range(300):
        client.set(f"many:{i}", i, ttl=60)
    equal(client.multi_get([f"many:{i}" for i in range(300)]), {Key(f"many:{i}"): i for i in range(300)}, "multi_get")
    equal(client.delta("counter", 5, refresh_ttl=60), False, "delta of what is not there")
    equal(client.delta_initialize("counter", 5, initial_value=10, initial_ttl=60), True, "delta_initialize")
    equal(client.delta_and_get("counter", 5), 15, "delta_and_get")
    equal(client.touch("counter", ttl=100), True, "touch")
    value, number = client.get_cas("greeting")
    equal(client.set("greeting", "changed", ttl=60, cas_token=number), True, "set with a number")
    equal(client.set("greeting", "again", ttl=60, cas_token=number), False, "set with an old number")
    equal(client.get("greeting"), "changed", "what it left")
    # A lease: the first who misses is to make the value; the others are told to wait.
    lease = LeasePolicy(ttl=30, miss_retries=1, miss_retry_wait=0.01)
    equal(client.get_or_lease("leased", lease_policy=lease), None, "a lease that is won")
    equal(client.set("leased", "made", ttl=60), True, "set of what was leased")
    equal(client.get_or_lease("leased", lease_policy=lease), "made", "get of what was leased")
    # What is marked stale is served meanwhile.
    equal(client.invalidate("leased", stale_policy=StalePolicy(mark_stale_on_deletion_ttl=30)), True, "invalidate")
    equal(client.get("leased", recache_policy=RecachePolicy(ttl=5)), None, "the one who is to make it again")
    equal(client.get("leased", recache_policy=RecachePolicy(ttl=5)), "made", "the others")
    equal(client.delete("greeting"), True, "delete")
    equal(client.get("greeting"), None, "get of what was deleted")


if CLIENT == "aiomcache":
    asyncio.run(with_aiomcache())
elif CLIENT == "emcache":
    asyncio.run(with_emcache())
else:
    with_meta_memcache()
print(f"{CLIENT}: all calls answered as they should be")
