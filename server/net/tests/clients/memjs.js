// What memjs offers, called as its documentation shows, against a server that speaks the binary protocol.
'use strict';

const assert = require('node:assert');
const memjs = require('memjs');

async function main() {
  const client = memjs.Client.create(process.env.MEMCACHIER_SERVERS, { retries: 0, timeout: 5 });
  const text = async (key) => {
    const { value } = await client.get(key);
    return value === null ? null : value.toString();
  };

  assert.strictEqual(await client.set('greeting', 'hello', { expires: 60 }), true);
  assert.strictEqual(await text('greeting'), 'hello');
  assert.strictEqual((await client.get('absent')).value, null);
  assert.strictEqual(await client.add('greeting', 'again', {}), false);
  assert.strictEqual(await client.add('second', 'there', {}), true);
  assert.strictEqual(await client.replace('absent', 'x', {}), false);
  assert.strictEqual(await client.replace('second', 'here', {}), true);
  assert.strictEqual(await client.append('second', '!'), true);
  // Its prepend appends: this says what reaches the server, not what should.
  assert.strictEqual(await client.prepend('second', '?'), true);
  assert.strictEqual(await text('second'), 'here!?');
  await assert.rejects(client.append('absent', '!'));
  assert.strictEqual(await client.touch('second', 30), true);
  assert.strictEqual(await client.touch('absent', 30), false);
  assert.strictEqual((await client.increment('count', 5, { initial: 10 })).value, 10);
  assert.strictEqual((await client.increment('count', 5, { initial: 10 })).value, 15);
  assert.strictEqual((await client.decrement('count', 20, { initial: 10 })).value, 0);
  assert.strictEqual(await client.delete('greeting'), true);
  assert.strictEqual(await client.delete('greeting'), false);

  // Values of every size class, and one that takes several pieces.
  for (const size of [0, 1, 100, 8000, 8200, 100000, 900000]) {
    const value = Buffer.alloc(size, 'v');
    assert.strictEqual(await client.set(`size:${size}`, value, {}), true);
    assert.ok((await client.get(`size:${size}`)).value.equals(value), `a value of ${size} bytes`);
  }
  await assert.rejects(client.set('too large', Buffer.alloc(2 << 20), {}));

  // Many at once on one connection.
  const keys = Array.from({ length: 500 }, (_, number) => `many:${number}`);
  await Promise.all(keys.map((key) => client.set(key, key, {})));
  assert.deepStrictEqual(await Promise.all(keys.map(text)), keys);

  const stats = await new Promise((resolve, reject) => {
    client.stats((error, server, stats) => (error ? reject(error) : resolve(stats)));
  });
  assert.ok(Number(stats.curr_items) >= 500, `curr_items is ${stats.curr_items}`);
  await new Promise((resolve, reject) => client.flush((error) => (error ? reject(error) : resolve())));
  assert.strictEqual(await text('second'), null);
  client.close();
  console.log('memjs: all calls answered as they should be');
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
