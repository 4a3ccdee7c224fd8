// Servers that refuse or die, peers that talk nonsense, clients that misbehave: the right code, never an admission.
'use strict';

const assert = require('node:assert');
const { keySlot } = require('../../lib/stores/redis/cluster');
const { fakeClient, limiterOver, refusal } = require('../support/fake-client');
const { gatedClient } = require('../support/gated-client');
const { errorOf, outcomeOf, waitUntil } = require('../support/outcome');
const { EACH_CLIENT, nativeLimiter, openings } = require('../support/redis-clients');
const { startRedis } = require('../support/redis-server');
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

  const limiterAt = (url, options, commandTimeout = LONG) =>
    nativeLimiter({ ...using(open(url)), commandTimeout }, options);

  const untilItAnswers = (limiter) => waitUntil('Redis answers', () => limiter.peek('a'));

  /** A limiter that has had an answer. */
  async function connected(options, commandTimeout) {
    const limiter = limiterAt(server.url, options, commandTimeout);
    await untilItAnswers(limiter);
    return limiter;
  }

  const outcomesOf = (limiter) => {
    const calls = [...Array(10).keys()].map(() => limiter('a'));
    calls.push(limiter.attempt('a'), limiter.attemptMany(['a', 'b']), limiter.peek('a'));
    calls.push(limiter.clear('a'), limiter.clearAll());
    return Promise.all(calls.map((call) => outcomeOf(call)));
  };

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
    for (const outcome of await outcomesOf(limiter)) expect(outcome).toMatch(expected);
  });

  slow.test.each([
    ['dies', () => server.stop(), () => server.restart(), LOST],
    ['is frozen', () => server.freeze(), () => server.thaw(), /_TIMEOUT$/],
  ])(
    'a server that %s fails calls in time, and serves again',
    async (what, end, begin, expected) => {
      const limiter = await connected({ maxInInterval: 1000 }, WAIT);
      await end();
      const began = performance.now();
      const outcomes = await outcomesOf(limiter);
      if (what === 'is frozen') expect(performance.now() - began).toBeGreaterThanOrEqual(WAIT - 1);
      await begin();
      for (const outcome of outcomes) expect(outcome).toMatch(expected);
      expect(limiter.stats().errors).toBeGreaterThanOrEqual(outcomes.length);
      expect(limiter.stats().connection.pending).toBe(0);
      await untilItAnswers(limiter);
    },
  );
});

describe('a client', () => {
  const failing = (message) => Promise.reject(Object.assign(new Error(), { message }));
  const throwingGetter = Object.defineProperty({}, 'message', { get: () => assert.fail() });
  const refusing = (message) => Promise.reject(refusal(message));

  test('no more than maxQueue calls wait, those given up included until the client lets go of them', async () => {
    const held = [];
    const client = fakeClient(() => new Promise((...settle) => held.push(settle)));
    const limiter = limiterOver(client, { maxQueue: 3, commandTimeout: SHORT });
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

  // Kills: an error whose own code throws, so that its calls never end.
  test.each([
    ['throws', () => assert.fail('sync'), 'UNREACHABLE'],
    ['rejects with nothing', () => Promise.reject(), 'UNREACHABLE'],
    ['rejects with a text', () => Promise.reject('no'), 'UNREACHABLE'],
    [
      'rejects with a DOMException',
      () => Promise.reject(new DOMException('stopped')),
      'UNREACHABLE',
    ],
    ['rejects with a symbol', () => failing(Symbol('why')), 'UNREACHABLE'],
    ['rejects with a bare object', () => Promise.reject(Object.create(null)), 'UNREACHABLE'],
    ['rejects with a getter', () => Promise.reject(throwingGetter), 'UNREACHABLE'],
    ['gives a fraction', async () => [0.5], 'REPLY'],
    ['knows no script, sent or not', () => refusing('NOSCRIPT No matching script'), 'REPLY'],
    ['says that its queue is full', () => failing('The queue is full'), 'QUEUE_FULL'],
    ['says that it waited too long', () => failing('Command timed out'), 'TIMEOUT'],
  ])('that %s', async (_what, answer, kind) => {
    const limiter = limiterOver(fakeClient(answer));
    const code = `ERR_ROLLGATE_REDIS_${kind}`;
    expect(await outcomeOf(limiter('a'))).toBe(code);
    expect((await new Promise((resolve) => limiter('a', resolve))).code).toBe(code);
    expect(limiter.stats().connection.unanswered).toBe(0);
  });

  test('whose server neither knows the script nor takes it is tried a few times by each command', async () => {
    const commands = 20;
    const client = fakeClient(([command]) =>
      refusing(command === 'evalsha' ? 'NOSCRIPT No matching script' : 'NOPERM no permissions'),
    );
    const limiter = limiterOver(client);
    const calls = Array.from({ length: 64 * commands }, (_, id) => outcomeOf(limiter(id)));
    const outcomes = await Promise.all(calls);
    expect(new Set(outcomes)).toEqual(new Set(['ERR_ROLLGATE_REDIS_AUTH']));
    expect(client.sent.length).toBeLessThan(commands * 10);
    expect(limiter.stats().connection).toMatchObject({ pending: 0, unanswered: 0 });
  });

  /** A cluster of two nodes, each of which serves every other slot; `answer(node)` is what they do. */
  function fakeCluster(answer) {
    const nodes = ['one:1', 'two:2'];
    const slots = Array.from({ length: 16_384 }, (_, i) => ({ master: { address: nodes[i % 2] } }));
    const nodeOf = (key) => slots[keySlot(key)].master.address;
    const sendCommand = async (key) => answer(nodeOf(key));
    return { ...fakeClient(), slots, masters: [], nodeClient() {}, nodes, nodeOf, sendCommand };
  }

  // Kills: a queue for each hash slot, or one for all nodes.
  test('of a cluster has a queue for each node, and one that hangs fills its own alone', async () => {
    const client = fakeCluster((node) => (node === 'one:1' ? new Promise(() => {}) : [0]));
    const limiter = limiterOver(client, { maxQueue: 5, commandTimeout: SHORT });
    const ids = Array.from({ length: 100 }, (_, i) => `id ${i}`);
    const [slow, quick] = client.nodes.map((node) =>
      ids.filter((id) => client.nodeOf(`{${id}}`) === node),
    );
    const FULL = 'ERR_ROLLGATE_REDIS_QUEUE_FULL';
    const ofSlow = await Promise.all(slow.map((id) => outcomeOf(limiter(id))));
    expect(ofSlow).toEqual([...Array(5).fill(TIMEOUT), ...Array(slow.length - 5).fill(FULL)]);
    for (const id of quick) expect(await outcomeOf(limiter(id))).toBe(0);
    expect(await outcomeOf(limiter.clear(slow[0]))).toBe(FULL);
  });

  test('of one server that is a node of a cluster is told what that takes, that of a cluster is not', async () => {
    const moved = () => refusing('MOVED 1 one:1');
    const messageOver = async (client) => (await errorOf(limiterOver(client)('a'))).message;
    expect(await messageOver(fakeClient(moved))).toContain('{ cluster: [its URL] }');
    expect(await messageOver(fakeCluster(moved))).not.toContain('cluster');
  });

  test('of node-redis that was never connected', async () => {
    for (const name of all ? ['redis', 'redis-5', 'redis-4'] : ['redis']) {
      const client = require(name).createClient({ url: 'redis://127.0.0.1:1' });
      const error = await errorOf(limiterOver(client)('a'));
      expect(error.code).toBe('ERR_ROLLGATE_REDIS_UNREACHABLE');
      expect(error.message).toContain('call its connect() first');
      expect(error.cause).toBeInstanceOf(Error);
    }
  });

  test('that was closed', async () => {
    const client = fakeClient(() => (client.isOpen ? [0] : failing('The client is closed')));
    const limiter = limiterOver(client);
    expect(await limiter('a')).toBe(0);
    client.isOpen = false;
    expect(await outcomeOf(limiter('a'))).toBe('ERR_ROLLGATE_REDIS_CLOSED');
  });

  test('a clear is not overlooked whose answer comes before that of an earlier question', async () => {
    const gated = await gatedClient(server.url);
    const limiter = limiterOver(gated.client, { interval: 60_000, maxInInterval: 1 });
    await limiter.attempt('a');
    const held = gated.holdReply();
    const waiting = limiter.wait('a');
    const release = await held;
    await limiter.clear('a');
    release();
    expect(await waiting).toMatchObject({ allowed: true });
    gated.close();
  });
});
