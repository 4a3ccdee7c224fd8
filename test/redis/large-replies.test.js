// Replies that are too large, of types that nobody asked for, or cut at any byte.
'use strict';

const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { nativeLimiter } = require('../support/redis-clients');
const peers = require('../support/tcp-peers');
const { patient } = require('../support/tiers');

const REPLY = 'ERR_ROLLGATE_REDIS_REPLY';
const ALLOWED = '*1\r\n:0\r\n';
const retry = { min: 1, max: 10 };

/** A limiter and the peer that answers it with `peer.reply`. */
async function start() {
  const answers = { reply: ALLOWED };
  const { url } = await peers.scriptedPeer(() => answers.reply);
  return { answers, limiter: nativeLimiter({ url, retry }) };
}

const manyIntegers = (count) => `*${count}\r\n${':0\r\n'.repeat(count)}`;

describe('a reply that is too large', () => {
  // Kills a reader that makes room for what a header announces: 22 seconds for the first of these.
  test.each([
    ['two billion elements that never come', () => '*2147483647\r\n'],
    ['one element more than a million', () => manyIntegers(1_000_001)],
    ['a million elements inside an array', () => `*2\r\n:0\r\n${manyIntegers(1_000_000)}`],
    ['arrays that are each allowed', () => '*2\r\n'.repeat(3) + manyIntegers(999_999)],
    ['arrays of arrays that never come', () => '*999999\r\n*999999\r\n*999999\r\n'],
    ['arrays without end', () => '*1\r\n'.repeat(10_000)],
  ])('%s fails the call at once, and later calls succeed', async (_what, make) => {
    const { answers, limiter } = await start();
    expect(await limiter('a')).toBe(0);
    for (const call of ['attempt', 'clear', 'peek']) {
      answers.reply = make();
      const began = performance.now();
      expect([call, (await errorOf(limiter[call]('a'))).code]).toEqual([call, REPLY]);
      expect(performance.now() - began).toBeLessThan(patient(5000));
      answers.reply = ALLOWED;
      await waitUntil('it answers', async () => (await limiter('a')) === 0);
    }
  });

  test('says so', async () => {
    const { answers, limiter } = await start();
    answers.reply = '*2147483647\r\n';
    expect((await errorOf(limiter('a'))).message).toContain('more than a million elements');
  });

  test('but a million elements are read, and are no answer', async () => {
    const { answers, limiter } = await start();
    answers.reply = manyIntegers(1_000_000);
    expect(await outcomeOf(limiter('a'))).toBe(REPLY);
    answers.reply = ALLOWED;
    expect(await limiter('a')).toBe(0);
    // Replies that do not fit their commands have lost their order.
    expect(limiter.stats().connection.connections).toBe(2);
  });
});

// Each comes after a good answer, which must not be given again.
test.each([
  ...[
    ',0\r\n',
    ',1.5\r\n',
    '#t\r\n',
    '#f\r\n',
    '_\r\n',
    '(0\r\n',
    '=5\r\ntxt:0\r\n',
    '!1\r\n0\r\n',
  ],
  ...['%1\r\n:0\r\n:0\r\n', '~1\r\n:0\r\n', '>1\r\n:0\r\n', '|1\r\n:0\r\n:0\r\n:0\r\n'],
  ...['*1\r\n,0\r\n', '*1\r\n#f\r\n', '*1\r\n_\r\n', '*1\r\n(0\r\n'],
  ...['*-2\r\n', '*x\r\n', '*1\r\n:x\r\n', '$-2\r\n', '*1\r\n:99999999999999999999\r\n', '\0\r\n'],
])('%j is an error, and no admission', async (reply) => {
  const { answers, limiter } = await start();
  expect(await limiter('a')).toBe(0);
  answers.reply = reply;
  expect(await outcomeOf(limiter('a'))).toBe(REPLY);
  answers.reply = ALLOWED;
  await waitUntil('it answers', async () => (await limiter('a')) === 0);
});

test('a reply may be cut at any byte', async () => {
  const reply = '*3\r\n:0\r\n:1234567\r\n:0\r\n';
  let cutAt;
  const { url } = await peers.scriptedPeer((_words, socket) => {
    socket.write(reply.slice(0, cutAt));
    setImmediate(() => setImmediate(() => socket.write(reply.slice(cutAt))));
  });
  const limiter = nativeLimiter({ url });
  for (cutAt = 1; cutAt < reply.length; cutAt++) {
    const timesLeft = await Promise.all([limiter('a'), limiter('b'), limiter('c')]);
    expect([cutAt, ...timesLeft]).toEqual([cutAt, 0, 1235, 0]); // the script answers in us
  }
  expect(limiter.stats().connection.connections).toBe(1);
});
