// Rules over a real Redis server: one count for all processes, each zone in a namespace of its own.
'use strict';

const express = require('express');
const Redis = require('ioredis');
const request = require('supertest');
const { rateLimit } = require('../..');
const { startRedis } = require('../support/redis-server');

const MINUTE_MS = 60_000;
const START_MS = 5_000_000;

describe('rules over Redis', () => {
  let server;
  let client;
  let namespaces = 0;

  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.url);
  });
  beforeEach(async () => {
    namespaces += 1;
    await server.command('FLUSHALL');
  });
  afterAll(() => client.disconnect());

  const authenticate = async (req) => ({ id: req.headers['x-id'], group: req.headers['x-group'] });

  /** An app as each of several processes has one; `clock` is the hand of all. */
  function appOf(rules, options) {
    const namespace = `rules-${namespaces}`;
    const middleware = rateLimit({ redis: server.url, namespace, authenticate, rules, ...options });
    const app = express();
    app.use(middleware);
    app.use((req, res) => res.json(req.rateLimit ?? null));
    app.use((error, _req, res, _next) => res.status(500).json({ code: error.code }));
    const statuses = async (...paths) => {
      const found = [];
      for (const path of paths) {
        found.push((await request(app).get(path).set('x-id', 'ada')).status);
      }
      return found;
    };
    return { app, middleware, statuses };
  }

  const namespacesInRedis = async () => {
    const keys = await server.command('KEYS', '*');
    return [...new Set(keys.map((key) => key.slice(0, key.indexOf('{'))))].sort();
  };

  test('processes count together, whatever the order of their rules', async () => {
    const rules = [
      { path: '/a', limit: 2 },
      { path: /^\/r/i, method: ['PUT', 'GET'], limit: 2 },
      { path: '/z', limit: 2, zone: 'shared {z}' },
      { path: '/p', limit: 2, perPath: true },
    ];
    const one = appOf(rules);
    const other = appOf([...rules.reverse(), { path: '/new', limit: 9 }]);
    for (const path of ['/a', '/r', '/z', '/p/1']) {
      expect(await one.statuses(path)).toEqual([200]);
      expect(await other.statuses(path, path)).toEqual([200, 429]);
      expect(await one.statuses(path)).toEqual([429]);
    }
    expect(await one.statuses('/p/2')).toEqual([200]);
    const start = `rules-${namespaces}`;
    const found = await namespacesInRedis();
    const shapes = found.map((name) => name.replace(/rule:[\w-]{16}(?![\w-])/, 'rule:#'));
    expect(shapes.sort()).toEqual([
      `${start}:rule:#`,
      `${start}:rule:#`,
      `${start}:rule:#:paths`,
      `${start}:zone:shared%20%7Bz%7D`,
    ]);
  });

  test('zones and rules of other names never meet', async () => {
    const names = ['a', 'b', 'A', 'a:paths', 'a b', 'a%20b', 'ä'];
    const rules = names.map((zone, i) => ({ path: `/${i}`, zone, limit: 1 }));
    const perPath = { path: '/path', zone: 'a', limit: 1, perPath: true };
    const { statuses } = appOf([...rules, perPath]);
    const paths = [...names.map((_zone, i) => `/${i}`), '/path'];
    expect(await statuses(...paths)).toEqual(paths.map(() => 200));
    expect(await statuses(...paths)).toEqual(paths.map(() => 429));
    expect(await namespacesInRedis()).toHaveLength(paths.length);
  });

  test('the key of a path is short, however long the path', async () => {
    const { statuses } = appOf([{ path: '/', limit: 1, perPath: true }]);
    const long = `/${'x'.repeat(9000)}`;
    expect(await statuses(long, `${long}y`, long)).toEqual([200, 200, 429]);
    for (const key of await server.command('KEYS', '*')) expect(key.length).toBeLessThan(120);
  });

  test('a client of yours serves every zone', async () => {
    const { statuses } = appOf(
      [
        { path: '/a', limit: 1 },
        { path: '/b', limit: 1, blockFor: MINUTE_MS, blockEverywhere: true },
      ],
      { redis: client },
    );
    expect(await statuses('/a', '/b', '/a', '/b', '/a')).toEqual([200, 200, 429, 429, 429]);
    const list = await server.command('CLIENT', 'LIST');
    expect(list.match(/lib-name=ioredis/g)?.length ?? 1).toBe(1);
  });

  test.each(['native', 'ioredis'])(
    'blockEverywhere by %s: a client is refused on every rule of every process',
    async (kind) => {
      const hand = { now: START_MS };
      const options = { clock: () => hand.now, ...(kind === 'ioredis' && { redis: client }) };
      const block = { blockFor: MINUTE_MS, blockEverywhere: true };
      const one = appOf([{ path: '/login', limit: 1, windowMs: 1000, ...block }], options);
      const other = appOf(
        [
          { path: '/trap', limit: 0, blockFor: 5 * MINUTE_MS, blockEverywhere: true },
          { path: '/x', limit: 2, windowMs: 1000, ...block },
        ],
        options,
      );
      expect(await one.statuses('/login', '/login')).toEqual([200, 429]);
      expect(await other.statuses('/x')).toEqual([429]);
      hand.now += MINUTE_MS - 1;
      expect(await other.statuses('/x')).toEqual([429]);
      hand.now += 1;
      expect(await other.statuses('/x', '/trap', '/x')).toEqual([200, 429, 429]);
      await other.middleware.resetKey('ada');
      expect(await other.statuses('/x')).toEqual([200]);
    },
  );

  test.each(['native', 'ioredis'])(
    'a block that a rule on trial began is recorded by %s for what is left, whoever asks at once',
    async (kind) => {
      const hand = { now: START_MS };
      const options = { clock: () => hand.now, ...(kind === 'ioredis' && { redis: client }) };
      const rule = {
        limit: 1,
        windowMs: 1000,
        zone: 'z',
        blockFor: MINUTE_MS,
        blockEverywhere: true,
      };
      const { statuses } = appOf(
        [
          { path: '/new', ...rule, shadow: true },
          { path: '/login', ...rule },
          { path: '/x', limit: 100 },
        ],
        options,
      );
      expect(await statuses('/new', '/new', '/x')).toEqual([200, 200, 200]);
      hand.now += MINUTE_MS - 10_000;
      const answers = await Promise.all(Array.from({ length: 8 }, () => statuses('/login')));
      expect(answers.flat()).toEqual(answers.map(() => 429));
      hand.now += 10_000 - 1;
      expect(await statuses('/x')).toEqual([429]);
      hand.now += 1;
      expect(await statuses('/x', '/login')).toEqual([200, 200]);
    },
  );

  test('blockEverywhere grows with the list of lengths', async () => {
    const hand = { now: START_MS };
    const lengths = [1000, 5000];
    const limit = { limit: 1, windowMs: 30 * MINUTE_MS };
    const { statuses } = appOf(
      [
        { path: '/login', ...limit, blockFor: lengths, blockEverywhere: true },
        { path: '/', limit: 1000 },
      ],
      { clock: () => hand.now },
    );
    await statuses('/login');
    for (const length of [...lengths, 5000]) {
      expect(await statuses('/', '/login', '/')).toEqual([200, 429, 429]);
      hand.now += length - 1;
      expect(await statuses('/')).toEqual([429]);
      hand.now += 1;
    }
  });

  test('5 per second, 100 per minute and 1000 per hour at once; refusals do not count', async () => {
    const hand = { now: START_MS };
    const limits = [
      { interval: 1000, maxInInterval: 5 },
      { interval: MINUTE_MS, maxInInterval: 100 },
      { interval: 60 * MINUTE_MS, maxInInterval: 1000 },
    ];
    const { middleware } = appOf([{ path: '/multiple', countBlocked: false, limits }], {
      clock: () => hand.now,
      legacyHeaders: false,
    });
    const attempt = async () => {
      let passed = 0;
      const req = { method: 'GET', url: '/multiple', headers: { 'x-id': 'ada' } };
      await middleware(req, { headersSent: true, end() {} }, (error) => {
        if (error) throw error;
        passed = 1;
      });
      return passed;
    };
    /** Seven requests at once in each second: two are refused and leave no trace. */
    const run = async (seconds) => {
      let passed = 0;
      for (let s = 0; s < seconds; s++, hand.now += 1000) {
        const answers = await Promise.all(Array.from({ length: 7 }, attempt));
        passed += answers.reduce((sum, one) => sum + one, 0);
      }
      return passed;
    };
    expect(await run(1)).toBe(5);
    expect(await run(19)).toBe(95);
    expect(await run(40)).toBe(0); // the minute is full
    expect(await run(60)).toBe(100);
    expect(await run(8 * 60)).toBe(800);
    expect(await run(5 * 60)).toBe(0); // the hour is full
    hand.now += 45 * MINUTE_MS;
    expect(await run(60)).toBe(100);
  });

  test('getKey tells the zone with the least left', async () => {
    const { middleware, statuses } = appOf([
      { path: '/a', limit: 9 },
      { path: '/b', limit: 3 },
    ]);
    expect(await middleware.getKey('ada')).toBe(undefined);
    await statuses('/a', '/a', '/a', '/b', '/b');
    expect(await middleware.getKey('ada')).toMatchObject({ totalHits: 2 });
    await middleware.resetKey('ada');
    expect(await middleware.getKey('ada')).toBe(undefined);
  });

  test('without the server requests fail, or pass with passOnStoreError', async () => {
    const gone = await startRedis();
    const rules = [{ path: '/', limit: 1, blockFor: 5, blockEverywhere: true }];
    const logger = { warn: jest.fn(), error: jest.fn() };
    const failing = appOf(rules, { redis: gone.url });
    const passing = appOf(rules, { redis: gone.url, passOnStoreError: true, logger });
    const deciding = appOf(rules, { redis: gone.url, onError: 'memory' });
    await gone.stop();
    expect(await failing.statuses('/')).toEqual([500]);
    expect(await passing.statuses('/')).toEqual([200]);
    expect(logger.error).toHaveBeenCalledTimes(1);
    expect(await deciding.statuses('/', '/')).toEqual([200, 429]);
  });
});
