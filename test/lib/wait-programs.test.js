// What wait() keeps alive: a program while somebody waits, and nothing afterwards.
'use strict';

const { askProgram } = require('../support/run-program');

const PRELUDE = `
  const RateLimiter = require('rollgate');
  const { liveLimiters } = require('./lib/native').loadAddon();
  const limiter = RateLimiter({ interval: 40, maxInInterval: 1 });
`;

test('a program lasts as long as somebody waits, and ends by itself', async () => {
  const found = await askProgram(`${PRELUDE}
    (async () => {
      const decisions = [await limiter.wait('a'), await limiter.wait('a'), await limiter.wait('a')];
      console.log(JSON.stringify(decisions.map(({ allowed }) => allowed)));
    })();
  `);
  expect(found).toEqual([true, true, true]);
});

test.each([
  ['who was let in', `await limiter.wait('a', { deadline: 3_600_000, signal });`],
  [
    'who gave up',
    `const giveUp = new AbortController();
    const waiting = hour.wait('a', { signal: giveUp.signal, deadline: 1e10 }).catch(() => {});
    giveUp.abort();
    await waiting;`,
  ],
  ['whose deadline could not be met', `await hour.wait('a', { deadline: 5 }).catch(() => {});`],
  [
    'whose limiter was closed',
    `const waiting = hour.wait('a').catch(() => {});
    await hour.close();
    await waiting;`,
  ],
])('nothing is left of somebody %s', async (_who, program) => {
  const found = await askProgram(`${PRELUDE}
    const { signal } = new AbortController();
    (async () => {
      const hour = RateLimiter({ interval: 3_600_000, maxInInterval: 1 });
      hour('a');
      await limiter.wait('a');
      ${program}
      console.log(JSON.stringify('done'));
    })();
  `);
  expect(found).toBe('done');
});

test('a limiter is freed once nobody waits, and not while somebody does', async () => {
  const found = await askProgram(
    `${PRELUDE}
    const tick = () => new Promise((resolve) => setImmediate(resolve));
    const collect = async () => {
      for (let i = 0; i < 10; i++) { gc(); await tick(); }
      return liveLimiters();
    };
    const counts = [];
    const giveUp = new AbortController();
    function begin() {
      const hour = RateLimiter({ interval: 3_600_000, maxInInterval: 1 });
      hour('a');
      return hour.wait('a', { signal: giveUp.signal }).catch(() => 'gave up');
    }
    (async () => {
      let waiting = begin();
      counts.push(await collect());
      giveUp.abort();
      counts.push(await waiting);
      waiting = undefined;
      counts.push(await collect());
      console.log(JSON.stringify(counts));
    })();
  `,
    { flags: ['--expose-gc'] },
  );
  expect(found).toEqual([2, 'gave up', 1]);
});
