// What is remembered of a client is its key, not the header that the key was cut from.
'use strict';

const { createHash } = require('node:crypto');
const { partitionKey } = require('../../lib/middleware/header-cache');
const { flatCopy } = require('../../lib/ids');
const { askProgram } = require('../support/run-program');

const CLIENTS = 2000;
const HEADER_BYTES = 15_000;

test.each([
  [
    'the partition keys',
    `const { partitionKey } = require('./lib/middleware/header-cache');
     const use = partitionKey;`,
  ],
  [
    'a store for express-rate-limit',
    `const RollgateStore = require('rollgate/store');
     const store = new RollgateStore();
     store.init({ windowMs: 60_000, limit: 5 });
     const use = (key) => store.increment(key);`,
  ],
])('%s keep short keys of long headers short', async (_what, setUp) => {
  const grown = await askProgram(
    `${setUp}
     const header = (i) => 'client-number-' + i + ',' + Buffer.alloc(${HEADER_BYTES}, 'x').toString('latin1');
     const heap = () => (gc(), gc(), process.memoryUsage().heapUsed);
     (async () => {
       await use('the first');
       const before = heap();
       for (let i = 0; i < ${CLIENTS}; i++) await use(header(i).split(',')[0]);
       console.log(heap() - before);
       await use('the last');
     })();`,
    { flags: ['--expose-gc'] },
  );
  expect(grown).toBeLessThan((CLIENTS * HEADER_BYTES) / 5);
});

test('a copy is the same text, lone surrogates and all', () => {
  for (const text of [
    '',
    'a',
    'größe',
    '\u{1f600}',
    '\ud800',
    'x\udc00y',
    '\0',
    'é'.repeat(2000),
  ]) {
    expect(flatCopy(text)).toBe(text);
  }
});

test('the same key has the same partition key, whatever it was cut from', () => {
  const key = 'a-key-of-some-length';
  expect(partitionKey(`${key},rest`.slice(0, key.length))).toBe(partitionKey(key));
});

test('a key has its own partition key, however many others there were since', () => {
  const expected = (key) => btoa(createHash('sha256').update(key).digest('hex').slice(0, 12));
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 20_000; i++) {
      const key = `key ${i}`;
      if (partitionKey(key) !== expected(key)) throw new Error(`another one for ${key}`);
      partitionKey('one that comes all the time');
    }
  }
  expect(partitionKey('one that comes all the time')).toBe(expected('one that comes all the time'));
});
