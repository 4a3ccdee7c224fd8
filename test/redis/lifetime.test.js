// Limiters, threads and processes on Redis come and go: nothing keeps a program up, nothing is left behind.
'use strict';

const diagnostics = require('node:diagnostics_channel');
const { once } = require('node:events');
const path = require('node:path');
const { promisify } = require('node:util');
const { Worker } = require('node:worker_threads');
const { outcomeOf, waitUntil } = require('../support/outcome');
const { clientsNamed, nativeLimiter } = require('../support/redis-clients');
const { redisForTests } = require('../support/redis-server');
const { askProgram, runProgram } = require('../support/run-program');
const peers = require('../support/tcp-peers');
const { patient, slow } = require('../support/tiers');

const CLOSED = 'ERR_ROLLGATE_CLOSED';
const WORKER = path.join(__dirname, '..', 'support', 'worker-program.js');
const ROUNDS = process.env.ROLLGATE_SANITIZED ? 10 : 30;
const LONG = patient(15_000);

const server = redisForTests();

const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));

/** What the programs below share: `limiterAt(url or options)`, and `print` for what they say. */
const prelude = () => `
  const RateLimiter = require('rollgate');
  const url = '${server.url}';
  const limiterAt = (where) => {
    const connection = typeof where === 'string' ? { url: where } : where;
    const redis = { commandTimeout: ${patient(15_000)}, ...connection };
    return RateLimiter({ redis, interval: 60_000, maxInInterval: 1000 });
  };
  const codeOf = (promise) => promise.then(String, ({ code }) => code);
  const print = (result) => console.log(JSON.stringify(result));
`;

// Programs that do not end by themselves are killed, and fail the test.
test('a program ends by itself', async () => {
  const silent = await peers.silentPeer();
  const programs = {
    'with a limiter never used': ['limiterAt(url); print(1);', 1],
    'when its pending call has its answer': [
      "limiterAt(url)('a', (error, timeLeft) => setImmediate(print, timeLeft));",
      0,
    ],
    'with a connection that is tried again and again': [
      "codeOf(limiterAt('redis://127.0.0.1:1')('a')).then(print);",
      'ERR_ROLLGATE_REDIS_UNREACHABLE',
    ],
    'when all it waits for has failed at once': [
      `const limiter = limiterAt({ host: '127.0.0.1', port: 1, retry: { min: ${patient(60_000)} } });
       limiter('a').catch(() => limiter.clear('a').catch(({ code }) => print(code)));`,
      'ERR_ROLLGATE_REDIS_UNREACHABLE',
    ],
    'when it closed its limiter with a call under way': [
      "const limiter = limiterAt(url); codeOf(limiter('a')).then(print); limiter.close();",
      CLOSED,
    ],
    'in the middle of a lookup': [
      "limiterAt('redis://localhost')('a').catch(() => {}); print(1); setImmediate(() => process.exit());",
      1,
    ],
    'not before what a client of its own was asked is sent and answered': [
      `const client = { isOpen: true, sendCommand: async () => [0] };
       limiterAt({ client })('a').then(print);`,
      0,
    ],
    'when a client of its own is closed': [
      `const client = new (require('ioredis'))(url);
       limiterAt({ client })('a').then(print).finally(() => client.disconnect());`,
      0,
    ],
    'not before a call to a silent server has timed out': [
      `codeOf(limiterAt({ url: '${silent.url}', commandTimeout: 300 })('a')).then(print);`,
      'ERR_ROLLGATE_REDIS_TIMEOUT',
    ],
  };
  const printed = await Promise.all(
    Object.entries(programs).map(async ([when, [source]]) => [
      when,
      await askProgram(prelude() + source).catch(({ message }) => message),
    ]),
  );
  expect(printed).toEqual(Object.entries(programs).map(([when, [, result]]) => [when, result]));
});

describe('close', () => {
  test('fails the calls under way, whatever the state of the connection', async () => {
    const silent = await peers.silentPeer();
    const places = [server.url, silent.url, 'redis://127.0.0.1:1', { host: 'localhost', port: 1 }];
    for (const place of places) {
      for (const turns of [0, 1, 2, 3]) {
        const limiter = nativeLimiter(place, { maxInInterval: 1000 });
        const calls = [limiter('a'), limiter.attemptMany(times(100, String)), limiter.clear('a')];
        calls.push(limiter.clearAll(), promisify(limiter)('a'));
        const outcomes = calls.map((call) => outcomeOf(call));
        for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
        await limiter.close();
        for (const outcome of await Promise.all(outcomes)) {
          const isAnswer = typeof outcome !== 'string';
          if (!isAnswer) expect(outcome).toMatch(/_CLOSED$|_UNREACHABLE$/);
          else expect(place).toBe(server.url);
        }
      }
    }
  });

  test('may be called from the callback of a result', async () => {
    const limiter = nativeLimiter(server.url, { maxInInterval: 1000 });
    const others = [];
    const answer = await new Promise((resolve) => {
      for (let i = 0; i < 200; i++) others.push(outcomeOf(limiter(`a${i}`)));
      limiter('a', (...result) => {
        others.push(outcomeOf(limiter('late')));
        limiter.close();
        resolve(result);
      });
      for (let i = 0; i < 200; i++) others.push(outcomeOf(limiter(`b${i}`)));
    });
    expect(answer.slice(0, 2)).toEqual([null, 0]);
    for (const outcome of await Promise.all(others)) expect([0, CLOSED]).toContain(outcome);
    expect(await outcomeOf(limiter('a'))).toBe(CLOSED);
  });

  // Kills: results that are delivered in the middle of a delivery, so that the rest of it reads their numbers.
  test.each([8, 64])('by a subscriber changes no answer that has come, of %i', async (count) => {
    const refused = (keys) => `*${keys}\r\n${':5000000\r\n'.repeat(keys)}`;
    const { url } = await peers.scriptedPeer(([name, , keys]) =>
      name.startsWith('EVAL') ? refused(Number(keys)) : '+OK\r\n',
    );
    const limiter = nativeLimiter(url, { maxInInterval: 9 });
    await Promise.all(times(8, (i) => limiter(`before ${i}`))); // numbers of calls are used again
    const onCall = ({ type }) => type === 'call' && limiter.close();
    diagnostics.subscribe('rollgate:redis', onCall);
    const answered = times(count, (i) => outcomeOf(limiter(`a${i}`)));
    await new Promise(setImmediate);
    const later = times(20, (i) => outcomeOf(limiter(`b${i}`)));
    const outcomes = await Promise.all(answered);
    diagnostics.unsubscribe('rollgate:redis', onCall);
    expect(outcomes[0]).toBe(5000);
    for (const outcome of outcomes) expect([5000, CLOSED]).toContain(outcome);
    for (const outcome of await Promise.all(later)) expect([5000, CLOSED]).toContain(outcome);
  });

  test('may be called from the callback of a failure', async () => {
    const limiter = nativeLimiter('redis://127.0.0.1:1');
    const code = await new Promise((resolve) => {
      limiter('a', (error) => limiter.close().then(() => resolve(error.code)));
    });
    expect(code).toBe('ERR_ROLLGATE_REDIS_UNREACHABLE');
  });

  test('a callback that throws is an uncaught exception, and the limiter lives on', async () => {
    const source = `
      const limiter = limiterAt(url);
      const seen = [];
      process.on('uncaughtException', ({ message }) => seen.push(message));
      for (const id of ['a', 'b', 'c']) limiter(id, () => { throw new Error(id); });
      limiter('d').then(() => limiter('e')).then((timeLeft) => print([...seen, timeLeft]));
    `;
    expect(await askProgram(prelude() + source)).toEqual(['a', 'b', 'c', 0]);
  });
});

describe('a dropped limiter', () => {
  const collecting = `
    async function collect() {
      gc();
      await new Promise(setImmediate);
    }
  `;

  test('has its connection closed, if it was the last one', async () => {
    const source = `${collecting}
      const { clientsNamed } = require('./test/support/redis-clients');
      const { startRedis } = require('./test/support/redis-server');
      const count = async (server) => (await clientsNamed(server, 'dropped')).length;
      async function use(server) {
        const limiters = Array.from({ length: 20 }, () =>
          limiterAt({ url: server.url, connectionName: 'dropped' }));
        await Promise.all(limiters.map((limiter) => limiter('a')));
        return count(server);
      }
      (async () => {
        const server = await startRedis();
        const most = await use(server);
        while ((await count(server)) > 0) await collect();
        await server.dispose();
        print(most);
      })();
    `;
    expect(await askProgram(prelude() + source, { flags: ['--expose-gc'] })).toBe(1);
  });

  test('still answers the calls it was dropped with', async () => {
    const source = `${collecting}
      const calls = Array.from({ length: 50 }, (_, i) => limiterAt(url)(i));
      (async () => {
        for (let i = 0; i < 5; i++) await collect();
        print((await Promise.all(calls)).every((timeLeft) => timeLeft === 0));
      })();
    `;
    expect(await askProgram(prelude() + source, { flags: ['--expose-gc'] })).toBe(true);
  });
});

test('a program that ends with calls under way ends well each time', async () => {
  const endings = times(8, async (i) => {
    const { code, stderr } = await runProgram(`${prelude()}
      const limiters = Array.from({ length: 5 }, () => limiterAt(url));
      for (const limiter of limiters) for (let i = 0; i < 100; i++) limiter(i).catch(() => {});
      setTimeout(() => process.exit(), ${i});
    `);
    return [code, stderr];
  });
  for (const ending of await Promise.all(endings)) expect(ending).toEqual([0, '']);
});

slow.describe('worker threads', () => {
  const connectionsGone = (name) =>
    waitUntil('their connections are gone', async () => {
      return (await clientsNamed(server, name)).length === 0;
    });

  test('count together, and end by themselves', async () => {
    const workerData = {
      task: 'useRedis',
      calls: 500,
      namespace: 'together',
      redis: { url: server.url, connectionName: 'use', commandTimeout: LONG },
    };
    const workers = Array.from({ length: 4 }, () => new Worker(WORKER, { workerData }));
    const ends = workers.map((worker) => once(worker, 'exit'));
    const answers = await Promise.all(workers.map((worker) => once(worker, 'message')));
    expect(answers).toEqual([[true], [true], [true], [true]]);
    expect(await Promise.all(ends)).toEqual([[0], [0], [0], [0]]);
    const limiter = nativeLimiter(server.url, { maxInInterval: 1e6, namespace: 'together' });
    expect((await limiter.peek('a')).limits[0].used).toBe(2001);
    await Promise.all([limiter.close(), connectionsGone('use')]);
  });

  // A crash must not take the test along: hence a process of its own.
  test('can be terminated with calls under way, whatever the state of their connections', async () => {
    const [silent, closing] = await Promise.all([peers.silentPeer(), peers.closingPeer()]);
    const redis = [
      { url: server.url, connectionName: 'terminated' },
      { url: silent.url, commandTimeout: 20 },
      { url: closing.url, commandTimeout: 20, retry: { min: 1, max: 5 } },
      { host: 'localhost', port: server.port, connectionName: 'terminated' },
      { host: 'localhost', port: 1, commandTimeout: 20, retry: { min: 1, max: 5 } },
      { host: 'no-such-host.invalid', commandTimeout: 20, retry: { min: 1, max: 5 } },
      { cluster: [server.url, silent.url], commandTimeout: 20 },
    ];
    const source = `
      const { Worker } = require('node:worker_threads');
      const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      const workerData = ${JSON.stringify({ task: 'callRedis', namespace: 'terminated', redis })};
      const terminateMany = async (start) => {
        for (let i = start; i < ${ROUNDS}; i += 3) {
          const worker = new Worker(${JSON.stringify(WORKER)}, { workerData });
          await new Promise((resolve) => worker.once('message', resolve));
          await later((i * 7) % 40);
          await worker.terminate();
        }
      };
      Promise.all([0, 1, 2].map(terminateMany)).then(() => console.log(JSON.stringify('lives')));
    `;
    expect(await askProgram(source)).toBe('lives');
    await connectionsGone('terminated');
  });
});

slow.describe('processes', () => {
  const waiter = (count) => `
    const RateLimiter = require('rollgate');
    const limiter = RateLimiter({
      redis: { url: '${server.url}', commandTimeout: ${LONG} },
      namespace: 'racers',
      interval: 50,
      maxInInterval: 5,
    });
    (async () => {
      const waiting = Array.from({ length: ${count} }, (_, i) => limiter.wait('a').then(() => i));
      const order = [];
      for (const one of waiting) one.then((i) => order.push(i));
      await Promise.all(waiting);
      const { allowed, blocked } = limiter.stats();
      console.log(JSON.stringify({ allowed, blocked, inOrder: order.every((i, at) => i === at) }));
    })();
  `;

  test('that wait for one id are all let in, each in its order, and end by themselves', async () => {
    const results = await Promise.all(Array.from({ length: 3 }, () => askProgram(waiter(12))));
    for (const { allowed, blocked, inOrder } of results) {
      expect({ allowed, inOrder }).toEqual({ allowed: 12, inOrder: true });
      // Each refusal is a race lost to an action of another process.
      expect(blocked).toBeLessThanOrEqual(24);
    }
  });
});
