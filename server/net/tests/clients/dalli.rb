# frozen_string_literal: true

# What Dalli offers, by one protocol.

require "dalli"

server, protocol = ARGV
# A busy machine may take longer than the second that is usual.
cache = Dalli::Client.new(server, protocol: protocol.to_sym, expires_in: 300, socket_timeout: 60)

def is(found, wanted, what)
  return if found == wanted

  abort "#{what}: #{found.inspect} instead of #{wanted.inspect}"
end

cache.flush
is cache.set("greeting", "hello") ? true : false, true, "set"
is cache.get("greeting"), "hello", "get"
is cache.get("absent"), nil, "get of what is not there"
is cache.add("greeting", "x"), false, "add"
is !!cache.add("new", { "a" => [1, 2] }), true, "add of a new one"
is cache.get("new"), { "a" => [1, 2] }, "get of an object"
is !!cache.replace("greeting", "hi"), true, "replace"
cache.replace("absent", "x")
is cache.get("absent"), nil, "replace of what is not there"
is cache.fetch("computed") { 42 }, 42, "fetch computes"
is cache.fetch("computed") { 43 }, 42, "fetch finds"
(0...300).each { |i| cache.set("many:#{i}", "v" * i) }
found = cache.get_multi((0...310).map { |i| "many:#{i}" })
is found.size, 300, "get_multi"
is found["many:7"], "v" * 7, "one of them"
is cache.incr("count", 5, nil, 10), 10, "incr makes one"
is cache.incr("count", 5), 15, "incr"
is cache.decr("count", 20), 0, "decr"
is cache.incr("no such", 1), nil, "incr of what is not there"
cache.set("text", "middle", 60, raw: true)
is !!cache.append("text", " end"), true, "append"
is !!cache.prepend("text", "start "), true, "prepend"
is cache.get("text", raw: true), "start middle end", "what they made"
is !!cache.cas("greeting") { |value| "#{value}!" }, true, "cas"
is cache.get("greeting"), "hi!", "what cas made"
value, number = cache.get_cas("greeting")
is value, "hi!", "get_cas"
is !!cache.set_cas("greeting", "changed", number), true, "set_cas"
is !!cache.set_cas("greeting", "again", number), false, "set_cas with an old number"
is !!cache.touch("greeting", 100), true, "touch"
is cache.gat("greeting", 200), "changed", "gat"
is !!cache.delete("greeting"), true, "delete"
is !!cache.delete("greeting"), false, "delete again"
cache.multi { 100.times { |i| cache.set("quiet:#{i}", i) } }
is cache.get("quiet:99"), 99, "quiet sets"
large = "x" * 900_000
cache.set("large", large, 60, raw: true)
is cache.get("large", raw: true), large, "a large value"
key = "key with spaces and \u00fc"
cache.set(key, "odd")
is cache.get(key), "odd", "a key that is not ASCII"
stats = cache.stats.values.first
is stats["curr_items"].to_i > 300, true, "stats"
is cache.version.values.first.match?(/\A\d+\.\d+\.\d+/), true, "version"
puts "dalli, #{protocol}: all calls answered as they should be"
