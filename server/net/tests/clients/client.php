<?php
// What the extension offers, with its default settings first and then by the binary protocol.

declare(strict_types=1);

[, $host, $port] = $argv;

function check(Memcached $cache, string $named): void
{
    $is = function (mixed $found, mixed $wanted, string $what) use ($cache, $named): void {
        if ($found !== $wanted) {
            fwrite(STDERR, "$named: $what: " . var_export($found, true) . ' instead of ' . var_export($wanted, true)
                . ' (' . $cache->getResultMessage() . ")\n");
            exit(1);
        }
    };
    $is($cache->flush(), true, 'flush');
    $is($cache->set('greeting', 'hello', 60), true, 'set');
    $is($cache->get('greeting'), 'hello', 'get');
    $is($cache->get('absent'), false, 'get of what is not there');
    $is($cache->getResultCode(), Memcached::RES_NOTFOUND, 'its result');
    $is($cache->add('greeting', 'x'), false, 'add');
    $is($cache->replace('greeting', 'hi'), true, 'replace');
    foreach ([1, 1.5, true, null, ['a' => [1, 2]], str_repeat('long ', 5000)] as $value) {
        $is($cache->set('typed', $value), true, 'set of a ' . gettype($value));
        $is($cache->get('typed'), $value, 'get of a ' . gettype($value));
    }
    $many = [];
    for ($i = 0; $i < 300; $i++) {
        $many["many:$i"] = "value $i";
    }
    $is($cache->setMulti($many), true, 'setMulti');
    $is($cache->getMulti(array_keys($many)), $many, 'getMulti');
    $is($cache->getDelayed(['many:1', 'many:2'], true), true, 'getDelayed');
    $is(count($cache->fetchAll()), 2, 'fetchAll');
    $cache->set('count', 10);
    $is($cache->increment('count', 5), 15, 'increment');
    $is($cache->decrement('count', 20), 0, 'decrement');
    $with = $cache->get('greeting', null, Memcached::GET_EXTENDED);
    $is($cache->cas($with['cas'], 'greeting', 'changed'), true, 'cas');
    $is($cache->cas($with['cas'], 'greeting', 'again'), false, 'cas with an old number');
    $is($cache->touch('greeting', 100), true, 'touch');
    $cache->setOption(Memcached::OPT_COMPRESSION, false);
    $cache->set('text', 'middle');
    $is($cache->append('text', ' end'), true, 'append');
    $is($cache->prepend('text', 'start '), true, 'prepend');
    $is($cache->get('text'), 'start middle end', 'what they made');
    $is($cache->delete('text'), true, 'delete');
    $is($cache->delete('text'), false, 'delete again');
    $is($cache->deleteMulti(['many:1', 'many:2']), ['many:1' => true, 'many:2' => true], 'deleteMulti');
    foreach ($cache->getStats() as $stats) {
        $is((int) $stats['curr_items'] > 290, true, 'curr_items');
    }
    foreach ($cache->getVersion() as $version) {
        $is(preg_match('/^\d+\.\d+\.\d+/', $version), 1, "version $version");
    }
    if ($named === 'binary') {
        $is($cache->increment('made', 5, 7), 7, 'increment that makes one');
        $is($cache->increment('made', 5, 7), 12, 'increment of it');
    }
    // By `stats cachedump`, which tells what it likes; the binary protocol has nothing for it.
    if ($named !== 'binary') {
        $is(is_array($cache->getAllKeys()), true, 'getAllKeys');
    }
}

foreach (['default' => [], 'binary' => [Memcached::OPT_BINARY_PROTOCOL => true], 'text, no delay' => [
    Memcached::OPT_BINARY_PROTOCOL => false, Memcached::OPT_TCP_NODELAY => true, Memcached::OPT_NO_BLOCK => true,
]] as $named => $options) {
    $cache = new Memcached();
    $cache->setOptions($options);
    $cache->addServer($host, (int) $port);
    check($cache, $named);
}
echo "php-memcached: all calls answered as they should be\n";
