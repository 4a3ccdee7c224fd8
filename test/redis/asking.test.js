// ASKING, which precedes a call that a cluster redirects while a slot moves: it stays with its call, sent or not.
'use strict';

const { outcomeOf, waitUntil } = require('../support/outcome');
const { nativeLimiter } = require('../support/redis-clients');
const { ALLOWED, allSlotsAt } = require('../support/resp');
const peers = require('../support/tcp-peers');
const { patient } = require('../support/tiers');

const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const REFUSED = '*1\r\n:7000\r\n';
const commandTimeout = patient(2000);
const connectTimeout = 2 * commandTimeout;

/**
 * Answers in order, runs of scripts with its `answers`; from the first `held` command on, only after release(). Logins
 * take `loginMs`.
 */
async function startTarget(held, loginMs = 0) {
  const seen = [];
  const answers = [];
  let waiting;
  const { port } = await peers.scriptedPeer(([command], socket) => {
    if (command !== 'CLUSTER') seen.push(command);
    const others = command === 'CLUSTER' ? '-ERR no map\r\n' : '+OK\r\n';
    const answer = command === 'EVALSHA' ? (answers.shift() ?? ALLOWED) : others;
    const write = () => socket.write(answer);
    if (command === held) waiting ??= [];
    if (waiting !== undefined) waiting.push(write);
    else if (command === 'AUTH') setTimeout(write, loginMs);
    else write();
  });
  const release = () => {
    for (const write of waiting) write();
    waiting = held = undefined;
  };
  return { port, seen, answers, release };
}

/** A limiter of a cluster whose only owner of slots sends every call to the target. */
async function limiterFor(target) {
  const seed = await peers.scriptedPeer(([command, detail]) => {
    if (detail === 'INFO') return '$0\r\n\r\n';
    if (command === 'CLUSTER') return allSlotsAt(null, seed.port);
    return command === 'AUTH' ? '+OK\r\n' : `-ASK 15495 127.0.0.1:${target.port}\r\n`;
  });
  const cluster = [seed.url.replace('//', '//:p@')];
  return nativeLimiter({ cluster, commandTimeout, connectTimeout });
}

const PAIR = ['ASKING', 'EVALSHA'];

// Kills a call that times out and leaves the answer to its ASKING for the next one.
test.each([['ASKING'], ['EVALSHA']])(
  'a call that times out at %s takes no answer of a later one',
  async (command) => {
    // The call is sent so late that at its time-out the connection is not silent for so long that nothing more is written:
    // half of commandTimeout.
    const target = await startTarget(command, 0.75 * commandTimeout);
    target.answers.push(ALLOWED, REFUSED);
    const limiter = await limiterFor(target);
    expect(await outcomeOf(limiter('a'))).toBe(TIMEOUT);
    const next = limiter('a');
    await waitUntil('the next call has arrived', () => target.seen.length >= 5);
    target.release();
    expect(await next).toBe(7);
    expect(await limiter('a')).toBe(0);
    expect(target.seen).toEqual(['AUTH', ...PAIR, ...PAIR, ...PAIR]);
  },
);

// Kills an ASKING that is sent although its call was dropped: the next call would get its answer.
test('a call that times out before it is sent sends no ASKING', async () => {
  const target = await startTarget('AUTH');
  const limiter = await limiterFor(target);
  const late = await Promise.all(['a', 'b'].map((id) => outcomeOf(limiter(id))));
  expect(late).toEqual([TIMEOUT, TIMEOUT]);
  target.release();
  await waitUntil('it answers', async () => (await limiter('a')) === 0);
  const runs = target.seen.slice(target.seen.lastIndexOf('AUTH') + 1);
  expect(runs).toEqual(PAIR);
});
