// Middleware, plugins and stores that count requests in regions of shared memory.
'use strict';

const fs = require('node:fs');
const express = require('express');
const expressRateLimit = require('express-rate-limit').rateLimit;
const request = require('supertest');
const RateLimiter = require('../..');
const { RollgateStore } = require('../../lib/adapters/express-rate-limit-store');
const rollgate = require('../../lib/adapters/fastify');
const { partOfRegion } = require('../../lib/stores/shared/region');
const { useFastify } = require('../middleware/apps');
const { catchError } = require('../support/set-up');
const { filesOf, newName } = require('../support/shared-regions');

const { rateLimit } = RateLimiter;
const SMALL = { maxKeys: 50, windowMs: 60_000 };
const SMALL_LIMITS = { maxKeys: 50, interval: 60_000, maxInInterval: 2 };

/** An app with these middleware, as each of several processes has one. */
function appWith(...middleware) {
  const app = express();
  for (const each of middleware) app.use(each);
  app.use((_req, res) => res.send('through'));
  return app;
}

async function statusesOf(apps, path = '/') {
  const statuses = [];
  for (const app of apps) statuses.push((await request(app).get(path)).status);
  return statuses;
}

test('two middleware that count one request in one region are told of it', async () => {
  const shared = newName();
  const logger = { warn: jest.fn(), error: jest.fn() };
  const regions = [shared, { name: shared }, newName()];
  const limits = regions.map((each) => rateLimit({ ...SMALL, shared: each, limit: 5, logger }));
  expect(await statusesOf([appWith(...limits)])).toEqual([200]);
  const codes = logger.warn.mock.calls.map(([{ code }]) => code);
  expect(codes).toEqual(['ROLLGATE_DOUBLE_COUNT']);
});

describe('rules', () => {
  const rules = [
    { path: '/a', limit: 1 },
    { path: '/b', limit: 3, algorithm: 'gcra' },
    { path: '/c', limit: 1, zone: 'z: ä/{}' },
    { path: '/d', limit: 1, zone: 'z: ä/{}' },
    { path: '/e', limit: 1, perPath: true },
    { path: '/f', limit: 1, blockFor: 30_000, blockEverywhere: true },
  ];
  const appFor = (shared, list = rules) => appWith(rateLimit({ maxKeys: 50, rules: list, shared }));

  test('have regions of their own, the same in every process and in any order', async () => {
    const shared = newName();
    const [one, other] = [rules, [...rules].reverse()].map((list) => appFor(shared, list));
    expect(await statusesOf([one, other], '/a')).toEqual([200, 429]);
    expect(await statusesOf([one, other, one, other], '/b')).toEqual([200, 200, 200, 429]);
    expect([...(await statusesOf([one], '/c')), ...(await statusesOf([other], '/d'))]).toEqual([
      200, 429,
    ]);
    expect(await statusesOf([one, other], '/e/1')).toEqual([200, 429]);
    expect(await statusesOf([other], '/e/2')).toEqual([200]);
    expect(await statusesOf([one, other], '/f')).toEqual([200, 429]);
    expect(await statusesOf([one], '/e/3')).toEqual([429]); // blocked everywhere
    expect(filesOf(shared)).toHaveLength(6);
    for (const file of filesOf(shared)) expect(file).toMatch(/\+[\w-]{16}$/);
  });

  test('are removed with the name that theirs are made of, and those of other names stay', async () => {
    const shared = newName();
    const app = appFor(shared);
    for (const path of ['/a', '/b']) await statusesOf([app], path);
    const hash = filesOf(shared)[0].slice(-16);
    const others = ['-foo', `-${hash}`, `.${hash}`, 'x'].map((end) => `${shared}${end}`);
    for (const name of others) RateLimiter({ ...SMALL_LIMITS, shared: name })('a');
    // Neither of these is the file of a region.
    const foreign = [`${shared}+short`, `${shared}+${hash}.bak`].map((name) => {
      return filesOf(shared)[0].replace(/[^/]*$/, `rollgate-${process.geteuid()}-${name}`);
    });
    for (const file of foreign) fs.writeFileSync(file, '');
    try {
      expect(RateLimiter.unlinkShared(shared)).toBe(true);
      expect(RateLimiter.unlinkShared(shared)).toBe(false);
      expect(filesOf(shared)).toEqual(
        [...others.flatMap((name) => filesOf(name)), ...foreign].sort(),
      );
    } finally {
      for (const file of foreign) fs.rmSync(file);
    }
    expect(await statusesOf([appFor(shared)], '/a')).toEqual([200]);
  });

  test('of a part are removed with it, and one that cannot be keeps no other', async () => {
    const shared = newName();
    const part = partOfRegion(shared, 'route');
    const app = appFor(part);
    for (const path of ['/a', '/b']) await statusesOf([app], path);
    RateLimiter({ ...SMALL_LIMITS, shared })('a');
    expect(RateLimiter.unlinkShared(part)).toBe(true);
    expect(filesOf(shared)).toHaveLength(1);
    await statusesOf([appFor(part)], '/a');
    const [own, ofRule] = filesOf(shared);
    const link = `${own}+${'a'.repeat(16)}`;
    fs.symlinkSync(own, link);
    try {
      const error = catchError(() => RateLimiter.unlinkShared(shared));
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_SHARED_FILE' });
      expect([own, ofRule, link].map((file) => fs.existsSync(file))).toEqual([false, false, false]);
      expect(fs.lstatSync(link).isSymbolicLink()).toBe(true);
    } finally {
      fs.rmSync(link);
    }
  });

  test.each([{}, { name: 5 }, 5, null])(
    'are refused where the option is %p, not the name of one',
    (shared) => {
      const error = catchError(() => rateLimit({ rules, shared }));
      expect(error).toMatchObject({ code: 'ERR_ROLLGATE_OPTION' });
      expect(error.message).toMatch(/^rateLimit: option 'shared(\.name)?': expected a name/);
    },
  );

  test('are in the directory of the option, be it inherited', () => {
    const option = { name: 'inherited', directory: '/tmp', maxKeys: 10, room: 200 };
    const name = expect.stringMatching(/^inherited[+]/);
    expect(partOfRegion(Object.create(option), 'zone')).toEqual({ ...option, name });
  });

  test('take names that leave room for those of their regions', () => {
    const list = [{ path: '/', limit: 1 }];
    expect(typeof rateLimit({ rules: list, shared: 'x'.repeat(183) })).toBe('function');
    const error = catchError(() => rateLimit({ rules: list, shared: 'x'.repeat(184) }));
    expect(error).toBeInstanceOf(RangeError);
    expect(error.message).toMatch(
      /^rateLimit: option 'shared': expected a name of at most 183 characters/,
    );
  });
});

describe('with Fastify', () => {
  const { newApp, serve } = useFastify();

  test('a route may have another store in place of the one of its scope', async () => {
    const [shared, own] = [newName(), newName()];
    const app = newApp();
    app.register(rollgate, { ...SMALL, shared, limit: 2 });
    const rateLimit = { limit: 1, shared: { name: own, maxKeys: 50 } };
    app.get('/', { config: { rateLimit } }, () => 'through');
    const at = await serve(app);
    expect([(await fetch(at)).status, (await fetch(at)).status]).toEqual([200, 429]);
    expect([filesOf(shared).length, filesOf(own).length]).toEqual([0, 1]);
  });
});

test('stores of express-rate-limit count together with those of their name, and say so', async () => {
  const shared = newName();
  const stores = [1, 2].map(() => new RollgateStore({ shared, maxKeys: 50 }));
  const apps = stores.map((store) =>
    appWith(expressRateLimit({ windowMs: 60_000, limit: 2, store })),
  );
  expect(await statusesOf([...apps, ...apps])).toEqual([200, 200, 429, 429]);
  expect(stores.map(({ localKeys }) => localKeys)).toEqual([false, false]);
  expect(stores[0].prefix).toBe(stores[1].prefix);
  const elsewhere = new RollgateStore({ shared: { name: shared, directory: '/tmp' } });
  expect(elsewhere.prefix).not.toBe(stores[0].prefix);
});
