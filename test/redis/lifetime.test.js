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

/** What the programs below share: `limiterAt(url or options of a connection)`, and `print` for what they say. */
const prelude = () => `
  const RateLimiter = require('rollgate');
  const url = '${server.url}';
  const limiterAt = (where, options) => {
    const connection = typeof where === 'string' ? { url: where } : where;
    const redis = { commandTimeout: ${LONG}, ...connection };
    return RateLimiter({ redis, interval: 60_000, maxInInterval: 1000, ...options });
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
    'when a client of its own is closed, which its limiter leaves open': [
      `const client = new (require('ioredis'))(url);
       const limiter = limiterAt({ client });
       limiter('a').then(() => limiter.close()).then(() => client.ping()).then(print)
         .finally(() => client.disconnect());`,
      'PONG',
    ],
    'not before a call to a silent server has timed out': [
      `codeOf(limiterAt({ url: '${silent.url}', commandTimeout: 300 })('a')).then(print);`,
      'ERR_ROLLGATE_REDIS_TIMEOUT',
    ],
  };
  const printed = {};
  const expected = {};
  const asking = Object.entries(programs).map(async ([when, [source, result]]) => {
    expected[when] = result;
    printed[when] = await askProgram(prelude() + source).catch(({ message }) => message);
  });
  await Promise.all(asking);
  expect(printed).toEqual(expected);
});

describe('close', () => {
  test('fails the calls under way, whatever the state of the connection', async () => {
    const silent = await peers.silentPeer();
    const places = [server.url, silent.url, 'redis://127.0.0.1:1', { host: 'localhost', port: 1 }];
    for (const [place, turns] of places.flatMap((one) => [0, 1, 2, 3].map((n) => [one, n]))) {
      const limiter = nativeLimiter(place, { maxInInterval: 1000 });
      const calls = [limiter('a'), limiter.attemptMany(times(100, String)), limiter.clear('a')];
      calls.push(limiter.clearAll(), promisify(limiter)('a'));
      const outcomes = calls.map((call) => outcomeOf(call));
      for (let turn = 0; turn < turns; turn++) await new Promise(setImmediate);
      await limiter.close();
      for (const outcome of await Promise.all(outcomes)) {
        if (typeof outcome === 'string') expect(outcome).toMatch(/_CLOSED$|_UNREACHABLE$/);
        else expect(place).toBe(server.url);
      }
    }
  });

  test('may be called from the callback of a result or a failure', async () => {
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
    const lost = nativeLimiter('redis://127.0.0.1:1');
    const code = await new Promise((resolve) => {
      lost('a', (error) => lost.close().then(() => resolve(error.code)));
    });
    expect(code).toBe('ERR_ROLLGATE_REDIS_UNREACHABLE');
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
    const calls = times(count, (i) => outcomeOf(limiter(`a${i}`)));
    await new Promise(setImmediate);
    calls.push(...times(20, (i) => outcomeOf(limiter(`b${i}`))));
    const outcomes = await Promise.all(calls);
    diagnostics.unsubscribe('rollgate:redis', onCall);
    expect(outcomes[0]).toBe(5000);
    for (const outcome of outcomes) expect([5000, CLOSED]).toContain(outcome);
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
  /** What a program prints that runs `source`, where count() gives the connections named 'dropped'. */
  const asking = (source) =>
    askProgram(
      `${prelude()}
      const { clientsNamed } = require('./test/support/redis-clients');
      const redis = new (require('ioredis'))(url);
      const server = { command: (...words) => redis.call(...words) };
      const count = async () => (await clientsNamed(server, 'dropped')).length;
      const useAll = (limiters) => Promise.all(limiters.map((limiter) => limiter('a')));
      async function collect() {
        await new Promise(setImmediate); // until then, deref() of a WeakRef keeps what it gives
        gc();
        await new Promise(setImmediate);
      }
      (async () => {${source}})().then(print).finally(() => redis.disconnect());`,
      { flags: ['--expose-gc'] },
    );

  test('has its connection closed, if it was the last one', async () => {
    const most = await asking(`
      const make = () => limiterAt({ url, connectionName: 'dropped' });
      await useAll(Array.from({ length: 20 }, make));
      const most = await count();
      while ((await count()) > 0) await collect();
      return most;
    `);
    expect(most).toBe(1);
  });

  // Kills: a dropped limiter that is counted as a user of its connection for ever.
  test('leaves nothing on a connection, which ends with the last one', async () => {
    const open = await asking(`
      const connection = RateLimiter.createRedisConnection({ url, connectionName: 'dropped' });
      const make = () => RateLimiter({ interval: 60_000, maxInInterval: 2, connection });
      const kept = make();
      const use = async () => {
        const limiters = Array.from({ length: 20 }, make);
        await useAll(limiters);
        return limiters.map((limiter) => new WeakRef(limiter));
      };
      const dropped = await use();
      while (dropped.some((ref) => ref.deref() !== undefined)) await collect();
      await kept('a');
      const open = await count();
      await kept.close();
      while ((await count()) > 0) await collect();
      return [open, typeof connection];
    `);
    expect(open).toEqual([1, 'object']);
  });

  test('still answers the calls it was dropped with', async () => {
    const timesLeft = await asking(`
      const calls = Array.from({ length: 50 }, (_, i) => limiterAt(url)(i));
      for (let i = 0; i < 5; i++) await collect();
      return Promise.all(calls);
    `);
    expect(timesLeft).toEqual(times(50, () => 0));
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
    waitUntil('they are gone', async () => (await clientsNamed(server, name)).length === 0);

  test('count together, and end by themselves', async () => {
    const workerData = {
      task: 'useRedis',
      calls: 500,
      namespace: 'together',
      redis: { url: server.url, connectionName: 'use', commandTimeout: LONG },
    };
    const workers = Array.from({ length: 4 }, () => new Worker(WORKER, { workerData }));
    const told = (event) => Promise.all(workers.map((worker) => once(worker, event)));
    const [answers, ends] = await Promise.all([told('message'), told('exit')]);
    expect([answers, ends]).toEqual([Array(4).fill([true]), Array(4).fill([0])]);
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
      const { setTimeout: pause } = require('node:timers/promises');
      const workerData = ${JSON.stringify({ task: 'callRedis', namespace: 'terminated', redis })};
      const terminateMany = async (start) => {
        for (let i = start; i < ${ROUNDS}; i += 3) {
          const worker = new Worker(${JSON.stringify(WORKER)}, { workerData });
          await new Promise((resolve) => worker.once('message', resolve));
          await pause((i * 7) % 40);
          await worker.terminate();
        }
      };
      Promise.all([0, 1, 2].map(terminateMany)).then(() => print('lives'));
    `;
    expect(await askProgram(prelude() + source)).toBe('lives');
    await connectionsGone('terminated');
  });
});

slow.test(
  'processes that wait for one id are all let in, each in its order, and end by themselves',
  async () => {
    const source = `
    const limiter = limiterAt(url, { namespace: 'racers', interval: 50, maxInInterval: 5 });
    const order = [];
    const waiting = Array.from({ length: 12 }, (_, i) => limiter.wait('a').then(() => order.push(i)));
    Promise.all(waiting).then(() => print({ ...limiter.stats(), order }));
  `;
    const results = await Promise.all(times(3, () => askProgram(prelude() + source)));
    for (const { allowed, blocked, order } of results) {
      expect([allowed, order]).toEqual([12, times(12, (i) => i)]);
      // Each refusal is a race lost to an action of another process.
      expect(blocked).toBeLessThanOrEqual(24);
    }
  },
);
