// What a request meets: the order of the steps, the rolling window, limiters from outside, limits by request.
'use strict';

const http = require('node:http');
const request = require('supertest');
const RateLimiter = require('../..');
const { askProgram } = require('../support/run-program');
const apps = require('./apps');

const { FAILING, appWith, callDirectly, get, getTimes, warningsDuring } = apps;
const { useHandMovedClock, withCode } = apps;
const { rateLimit } = RateLimiter;
const time = useHandMovedClock();

describe('the steps', () => {
  test('run in the order skip, key, attempt, request property, headers, handler', async () => {
    const steps = [];
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 1, clock: time.clock });
    const step = (name, result) => steps.push(name) && result;
    const attempt = (id) => step(`attempt ${id}`, limiter.attempt(id));
    const handler = (req, res) => {
      const sent = `${res.get('Retry-After')} ${res.get('X-RateLimit-Limit')}`;
      steps.push(`handler ${req.rateLimit.remaining} ${sent}`);
      res.end();
    };
    const skip = () => step('skip', undefined);
    const keyGenerator = () => step('key', 'k');
    await getTimes(appWith(rateLimit({ skip, keyGenerator, limiter: { attempt }, handler })), 2);
    const once = ['skip', 'key', 'attempt k'];
    expect(steps).toEqual([...once, ...once, 'handler 0 1 1']);
  });

  test('with a limiter in memory, next() is called before the middleware returns', () => {
    const { calls, returned, req } = callDirectly(rateLimit({ clock: time.clock }));
    expect([calls, returned, req.rateLimit.used]).toEqual([[[]], undefined, 1]);
  });

  // By default, refusals do not count.
  test.each([
    [undefined, [60, 60, 60, 60]],
    [true, [60, 0, 0, 0]],
  ])('a client a little above its limit, countBlocked %p, gets it: %p', (countBlocked, minutes) => {
    const handler = () => {};
    const options = { windowMs: 60_000, limit: 60, countBlocked, handler };
    const middleware = rateLimit({ ...options, clock: time.clock });
    const allowed = minutes.map(() => {
      let passed = 0;
      for (let ms = 0; ms < 60_000; ms += 900) {
        if (callDirectly(middleware).calls.length > 0) passed += 1;
        time.advance(900);
      }
      return passed;
    });
    expect(allowed).toEqual(minutes);
  });

  test('requests without an address share one count, with one warning', async () => {
    const middleware = rateLimit({ limit: 2, clock: time.clock, handler: () => {} });
    const usedBy = (req) => callDirectly(middleware, req).req.rateLimit.used;
    const codes = await warningsDuring(() => {
      expect([{}, { socket: {} }, { socket: {} }].map(usedBy)).toEqual([1, 2, 2]);
    });
    expect(codes).toEqual(['ROLLGATE_NO_CLIENT_IP']);
  });

  test('the property of the request has the chosen name, and the older name of used', () => {
    const { req } = callDirectly(rateLimit({ requestPropertyName: 'quota', clock: time.clock }));
    expect([req.quota.limit, req.quota.used, req.quota.current]).toEqual([5, 1, 1]);
    expect(req).not.toHaveProperty('rateLimit');
  });

  test('the handler gets the frozen settings', async () => {
    const handler = jest.fn((_req, res) => res.end());
    await get(appWith(rateLimit({ limit: 0, windowMs: 5000, handler })));
    const settings = handler.mock.calls[0][3];
    expect(settings).toMatchObject({ limit: 0, windowMs: 5000, statusCode: 429 });
    expect(Object.isFrozen(settings)).toBe(true);
  });

  test.each([
    ['too fast', 'too fast', 'text/plain; charset=utf-8'],
    [{ error: 'too fast' }, '{"error":"too fast"}', 'application/json; charset=utf-8'],
    [Buffer.from('too fast'), 'too fast', 'application/octet-stream'],
  ])('without res.send, the message %j is sent', async (message, body, type) => {
    const middleware = rateLimit({ limit: 0, message, clock: time.clock });
    const server = http.createServer((req, res) => middleware(req, res, () => res.end()));
    const { status, text, headers, body: bytes } = await request(server).get('/');
    const sent = Buffer.isBuffer(bytes) ? bytes.toString() : text;
    expect([status, sent, headers['content-type']]).toEqual([429, body, type]);
  });
});

describe('getKey', () => {
  test.each([true, false])('counts what is counted, countBlocked: %p', async (countBlocked) => {
    for (const minDifference of [0, 100]) {
      const options = { limit: 3, countBlocked, minDifference, clock: time.clock };
      const middleware = rateLimit(options);
      const app = appWith(middleware);
      const totals = [];
      for (let i = 0; i < 5; i++) {
        await get(app);
        totals.push((await middleware.getKey('127.0.0.1')).totalHits);
      }
      const expected = minDifference === 0 || countBlocked ? [1, 2, 3, 3, 3] : [1, 1, 1, 1, 1];
      expect(totals).toEqual(expected);
    }
  });

  test('has no answer at limit 0', async () => {
    const middleware = rateLimit({ limit: 0 });
    expect(await middleware.getKey('127.0.0.1')).toBeUndefined();
    await expect(middleware.resetKey('127.0.0.1')).resolves.toBeUndefined();
  });
});

describe('limit as a function', () => {
  const byHeader = (req) => Number(req.headers['x-limit']);

  function appOf(options) {
    const middleware = rateLimit({ standardHeaders: 'draft-7', ...options });
    const app = appWith(middleware, (req, res) => res.json(req.rateLimit));
    return (limit, path) => get(app, path, { 'x-limit': String(limit) });
  }

  test.each([
    ['limit', byHeader],
    ['max', async (req) => byHeader(req)],
  ])('%s: one count, judged by the limit of each request', async (name, limitOf) => {
    const ask = appOf({ [name]: limitOf, countBlocked: false });
    expect((await ask(2)).body).toMatchObject({ limit: 2, used: 1, remaining: 1 });
    expect((await ask(5)).body).toMatchObject({ limit: 5, used: 2, remaining: 3 });
    const { status, headers } = await ask(2);
    expect([status, headers['x-ratelimit-limit'], headers['ratelimit-policy']]).toEqual([
      429,
      '2',
      '2;w=60',
    ]);
    expect((await ask(3)).body).toMatchObject({ limit: 3, used: 3, remaining: 0 });
    for (const limit of [1, 0]) expect((await ask(limit)).status).toBe(429);
    for (const limit of [1e300, 2 ** 53 - 1, 2 ** 32]) expect((await ask(limit)).status).toBe(200);
  });

  test('getKey and resetKey know the whole count', async () => {
    const middleware = rateLimit({ limit: byHeader, countBlocked: false });
    for (const limit of [3, 3, 3, 1]) {
      callDirectly(middleware, { ip: '192.0.2.1', headers: { 'x-limit': limit } });
    }
    expect(await middleware.getKey('192.0.2.1')).toMatchObject({ totalHits: 3 });
    await middleware.resetKey('192.0.2.1');
    expect(await middleware.getKey('192.0.2.1')).toBe(undefined);
  });

  test('is asked after the key', async () => {
    const steps = [];
    const keyGenerator = async () => steps.push('key') && 'k';
    await get(appWith(rateLimit({ keyGenerator, limit: async () => steps.push('limit') })));
    expect(steps).toEqual(['key', 'limit']);
  });

  test.each([
    ['returns a string', () => '5', withCode('ERR_ROLLGATE_LIMIT'), 'TypeError'],
    ['returns nothing', () => undefined, withCode('ERR_ROLLGATE_LIMIT'), 'TypeError'],
    ['returns less than 0', () => -1, withCode('ERR_ROLLGATE_LIMIT'), 'RangeError'],
    ['returns NaN later', async () => Number.NaN, withCode('ERR_ROLLGATE_LIMIT'), 'RangeError'],
    ...FAILING(Object.assign(new Error('boom'), { code: 'BOOM' })).map(([what, limit]) => {
      return [what, limit, withCode('BOOM'), 'Error'];
    }),
  ])('that %s is one error for next', async (_what, limit, error, name) => {
    for (const more of [
      { limit },
      { limit, passOnStoreError: true },
      { rules: [{ path: '/', limit }] },
    ]) {
      const req = { method: 'GET', url: '/', ip: '192.0.2.1', headers: {} };
      const { calls, returned } = callDirectly(rateLimit(more), req);
      await returned;
      expect(calls).toEqual([[error]]);
      expect(calls[0][0].name).toBe(name);
    }
  });
});

describe('memory', () => {
  test.each([true, false])(
    'a request that is counted without end keeps no old counts, validate: %p',
    async (validate) => {
      const held = await askProgram(
        `const { rateLimit } = require('rollgate');
        const logger = { warn() {}, error() {} };
        const options = { keyGenerator: () => 'key', logger, limit: 50, validate: ${validate} };
        const both = [rateLimit(options), rateLimit(options)];
        const [req, earlier] = [{}, []];
        for (let i = 0; i < 50; i++) {
          for (const middleware of both) {
            middleware(req, { headersSent: true }, () => {});
            earlier.push(new WeakRef(req.rateLimit));
          }
        }
        (async () => {
          for (let i = 0; i < 10; i++) await new Promise(setImmediate), gc();
          console.log(earlier.filter((ref) => ref.deref() !== undefined).length);
          if (req.rateLimit === undefined) throw new Error('it was not counted');
        })();`,
        { flags: ['--expose-gc'] },
      );
      expect(held).toBeLessThanOrEqual(4); // one for each middleware, and the frame of the last call
    },
  );

  test.each([
    [
      'a partition key',
      "const use = require('./lib/adapters/middleware/header-cache').partitionKey;",
    ],
    [
      'a store for express-rate-limit',
      `const store = new (require('rollgate/store'))();
      store.init({ windowMs: 60_000, limit: 5 });
      const use = (key) => store.increment(key);`,
    ],
  ])('%s does not keep the long header that its key was cut from', async (_what, source) => {
    const [clients, bytes] = [2000, 15_000];
    const grown = await askProgram(
      `${source}
      const header = (i) => i + ',' + Buffer.alloc(${bytes}, 'x').toString('latin1');
      const keyOf = (i) => header('client-number-' + i).split(',')[0];
      const heap = () => (gc(), gc(), process.memoryUsage().heapUsed);
      (async () => {
        await use('the first');
        const before = heap();
        for (let i = 0; i < ${clients}; i++) await use(keyOf(i));
        console.log(heap() - before);
        await use('the last');
      })();`,
      { flags: ['--expose-gc'] },
    );
    expect(grown).toBeLessThan((clients * bytes) / 5);
  });
});
