import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.logging.Level;
import java.util.logging.Logger;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.command.BinaryCommandFactory;
import net.rubyeye.xmemcached.command.TextCommandFactory;
import net.spy.memcached.BinaryConnectionFactory;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.DefaultConnectionFactory;
import net.spy.memcached.MemcachedClient;

/** What spymemcached and xmemcached offer, each by both protocols. */
public final class Clients {
    private static String asking;

    private static void equal(Object found, Object wanted, String what) {
        if (!Objects.equals(found, wanted)) {
            System.err.println(asking + ": " + what + ": " + found + " instead of " + wanted);
            System.exit(1);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("net.spy").setLevel(Level.WARNING);
        System.setProperty("net.spy.log.LoggerImpl", "net.spy.memcached.compat.log.SunLogger");
        // A client's threads would keep the program alive.
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            System.exit(1);
        });
        var address = new InetSocketAddress(arguments[0], Integer.parseInt(arguments[1]));
        for (boolean binary : new boolean[] {true, false}) {
            asking = "spymemcached, " + (binary ? "binary" : "text");
            spymemcached(address, binary);
            asking = "xmemcached, " + (binary ? "binary" : "text");
            xmemcached(address, binary);
        }
        System.out.println("spymemcached, xmemcached: all calls answered as they should be");
        System.exit(0);
    }

    private static void spymemcached(InetSocketAddress address, boolean binary) throws Exception {
        var factory = binary ? new BinaryConnectionFactory() : new DefaultConnectionFactory();
        var client = new MemcachedClient(factory, List.of(address));
        equal(client.flush().get(), true, "flush");
        equal(client.set("greeting", 60, "hello").get(), true, "set");
        equal(client.get("greeting"), "hello", "get");
        equal(client.get("absent"), null, "get of what is not there");
        equal(client.add("greeting", 60, "x").get(), false, "add");
        equal(client.replace("greeting", 60, "hi").get(), true, "replace");
        CASValue<Object> with = client.gets("greeting");
        equal(client.cas("greeting", with.getCas(), "changed"), CASResponse.OK, "cas");
        equal(client.cas("greeting", with.getCas(), "again"), CASResponse.EXISTS, "cas with an old number");
        List<String> keys = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            keys.add("many:" + i);
        }
        for (String key : keys) {
            client.set(key, 60, key);
        }
        Map<String, Object> many = client.getBulk(keys);
        equal(many.size(), 300, "getBulk");
        equal(many.get("many:7"), "many:7", "one of them");
        equal(client.incr("count", 5, 10, 60), 10L, "incr makes one");
        equal(client.incr("count", 5), 15L, "incr");
        equal(client.decr("count", 20), 0L, "decr");
        equal(client.incr("none", 1), -1L, "incr of what is not there");
        equal(client.touch("greeting", 100).get(), true, "touch");
        if (binary) {
            equal(client.getAndTouch("greeting", 100).getValue(), "changed", "getAndTouch");
        }
        equal(client.append("greeting", "!").get(), true, "append");
        equal(client.prepend("greeting", ">").get(), true, "prepend");
        equal(client.get("greeting"), ">changed!", "what they made");
        equal(client.delete("greeting").get(), true, "delete");
        equal(client.delete("greeting").get(), false, "delete again");
        var large = new byte[900_000];
        large[899_999] = 7;
        equal(client.set("large", 60, large).get(), true, "set of a large value");
        equal(((byte[]) client.get("large"))[899_999], (byte) 7, "get of it");
        equal(Integer.parseInt(client.getStats().get(address).get("curr_items")) > 290, true, "stats");
        equal(Character.isDigit(client.getVersions().get(address).charAt(0)), true, "version");
        client.shutdown(5, TimeUnit.SECONDS);
    }

    private static void xmemcached(InetSocketAddress address, boolean binary) throws Exception {
        var builder = new XMemcachedClientBuilder(List.of(address));
        builder.setCommandFactory(binary ? new BinaryCommandFactory() : new TextCommandFactory());
        var client = builder.build();
        client.setOpTimeout(5000);
        client.flushAll();
        equal(client.set("greeting", 60, "hello"), true, "set");
        equal(client.get("greeting"), "hello", "get");
        equal(client.get("absent"), null, "get of what is not there");
        equal(client.add("greeting", 60, "x"), false, "add");
        equal(client.replace("greeting", 60, "hi"), true, "replace");
        var with = client.gets("greeting");
        equal(client.cas("greeting", 60, "changed", with.getCas()), true, "cas");
        equal(client.cas("greeting", 60, "again", with.getCas()), false, "cas with an old number");
        List<String> keys = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            keys.add("many:" + i);
            client.setWithNoReply("many:" + i, 60, "many:" + i);
        }
        equal(client.get(keys).size(), 300, "get of many");
        equal(client.incr("count", 5, 10), 10L, "incr makes one");
        equal(client.incr("count", 5), 15L, "incr");
        equal(client.decr("count", 20), 0L, "decr");
        equal(client.touch("greeting", 100), true, "touch");
        if (binary) {
            equal(client.getAndTouch("greeting", 100), "changed", "getAndTouch");
        }
        equal(client.append("greeting", "!"), true, "append");
        equal(client.prepend("greeting", ">"), true, "prepend");
        equal(client.get("greeting"), ">changed!", "what they made");
        equal(client.delete("greeting"), true, "delete");
        equal(client.delete("greeting"), false, "delete again");
        equal(Integer.parseInt(client.getStats().get(address).get("curr_items")) > 290, true, "stats");
        equal(Character.isDigit(client.getVersions().get(address).charAt(0)), true, "version");
        client.shutdown();
    }
}
