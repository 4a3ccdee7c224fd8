// What a limiter over a key-value store keeps alive: the process while a call is pending, else nothing.
'use strict';

const { askProgram } = require('../support/run-program');

const SET_UP = `
  const RateLimiter = require('rollgate');
  const { createPlainKv } = require('./test/support/kv-stores');
  const kv = createPlainKv();
  const limiter = RateLimiter({ kv, namespace: 'n', interval: 60_000, maxInInterval: 3, commandTimeout: 300 });
`;
const timers = "process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length";

test('a program with a limiter that has answered ends by itself', async () => {
  const program = `${SET_UP}
    (async () => {
      await limiter('a');
      await limiter.clearAll();
      console.log(JSON.stringify(${timers}));
    })();
  `;
  expect(await askProgram(program)).toBe(0);
});

test.each([
  ['get that never answers', "kv.get = () => new Promise(() => {}); const call = limiter('a');"],
  ['set that never answers', "kv.set = () => new Promise(() => {}); const call = limiter('a');"],
  ['lost race after another', "kv.set = async () => false; const call = limiter('a');"],
  [
    'list that never answers',
    'kv.list = () => new Promise(() => {}); const call = limiter.clearAll();',
  ],
])('a call settles before the program ends: a %s', async (_name, source) => {
  const program = `${SET_UP}
    ${source}
    call.catch((error) => console.log(JSON.stringify(error.code)));
  `;
  expect(await askProgram(program)).toBe('ERR_ROLLGATE_KV_TIMEOUT');
});

test('a limiter that was dropped is freed, and a store is not kept by it', async () => {
  const program = `${SET_UP}
    (async () => {
      const make = async () => {
        const own = createPlainKv();
        const dropped = RateLimiter({ kv: own, namespace: 'n', interval: 1000, maxInInterval: 3 });
        await dropped('a');
        return [new WeakRef(dropped), new WeakRef(own)];
      };
      const refs = [];
      for (let i = 0; i < 20; i++) refs.push(...(await make()));
      for (let i = 0; i < 20; i++) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        global.gc();
      }
      console.log(JSON.stringify(refs.filter((ref) => ref.deref() !== undefined).length));
    })();
  `;
  expect(await askProgram(program, { flags: ['--expose-gc'] })).toBeLessThanOrEqual(2);
});

test('an id that is idle leaves nothing behind', async () => {
  const program = `${SET_UP}
    (async () => {
      kv.set = async () => true; // keeps nothing itself
      for (let i = 0; i < 2000; i++) await limiter('warm ' + i);
      global.gc();
      const before = process.memoryUsage().heapUsed;
      for (let i = 0; i < 50_000; i++) await limiter('id ' + i);
      global.gc();
      console.log(JSON.stringify(process.memoryUsage().heapUsed - before));
    })();
  `;
  expect(await askProgram(program, { flags: ['--expose-gc'] })).toBeLessThan(2_000_000);
});
