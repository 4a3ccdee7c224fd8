// Servers that refuse or die, peers that talk nonsense, clients that misbehave: the right code, never an admission.
'use strict';

const { Redis } = require('ioredis');
const RateLimiter = require('../..');
const { keySlot } = require('../../lib/stores/redis/cluster');
const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { EACH_CLIENT, nativeLimiter, openings } = require('../support/redis-clients');
const { callsOf, startRedis } = require('../support/redis-server');
const peers = require('../support/tcp-peers');
const { all, patient, slow } = require('../support/tiers');

const REPLY = 'ERR_ROLLGATE_REDIS_REPLY';
const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const LOST = /^ERR_ROLLGATE_REDIS_(TIMEOUT|UNREACHABLE)$/;
/** For calls that nobody answers, and for those that are answered. */
const [SHORT, LONG] = [300, patient(15_000)];
/** Long enough for a server that lives, and waited for in full where it is frozen. */
const WAIT = patient(1000);

let server;
let locked;

beforeAll(async () => {
  [server, locked] = await Promise.all([startRedis(), startRedis({ password: 'Sesame' })]);
});

describe.each(EACH_CLIENT)('through %s', (name, open) => {
  const { using, closeAll } = openings();
  afterEach(closeAll);

  function limiterAt(url, options, commandTimeout = LONG) {
    const redis = { ...using(open(url)), commandTimeout };
    return RateLimiter({ redis, interval: 60_000, maxInInterval: 2, ...options });
  }

  const untilItAnswers = (limiter) => waitUntil('Redis answers', () => limiter.peek('a'));

  /** A limiter that has had an answer. */
  async function connected(options, commandTimeout) {
    const limiter = limiterAt(server.url, options, commandTimeout);
    await untilItAnswers(limiter);
    return limiter;
  }

  test('a good password opens, a wrong one or none does not', async () => {
    const limiter = limiterAt(locked.url);
    await waitUntil('Redis answers', async () => (await limiter('a')) === 0);
    // Users' clients say some of it to their error listeners alone.
    const [expected, timeout] =
      name === 'native' ? [/_AUTH$/, LONG] : [/_(AUTH|TIMEOUT|UNREACHABLE|CLOSED)$/, SHORT];
    for (const [given, changed] of [
      ['Sesame', 'Simsim'],
      [':Sesame@', ''],
    ]) {
      const error = await errorOf(limiterAt(locked.url.replace(given, changed), {}, timeout)('a'));
      expect(error.code).toMatch(expected);
      expect(error.message).not.toMatch(/Sesame|Simsim/);
    }
  });

  test.each([
    ['a replica', 'REPLICAOF 127.0.0.1 1', 'REPLICAOF NO ONE', /READONLY|MASTERDOWN/],
    ['a full server', 'CONFIG SET maxmemory 1', 'CONFIG SET maxmemory 0', /^OOM|OOM /],
  ])('%s', async (_what, begin, end, message) => {
    const limiter = await connected();
    await server.command(...begin.split(' '));
    const error = await errorOf(limiter('a')).finally(() => server.command(...end.split(' ')));
    expect(error.code).toBe(REPLY);
    expect(error.cause.message).toMatch(message);
    expect(await limiter('a')).toBe(0);
  });

  test.each([
    ['has gone', () => peers.gonePeer(), LOST],
    ['says nothing', () => peers.silentPeer(), LOST],
    ['talks nonsense', () => peers.garbagePeer(), /^ERR_ROLLGATE_REDIS_/],
    ['closes at once', () => peers.closingPeer(), LOST],
    ['closes when asked', () => peers.closingPeer({ afterBytes: 1 }), LOST],
    ['resets the connection', () => peers.closingPeer({ afterBytes: 1, reset: true }), LOST],
  ])('a peer that %s', async (_what, start, expected) => {
    const { url } = await start();
    const limiter = limiterAt(url, {}, SHORT);
    const calls = Array.from({ length: 10 }, () => limiter('a'));
    calls.push(limiter.attempt('a'), limiter.clearAll(), limiter.clear('a'));
    for (const outcome of await Promise.all(calls.map((call) => outcomeOf(call)))) {
      expect(outcome).toMatch(expected);
    }
  });

  slow.describe('in an outage', () => {
    const MANY = { maxInInterval: 1000 };

    test('a server that dies and comes back', async () => {
      const limiter = await connected(MANY, WAIT);
      await server.stop();
      const calls = Array.from({ length: 20 }, () => limiter('a'));
      calls.push(limiter.attempt('a'), limiter.clear('a'), limiter.clearAll());
      const outcomes = await Promise.all(calls.map((call) => outcomeOf(call)));
      for (const outcome of outcomes) expect(outcome).toMatch(LOST);
      expect(limiter.stats().errors).toBeGreaterThanOrEqual(23);
      await server.restart();
      await untilItAnswers(limiter);
    });

    test('a server that is frozen is waited for as long as commandTimeout says', async () => {
      const limiter = await connected(MANY, WAIT);
      await server.freeze();
      const began = performance.now();
      const calls = Array.from({ length: 20 }, () => limiter('a'));
      calls.push(limiter.attempt('a'), limiter.attemptMany(['a', 'b']), limiter.peek('a'));
      const errors = await Promise.all(
        [...calls, limiter.clear('a'), limiter.clearAll()].map(errorOf),
      );
      expect(performance.now() - began).toBeGreaterThanOrEqual(WAIT - 1);
      server.thaw();
      expect(errors.map(({ code }) => code)).toEqual(errors.map(() => TIMEOUT));
      expect(errors[0].message).toContain(`${WAIT} ms`);
      expect(limiter.stats().connection.pending).toBe(0);
      await untilItAnswers(limiter);
    });

    test('a server that forgets its scripts under many calls is sent one of them once', async () => {
      const limiter = await connected(MANY);
      await server.command('CONFIG', 'RESETSTAT');
      for (let i = 0; i < 10; i++) await limiter('once');
      expect(await callsOf(server, 'evalsha')).toBe(10);
      const flushed = server.command('SCRIPT', 'FLUSH');
      const ids = Array.from({ length: 500 }, (_, i) => `many ${i}`);
      const calls = ids.map((id) => outcomeOf(limiter(id)));
      await flushed;
      calls.push(...ids.map((id) => outcomeOf(limiter(id))));
      expect(new Set(await Promise.all(calls))).toEqual(new Set([0]));
      expect(await callsOf(server, 'eval')).toBe(1);
      const used = (await limiter.attemptMany(ids)).map(({ limits }) => limits[0].used);
      expect(used).toEqual(ids.map(() => 3));
      await server.command('SCRIPT', 'FLUSH');
      expect((await limiter.attemptMany(['x', 'x']))[1].limits[0].used).toBe(2);
    });
  });
});

describe('a client', () => {
  const GOOD = { interval: 1000, maxInInterval: 1 };

  /** Looks like node-redis; `answer(args)` is what its sendCommand does. */
  const fakeClient = (answer, more) => ({ isOpen: true, sendCommand: answer, ...more });

  const limiterOver = (client, more) =>
    RateLimiter({ ...GOOD, redis: { client, commandTimeout: SHORT, ...more } });

  const failing = (message) => Promise.reject(new Error(message));
  const refusal = (message) => Object.assign(new Error(message), { name: 'ReplyError' });
  const refusing = (message) => Promise.reject(refusal(message));
  const throwing = () => {
    throw new Error('sync');
  };

  test('no more than maxQueue calls wait, those given up included until the client lets go of them', async () => {
    const held = [];
    const limiter = limiterOver(
      fakeClient(() => new Promise((...settle) => held.push(settle))),
      { maxQueue: 3 },
    );
    const calls = [];
    for (const ids of [[1, 2], [3], [4, 5]]) {
      calls.push(...ids.map((id) => outcomeOf(limiter(id))));
      await new Promise(setImmediate); // a command for each of the first two turns
    }
    const FULL = 'ERR_ROLLGATE_REDIS_QUEUE_FULL';
    expect(await Promise.all(calls)).toEqual([TIMEOUT, TIMEOUT, TIMEOUT, FULL, FULL]);
    expect(await outcomeOf(limiter('a'))).toBe(FULL);
    expect(limiter.stats().connection.unanswered).toBe(3);
    const [[resolve], [, reject], ...others] = held;
    expect(others).toEqual([]);
    resolve([0, 0]);
    reject(new Error('too late'));
    await waitUntil('the answers that came too late were dropped', () => {
      return limiter.stats().connection.unanswered === 0;
    });
    expect(limiter.stats()).toMatchObject({ allowed: 0, errors: 6 });
  });

  test.each([
    ['throws', throwing, 'UNREACHABLE'],
    ['rejects with nothing', () => Promise.reject(), 'UNREACHABLE'],
    ['rejects with a text', () => Promise.reject('no'), 'UNREACHABLE'],
    ['gives a fraction', async () => [0.5], 'REPLY'],
    ['knows no script, sent or not', () => refusing('NOSCRIPT No matching script'), 'REPLY'],
    ['says that its queue is full', () => failing('The queue is full'), 'QUEUE_FULL'],
    ['says that it waited too long', () => failing('Command timed out'), 'TIMEOUT'],
  ])('that %s', async (_what, answer, kind) => {
    const limiter = limiterOver(fakeClient(answer));
    expect(await outcomeOf(limiter('a'))).toBe(`ERR_ROLLGATE_REDIS_${kind}`);
    const error = await new Promise((resolve) => limiter('a', resolve));
    expect(error.code).toBe(`ERR_ROLLGATE_REDIS_${kind}`);
  });

  test('whose server neither knows the script nor takes it is tried a few times by each command', async () => {
    const commands = 20;
    let sent = 0;
    const client = fakeClient(async ([command]) => {
      sent += 1;
      throw refusal(
        command === 'evalsha' ? 'NOSCRIPT No matching script' : 'NOPERM no permissions',
      );
    });
    const limiter = limiterOver(client, { commandTimeout: LONG });
    const outcomes = await Promise.all(
      Array.from({ length: 64 * commands }, (_, id) => outcomeOf(limiter(id))),
    );
    expect(new Set(outcomes)).toEqual(new Set(['ERR_ROLLGATE_REDIS_AUTH']));
    expect(sent).toBeLessThan(commands * 10);
    expect(limiter.stats().connection).toMatchObject({ pending: 0, unanswered: 0 });
  });

  describe('of a cluster', () => {
    const FULL = 'ERR_ROLLGATE_REDIS_QUEUE_FULL';

    /** Two nodes, each of which serves every other slot; `answer(address, args)` is what they do. */
    function fakeCluster(answer) {
      const nodes = ['one:1', 'two:2'];
      const slots = Array.from({ length: 16_384 }, (_, i) => ({
        master: { address: nodes[i % 2] },
      }));
      const addressOf = (key) => slots[keySlot(key)].master.address;
      return {
        slots,
        masters: [],
        nodeClient() {},
        isOpen: true,
        sendCommand: (key, _isReadonly, args) => answer(addressOf(key), args),
        idsOf: (address) => numbered.filter((id) => addressOf(`{${id}}`) === address),
      };
    }
    const numbered = Array.from({ length: 100 }, (_, i) => `id ${i}`);

    test('a node that hangs fills its own queue alone', async () => {
      const hang = new Promise(() => {});
      const client = fakeCluster(async (address) => (address === 'one:1' ? hang : [0]));
      const limiter = limiterOver(client, { maxQueue: 5 });
      const [slow, quick] = [client.idsOf('one:1'), client.idsOf('two:2')];
      const ofSlow = await Promise.all(slow.map((id) => outcomeOf(limiter(id))));
      expect(ofSlow).toEqual([...Array(5).fill(TIMEOUT), ...Array(slow.length - 5).fill(FULL)]);
      for (const id of quick) expect(await outcomeOf(limiter(id))).toBe(0);
      expect(await outcomeOf(limiter.clear(slow[0]))).toBe(FULL);
      expect(limiter.stats().connection).toMatchObject({ pending: 0, unanswered: 5 });
    });

    test('that gives up a redirection is not told to be a cluster client', async () => {
      const client = fakeCluster(() => refusing('MOVED 1 one:1'));
      expect((await errorOf(limiterOver(client)('a'))).message).not.toContain('cluster');
      const single = limiterOver(fakeClient(() => refusing('MOVED 1 one:1')));
      expect((await errorOf(single('a'))).message).toContain('{ cluster: [its URL] }');
    });

    test('an outage is that of a node, and does not follow its ids to another one', async () => {
      let isDown = true;
      const client = fakeCluster(async (address, [command]) => {
        if (isDown && address === 'one:1') throw new Error('cut');
        return command === 'pttl' ? -2 : [0];
      });
      const redis = { client, commandTimeout: LONG };
      const limiter = RateLimiter({ ...GOOD, redis, onError: 'block' });
      const [lost, kept] = [client.idsOf('one:1'), client.idsOf('two:2')];
      for (const id of numbered) await limiter(id);
      expect(limiter.stats()).toMatchObject({ errors: 1, blocked: lost.length });
      for (const id of kept) expect(await limiter(id)).toBe(0);
      const before = [...client.slots];
      client.slots.fill(before[1]);
      for (const id of numbered) expect(await limiter(id)).toBe(0);
      isDown = false;
      client.slots.splice(0, before.length, ...before);
      await waitUntil('the first node decides again', async () => (await limiter(lost[0])) === 0);
    });
  });

  test('of node-redis that was never connected', async () => {
    for (const name of all ? ['redis', 'redis-5', 'redis-4'] : ['redis']) {
      const client = require(name).createClient({ url: 'redis://127.0.0.1:1' });
      const error = await RateLimiter({ ...GOOD, redis: client })('a').catch((thrown) => thrown);
      expect(error.code).toBe('ERR_ROLLGATE_REDIS_UNREACHABLE');
      expect(error.message).toContain('call its connect() first');
      expect(error.cause).toBeInstanceOf(Error);
    }
  });

  test('that was closed', async () => {
    const client = fakeClient(async () => {
      if (!client.isOpen) throw new Error('The client is closed');
      return [0];
    });
    const limiter = limiterOver(client);
    expect(await limiter('a')).toBe(0);
    client.isOpen = false;
    expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_REDIS_CLOSED');
  });

  test('a clear is not overlooked whose answer comes before that of an earlier question', async () => {
    const client = new Redis(server.url);
    try {
      const limiter = nativeLimiter({ client, commandTimeout: LONG }, { maxInInterval: 1 });
      await limiter.attempt('a');
      const { sendCommand } = client;
      let answerNow;
      const isAnswered = new Promise((tellAnswered) => {
        client.sendCommand = async (command) => {
          client.sendCommand = sendCommand;
          const reply = await client.sendCommand(command);
          tellAnswered();
          await new Promise((resolve) => {
            answerNow = resolve;
          });
          return reply;
        };
      });
      const waiting = limiter.wait('a');
      await isAnswered;
      await limiter.clear('a');
      answerNow();
      expect(await waiting).toMatchObject({ allowed: true });
    } finally {
      client.disconnect();
    }
  });
});
