// What a request meets: the order of the steps, the property and the answer that it gets, and what it leaves in memory.
'use strict';

const RateLimiter = require('../..');
const { askProgram } = require('../support/run-program');
const { callDirectly, get, inTurn, useHandMovedClock } = require('./apps');

const { rateLimit } = RateLimiter;
const time = useHandMovedClock();

test('the steps are skip, key, attempt, request property, headers, handler', () => {
  const steps = [];
  const limiter = RateLimiter({ interval: 1000, maxInInterval: 1, clock: time.clock });
  const step = (name, result) => steps.push(name) && result;
  const attempt = (id) => step(`attempt ${id}`, limiter.attempt(id));
  const setHeader = (name) => name === 'Retry-After' && steps.push(name);
  const middleware = rateLimit({
    skip: () => step('skip', undefined),
    keyGenerator: () => step('key', 'k'),
    limiter: { attempt },
    handler: (req) => steps.push(`handler ${req.rateLimit.remaining}`),
  });
  for (let i = 0; i < 2; i++) middleware({}, { setHeader }, () => steps.push('next'));
  const once = ['skip', 'key', 'attempt k'];
  expect(steps).toEqual([...once, 'next', ...once, 'Retry-After', 'handler 0']);
});

test('the property of the request has the chosen name, and the older name of used', () => {
  const options = { requestPropertyName: 'quota', clock: time.clock };
  const { calls, returned, req } = callDirectly(rateLimit(options));
  expect([calls, returned]).toEqual([[[]], undefined]); // next() was called before it returned
  expect([req.quota.limit, req.quota.used, req.quota.current]).toEqual([5, 1, 1]);
  expect(req).not.toHaveProperty('rateLimit');
});

test('the handler gets the frozen settings', () => {
  const handler = jest.fn();
  callDirectly(rateLimit({ limit: 0, windowMs: 5000, handler }));
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
  const app = (req, res) => middleware(req, res, () => res.end());
  const { status, text, headers, body: bytes } = await get(app);
  const sent = Buffer.isBuffer(bytes) ? bytes.toString() : text;
  expect([status, sent, headers['content-type']]).toEqual([429, body, type]);
});

// Kills: the windows of a peek, which minDifference refuses.
test('getKey counts refusals that count, and no attempt of its own', async () => {
  const apart = { minDifference: 100, countBlocked: true };
  const middleware = rateLimit({ ...apart, limit: 3, clock: time.clock, handler() {} });
  const totals = await inTurn([1, 2, 3, 4], async () => {
    callDirectly(middleware);
    return (await middleware.getKey('192.0.2.1')).totalHits;
  });
  expect(totals).toEqual([1, 2, 3, 3]);
});

describe('limit as a function', () => {
  // Beside express-rate-limit it is a small number that differs from request to request.
  test('may be any number', () => {
    const limits = [1e300, 2 ** 53 - 1, 2 ** 32];
    const middleware = rateLimit({ limit: () => limits.shift() });
    const seen = [1, 2, 3].map(() => callDirectly(middleware).req.rateLimit.used);
    expect(seen).toEqual([1, 2, 3]);
  });

  test('is asked after the key', async () => {
    const steps = [];
    const keyGenerator = async () => steps.push('key') && 'k';
    const limit = async () => steps.push('limit');
    await callDirectly(rateLimit({ keyGenerator, limit })).returned;
    expect(steps).toEqual(['key', 'limit']);
  });
});

describe('memory', () => {
  test('a request that is counted without end keeps no old counts', async () => {
    const held = await askProgram(
      `const { rateLimit } = require('rollgate');
      const logger = { warn() {}, error() {} };
      const options = { keyGenerator: () => 'key', logger, limit: 50 };
      const both = [rateLimit(options), rateLimit({ ...options, validate: false })];
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
  });

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
