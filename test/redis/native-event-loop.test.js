// The native client never holds up the event loop, however slow servers and name servers are.
'use strict';

const { nativeLimiter } = require('../support/native-redis');
const { outcomeOf } = require('../support/outcome');
const { startRedis } = require('../support/redis-server');
const { askProgram } = require('../support/run-program');
const peers = require('../support/tcp-peers');
const { waitUntil } = require('../support/wait-until');

/** Far above what a busy machine does to a turn, far below any wait for a network. */
const LONGEST_TURN_MS = process.env.ROLLGATE_SANITIZED ? 2000 : 800;
const COMMAND_TIMEOUT = 1200;

let server;

beforeAll(async () => {
  server = await startRedis();
});

/** The longest turn of the loop until `promise` settles. */
async function longestTurnUntil(promise) {
  let longest = 0;
  let last = performance.now();
  let isOver = false;
  const turn = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isOver) setImmediate(turn);
  };
  turn();
  await promise;
  isOver = true;
  return longest;
}

const peersByName = {
  'that trickles': () => peers.tricklingPeer(server.port, { delayMs: 5 }),
  'that is silent': () => peers.silentPeer(),
  'that closes': () => peers.closingPeer({ afterBytes: 1 }),
  'that talks nonsense': () => peers.garbagePeer(),
  'in no network': () => ({ url: 'redis://192.0.2.1:6379' }),
};

test.each(Object.entries(peersByName))('with a peer %s', async (_name, start) => {
  const { url } = await start();
  const limiter = nativeLimiter({ url, commandTimeout: COMMAND_TIMEOUT });
  const began = performance.now();
  const calls = Promise.all(Array.from({ length: 500 }, (_, i) => outcomeOf(limiter(`a${i}`))));
  expect(await longestTurnUntil(calls)).toBeLessThan(LONGEST_TURN_MS);
  expect(performance.now() - began).toBeLessThan(COMMAND_TIMEOUT + LONGEST_TURN_MS);
  expect(await longestTurnUntil(limiter.close())).toBeLessThan(LONGEST_TURN_MS);
});

test('with a peer whose answer takes many reads', async () => {
  const { url } = await peers.tricklingPeer(server.port, { delayMs: 1 });
  const limiter = nativeLimiter({ url, commandTimeout: 2000 });
  const ids = Array.from({ length: 30 }, (_, i) => i);
  const calls = Promise.all(ids.map((id) => limiter(id)));
  expect(await longestTurnUntil(calls)).toBeLessThan(LONGEST_TURN_MS);
  expect(new Set(await calls)).toEqual(new Set([0]));
  await limiter.close();
});

test('with a frozen server that takes no more bytes', async () => {
  const limiter = nativeLimiter({ url: server.url, commandTimeout: COMMAND_TIMEOUT });
  await limiter('a');
  await server.freeze();
  const began = performance.now();
  const name = 'x'.repeat(10_000);
  const calls = Promise.all(Array.from({ length: 2000 }, (_, i) => outcomeOf(limiter(name + i))));
  const longest = await longestTurnUntil(calls).finally(() => server.thaw());
  const tookMs = performance.now() - began;
  expect(longest).toBeLessThan(LONGEST_TURN_MS);
  expect(tookMs).toBeLessThan(COMMAND_TIMEOUT + 2 * LONGEST_TURN_MS);
  expect(new Set(await calls)).toEqual(new Set(['ERR_ROLLGATE_REDIS_TIMEOUT']));
  await waitUntil('it has read on and answers', async () => (await limiter('b')) === 0);
  await limiter.close();
});

test('while the name of a host is looked up, and calls settle in time all the same', async () => {
  const source = `
    process.env.UV_THREADPOOL_SIZE = '1';
    const { pbkdf2 } = require('node:crypto');
    const RateLimiter = require('rollgate');
    const limiter = RateLimiter({
      redis: { host: 'localhost', port: ${server.port}, commandTimeout: 200, connectTimeout: 300 },
      interval: 60_000,
      maxInInterval: 100,
    });
    // The only thread of the pool is busy for a while: lookups have to wait.
    let isBusy = true;
    const keepBusy = () => pbkdf2('a', 'b', 3e5, 64, 'sha512', () => { if (isBusy) keepBusy(); });
    for (let i = 0; i < 6; i++) keepBusy();
    let longest = 0;
    let last = performance.now();
    const turn = () => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
      if (isBusy) setImmediate(turn);
    };
    turn();
    (async () => {
      const outcomes = [];
      const began = performance.now();
      for (let i = 0; i < 5; i++) outcomes.push(await limiter('a').catch(({ code }) => code));
      const tookMs = performance.now() - began;
      isBusy = false;
      // What the pool has taken on already goes on for a while; calls of a longer backoff fail at once.
      let answer = await limiter('a').catch(() => {});
      while (answer !== 0 && performance.now() - began < 20_000) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        answer = await limiter('a').catch(() => {});
      }
      console.log(JSON.stringify({ outcomes, longest, tookMs, answer }));
    })();
  `;
  const { outcomes, longest, tookMs, answer } = await askProgram(source);
  expect(outcomes[0]).toBe('ERR_ROLLGATE_REDIS_TIMEOUT');
  expect(longest).toBeLessThan(LONGEST_TURN_MS);
  expect(tookMs).toBeLessThan(5 * (200 + LONGEST_TURN_MS));
  expect(answer).toBe(0);
});
