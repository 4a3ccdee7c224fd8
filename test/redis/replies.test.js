// Replies that no well-kept server gives: wrong ones, unasked ones, and what nodes of a cluster say of each other.
'use strict';

const RateLimiter = require('../..');
const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { EACH_CLIENT, nativeLimiter, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
const { ALLOWED, allSlotsAt, slotsReply } = require('../support/resp');
const { askProgram } = require('../support/run-program');
const peers = require('../support/tcp-peers');
const { patient, slow } = require('../support/tiers');

const REPLY = 'ERR_ROLLGATE_REDIS_REPLY';
const LONG = patient(15_000);

describe('replies that make no sense', () => {
  const { using, closeAll } = openings();
  afterEach(closeAll);
  const HANDSHAKE = { INFO: '$8\r\nrole:x\r\n\r\n', PING: '+PONG\r\n' };

  const wrong = [
    ...['+OK\r\n', '$-1\r\n', ':0\r\n', '*0\r\n', '*1\r\n$1\r\nx\r\n', '*1\r\n$-1\r\n'],
    ...['*1\r\n$0\r\n\r\n', '*1\r\n$1\r\n \r\n', '*2\r\n:0\r\n:0\r\n', '*1\r\n:-3\r\n'],
    '*1\r\n*1\r\n:0\r\n',
  ];

  test.each(EACH_CLIENT)('through %s', async (_name, open) => {
    let reply;
    const peer = await peers.scriptedPeer((words) => {
      const command = words[0].toUpperCase();
      if (command === 'EVALSHA') return reply;
      if (command === 'HELLO') return "-ERR unknown command 'HELLO'\r\n";
      return HANDSHAKE[command] ?? '+OK\r\n';
    });
    const redis = { ...using(open(peer.url)), commandTimeout: LONG };
    const limiter = RateLimiter({ redis, interval: 1000, maxInInterval: 1 });
    reply = '*1\r\n:0\r\n';
    await waitUntil('the peer answers', async () => (await limiter('a')) === 0);
    for (reply of wrong) {
      expect([reply, await outcomeOf(limiter('a'))]).toEqual([reply, REPLY]);
      expect([reply, await outcomeOf(limiter.attempt('a'))]).toEqual([reply, REPLY]);
      expect([reply, await outcomeOf(limiter.attemptMany(['a']))]).toEqual([reply, REPLY]);
    }
    reply = '*1\r\n:1\r\n';
    expect(await limiter('a')).toBe(1);
  });

  test('to the search of clearAll', async () => {
    let reply;
    const peer = await peers.scriptedPeer(([command]) => {
      return command.toUpperCase() === 'SCAN' ? reply : ':-2\r\n'; // to PTTL
    });
    const limiter = nativeLimiter({ url: peer.url, commandTimeout: LONG });
    for (reply of ['+OK\r\n', ':0\r\n', '$-1\r\n', '*0\r\n', '*2\r\n$1\r\n0\r\n:1\r\n']) {
      expect([reply, await outcomeOf(limiter.clearAll())]).toEqual([reply, REPLY]);
    }
    reply = '*2\r\n$1\r\n0\r\n*0\r\n';
    await limiter.clearAll();
    await limiter.close();
  });
});

// Kills: a reader that makes room for what a header announces.
test('a reply of too many elements fails the call and says so, and later calls succeed', async () => {
  let reply = ALLOWED;
  const { url } = await peers.scriptedPeer(() => reply);
  const limiter = nativeLimiter({ url, retry: { min: 1, max: 10 } });
  expect(await limiter('a')).toBe(0);
  reply = '*2147483647\r\n';
  const error = await errorOf(limiter('a'));
  expect(error.code).toBe(REPLY);
  expect(error.message).toContain('more than a million elements');
  reply = ALLOWED;
  await waitUntil('it answers', async () => (await limiter('a')) === 0);
});

// Kills: a connection that is used on, although its replies may have lost their order.
test('a reply that does not fit its command ends the connection', async () => {
  let reply = '*2\r\n:0\r\n:0\r\n';
  const { url } = await peers.scriptedPeer(() => reply);
  const limiter = nativeLimiter({ url });
  expect(await outcomeOf(limiter('a'))).toBe(REPLY);
  reply = ALLOWED;
  expect(await limiter('a')).toBe(0);
  expect(limiter.stats().connection.connections).toBe(2);
});

// Kills: a reader for each piece. With TLS, pieces are whole records.
test('an answer may come byte by byte', async () => {
  const { port } = await startRedis();
  const { url } = await peers.tricklingPeer(port);
  const limiter = nativeLimiter({ url }, { maxInInterval: 30 });
  const calls = Array.from({ length: 30 }, () => limiter('a'));
  expect(new Set(await Promise.all(calls))).toEqual(new Set([0]));
  expect((await limiter.attempt('a')).allowed).toBe(false);
});

describe('unasked replies', () => {
  const UNASKED = ['+OK\r\n', '$-1\r\n', '*1\r\n+a\r\n', '-ERR\r\n'];

  /** In a process of its own, which lives on. A limiter calls again once its connection has been replaced. */
  const program = (urls) => `
    const { setTimeout: pause } = require('node:timers/promises');
    const RateLimiter = require('rollgate');
    const outcomesAt = async (url) => {
      const redis = { url, commandTimeout: ${LONG}, retry: { min: 1, max: 5 } };
      const limiter = RateLimiter({ redis, interval: 60_000, maxInInterval: 9 });
      const outcomes = [];
      for (let i = 1; i <= 3; i++) {
        outcomes.push(await limiter('a').catch(({ code }) => code));
        while (limiter.stats().connection.connections <= i) await pause(5);
      }
      await limiter.close();
      return outcomes;
    };
    Promise.all(${JSON.stringify(urls)}.map(outcomesAt)).then((all) => console.log(JSON.stringify(all)));
  `;

  test.each([
    ['behind an answer', (unasked) => peers.scriptedPeer(() => `${ALLOWED}${unasked}`)],
    [
      'some time later',
      (unasked) =>
        peers.scriptedPeer((_words, socket) => {
          setTimeout(() => socket.write(unasked), 20);
          return ALLOWED;
        }),
    ],
  ])('%s end the connection, and nothing else', async (_when, start) => {
    const all = await Promise.all(UNASKED.map(start));
    const outcomes = await askProgram(program(all.map(({ url }) => url)));
    expect(outcomes).toEqual(UNASKED.map(() => [0, 0, 0]));
  });

  // Kills: no bound for what a server sends while nobody waits for an answer.
  test('without end do the same', async () => {
    const { url } = await peers.scriptedPeer((_words, socket) => {
      setTimeout(() => socket.write(`$100000000\r\n${'x'.repeat(100_000)}`), 20);
      return ALLOWED;
    });
    expect(await askProgram(program([url]))).toEqual([[0, 0, 0]]);
  });
});

describe('nodes of a cluster', () => {
  const limiterAt = (cluster, options) => nativeLimiter({ cluster, ...options });

  /** The map of a node that has all slots. */
  const all = (port) => allSlotsAt(null, port);

  /** A node that answers CLUSTER SLOTS by `map(port)` and scripts by `run(port, command)`. */
  async function node({ map, run = () => ALLOWED }) {
    const seen = [];
    const peer = await peers.scriptedPeer(([command, detail]) => {
      seen.push(command);
      if (detail === 'INFO') return '$0\r\n\r\n';
      if (command === 'CLUSTER') return map(peer.port);
      if (command === 'ASKING' || command === 'AUTH') return '+OK\r\n';
      return run(peer.port, command);
    });
    return { url: peer.url, port: peer.port, seen };
  }

  test.each([null, '', '?'])(
    'a node whose own host is %j is where it was reached',
    async (host) => {
      const seed = await node({ map: (port) => allSlotsAt(host, port) });
      expect(await limiterAt([seed.url])('a')).toBe(0);
    },
  );

  test.each([['MOVED'], ['ASK']])('%s without a host stays with it', async (word) => {
    for (const host of ['', '?', '127.0.0.1']) {
      const target = await node({ map: () => '-ERR not asked\r\n' });
      const seed = await node({ map: all, run: () => `-${word} 15495 ${host}:${target.port}\r\n` });
      expect([host, await outcomeOf(limiterAt([seed.url])('a'))]).toEqual([host, 0]);
      expect(target.seen.includes('ASKING')).toBe(word === 'ASK');
    }
  });

  test('redirections without end are an error', async () => {
    for (const word of ['MOVED', 'ASK']) {
      let runs = 0;
      const seed = await node({
        map: all,
        run: (port) => {
          runs += 1;
          return `-${word} 15495 127.0.0.1:${port}\r\n`;
        },
      });
      const error = await errorOf(limiterAt([seed.url])('a'));
      expect(error.code).toBe(REPLY);
      expect(error.cause.message).toMatch(word);
      expect(error.message).not.toContain("give 'redis'");
      expect(runs).toBeLessThan(10);
    }
  });

  test.each([
    ...['MOVED', 'MOVED 1', 'MOVED 1 ', 'MOVED x 127.0.0.1:1', 'MOVED -1 127.0.0.1:1'],
    ...['', '99999999999', '0', '70000'].map((port) => `MOVED 1 127.0.0.1:${port}`),
    ...['MOVED 16384 127.0.0.1:1', 'ASK 1127.0.0.1:1', 'TRYAGAIN later', 'CLUSTERDOWN it is'],
  ])('"%s" is an error', async (reply) => {
    const seed = await node({ map: all, run: () => `-${reply}\r\n` });
    const outcome = await outcomeOf(limiterAt([seed.url])('a'));
    expect(outcome).toMatch(/^ERR_ROLLGATE_REDIS_(REPLY|UNREACHABLE|TIMEOUT)$/);
  });

  test.each([
    ['nothing', '*0\r\n'],
    ['no list', '+OK\r\n'],
    ['a list of numbers', '*1\r\n:1\r\n'],
    ['a short range', '*1\r\n*2\r\n:0\r\n:1\r\n'],
    ['a range of no nodes', '*1\r\n*3\r\n:0\r\n:1\r\n*0\r\n'],
    ['slots that are none', slotsReply([-1, 5, '127.0.0.1', 1])],
    ['slots beyond the last', slotsReply([0, 16_384, '127.0.0.1', 1])],
    ['words for numbers', '*1\r\n*3\r\n+a\r\n+b\r\n*2\r\n+c\r\n+d\r\n'],
    ['an error', '-ERR no\r\n'],
  ])('a map of %s is an error, and the next node is asked', async (_what, map) => {
    const seed = await node({ map: () => map });
    expect(await outcomeOf(limiterAt([seed.url])('a'))).toBe(REPLY);
    const good = await node({ map: all });
    expect(await limiterAt([seed.url, good.url])('a')).toBe(0);
  });

  test('slots that nobody serves fail their own ids alone', async () => {
    const seed = await node({ map: (port) => slotsReply([0, 8000, null, port]) });
    const limiter = limiterAt([seed.url]);
    const ids = Array.from({ length: 20 }, (_, i) => i);
    const outcomes = await Promise.all(ids.map((id) => outcomeOf(limiter(id))));
    expect(new Set(outcomes)).toEqual(new Set([0, 'ERR_ROLLGATE_REDIS_UNREACHABLE']));
  });

  test('a seed that is silent holds up nobody', async () => {
    const silent = await Promise.all([peers.silentPeer(), peers.silentPeer()]);
    const seed = await node({ map: all });
    const limiter = limiterAt([...silent.map(({ url }) => url), seed.url], {
      connectTimeout: 60_000,
    });
    expect(await Promise.all([limiter('a'), limiter('b')])).toEqual([0, 0]);
  });

  // Kills: a source that is sent to one node while the calls to all others wait for it.
  test('a node that never answers the source of a script holds up no other', async () => {
    const answeringSource = (answer) => (_port, command) =>
      command === 'EVAL' ? answer : '-NOSCRIPT No matching script\r\n';
    const other = await node({ map: () => '-ERR not asked\r\n', run: answeringSource(ALLOWED) });
    const slotOfA = [15_495, 15_495, '127.0.0.1', other.port];
    const silent = await node({
      map: (port) => slotsReply([0, 15_494, null, port], slotOfA),
      run: answeringSource(undefined),
    });
    const limiter = limiterAt([silent.url]);
    const unanswered = outcomeOf(limiter('b'));
    await waitUntil('it has the source', () => silent.seen.includes('EVAL'));
    expect(await limiter('a')).toBe(0);
    await limiter.close();
    expect(await unanswered).toBe('ERR_ROLLGATE_CLOSED');
  });

  test('passwords go to every node', async () => {
    const server = await startRedis({ password: 'Sesame' });
    const seed = await node({ map: () => allSlotsAt('127.0.0.1', server.port) });
    const url = seed.url.replace('//', '//:Sesame@');
    expect(await outcomeOf(limiterAt([url])('a'))).toBe(0);
    const error = await errorOf(limiterAt([url.replace('Sesame', 'Simsim')])('a'));
    expect(error.code).toBe('ERR_ROLLGATE_REDIS_AUTH');
  });

  slow.test('a node that slots are moving to may still have none', async () => {
    const [delay, commandTimeout] = [150, patient(1000)];
    const target = await peers.scriptedPeer(([command], socket) => {
      if (command !== 'EVALSHA') return '+OK\r\n';
      setTimeout(() => socket.write(ALLOWED), delay);
      return undefined;
    });
    const seed = await node({ map: all, run: () => `-ASK 15495 127.0.0.1:${target.port}\r\n` });
    const limiter = limiterAt([seed.url], { commandTimeout });
    // Until the timer that forgets idle nodes has come by a few times.
    for (let ms = 0; ms < 3 * commandTimeout; ms += delay) {
      expect(await outcomeOf(limiter('a'))).toBe(0);
    }
  });
});

// Kills: a connection that goes on after a reply that cannot be that of its command, so that an id gets the answer of
// another one; and silence that any byte ends.
describe('replies that have lost their order', () => {
  const REFUSING = '*1\r\n:60000000\r\n';
  const isAsked = (words, id) => words.some((word) => word.endsWith(`{${id}}`));

  test.each([
    ['an element too few', '*2\r\n:0\r\n'],
    ['thousands of elements too few', '*60000\r\n'],
    ['a string that takes what follows', '$400000000\r\n'],
  ])('%s: no id gets the answer of another one, and calls succeed again', async (_what, wrong) => {
    let replies = 0;
    const peer = await peers.scriptedPeer((words) => {
      replies += 1;
      if (replies === 3) return wrong;
      return isAsked(words, 'refused') ? REFUSING : '*1\r\n:0\r\n';
    });
    const times = { commandTimeout: 100, connectTimeout: 200, retry: { min: 1, max: 20 } };
    const limiter = nativeLimiter({ url: peer.url, ...times });
    const answers = { free: new Set(), refused: new Set() };
    const isServed = () => answers.free.has(0) && answers.refused.has(60_000) && replies > 20;
    await waitUntil('calls succeed again', async () => {
      for (const id of ['free', 'refused']) answers[id].add(await outcomeOf(limiter(id)));
      return isServed();
    });
    expect(answers.free.has(60_000)).toBe(false);
    expect(answers.refused.has(0)).toBe(false);
  });
});
