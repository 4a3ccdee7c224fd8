// What a request meets: the order of the steps, the headers of a rolling window, limiters given from outside.
'use strict';

const http = require('node:http');
const express = require('express');
const request = require('supertest');
const RateLimiter = require('../..');
const { START_MS, useHandMovedClock, appWith, get, getTimes } = require('./apps');

const { rateLimit } = RateLimiter;
const time = useHandMovedClock();
const statuses = (answers) => answers.map(({ status }) => status);

/** A limiter in the shape of a remote store: it answers with promises. */
function asRemote(limiter) {
  return {
    attempt: async (id) => limiter.attempt(id),
    peek: async (id) => limiter.peek(id),
    clear: (id) => limiter.clear(id),
  };
}

/** Calls a middleware outside of any server; what it did before it returned. */
function callDirectly(middleware, req = { ip: '192.0.2.1' }) {
  const headers = {};
  const res = { headersSent: false, setHeader: (name, value) => (headers[name] = value) };
  const calls = [];
  const returned = middleware(req, res, (...args) => calls.push(args));
  return { req, headers, calls, returned };
}

describe('the steps', () => {
  test('run in the order skip, key, attempt, request property, headers, handler', async () => {
    const steps = [];
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 1, clock: time.clock });
    const app = appWith(
      rateLimit({
        skip: () => {
          steps.push('skip');
        },
        keyGenerator: () => {
          steps.push('key');
          return 'k';
        },
        limiter: {
          attempt: (id) => {
            steps.push(`attempt ${id}`);
            return limiter.attempt(id);
          },
        },
        handler: (req, res) => {
          const { remaining } = req.rateLimit;
          steps.push(
            `handler ${remaining} ${res.get('Retry-After')} ${res.get('X-RateLimit-Limit')}`,
          );
          res.end();
        },
      }),
    );
    await getTimes(app, 2);
    const once = ['skip', 'key', 'attempt k'];
    expect(steps).toEqual([...once, ...once, 'handler 0 1 1']);
  });

  test('a skipped request is not counted and gets no headers', async () => {
    const app = appWith(
      rateLimit({ limit: 1, clock: time.clock, skip: (req) => req.get('x-skip') === 'yes' }),
    );
    const skipped = await get(app).set('x-skip', 'yes');
    expect(skipped.status).toBe(200);
    expect(skipped.headers).not.toHaveProperty('x-ratelimit-limit');
    expect(statuses(await getTimes(app, 2))).toEqual([200, 429]);
  });

  test('with a limiter in memory next() is called before the middleware returns, without a promise', () => {
    const { calls, returned, req } = callDirectly(rateLimit({ clock: time.clock }));
    expect(calls).toEqual([[]]);
    expect(returned).toBeUndefined();
    expect(req.rateLimit.used).toBe(1);
  });

  test('each client has a count of its own, and each key a generator gives', async () => {
    const middleware = rateLimit({ limit: 1, clock: time.clock });
    const client = (ip) => callDirectly(middleware, { ip }).req.rateLimit;
    expect(client('192.0.2.1').remaining).toBe(0);
    expect(client('192.0.2.2').used).toBe(1);
    expect(client('2001:db8::1').key).toBe('2001:db8::/56');
    expect(
      callDirectly(middleware, { socket: { remoteAddress: '::ffff:192.0.2.3' } }).req.rateLimit.key,
    ).toBe('192.0.2.3');
  });

  test('requests without an address share one count, and that is said once', () => {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    try {
      const middleware = rateLimit({ limit: 2, clock: time.clock, handler: () => {} });
      const used = [{}, { socket: {} }, { socket: {} }].map(
        (req) => callDirectly(middleware, req).req.rateLimit.used,
      );
      expect(used).toEqual([1, 2, 2]);
      expect(warn).toHaveBeenCalledTimes(1);
      expect(warn.mock.calls[0][1].code).toBe('ROLLGATE_NO_CLIENT_IP');
    } finally {
      warn.mockRestore();
    }
  });

  test('the property of the request has the name that was asked for', async () => {
    const { req } = callDirectly(rateLimit({ requestPropertyName: 'quota', clock: time.clock }));
    expect(req.quota.limit).toBe(5);
    expect(req).not.toHaveProperty('rateLimit');
  });

  test('the handler gets the settings, frozen', async () => {
    let settings;
    const handler = (_req, res, _next, given) => {
      settings = given;
      res.end();
    };
    await get(appWith(rateLimit({ limit: 0, windowMs: 5000, handler })));
    expect(settings).toMatchObject({ limit: 0, windowMs: 5000, statusCode: 429 });
    expect(Object.isFrozen(settings)).toBe(true);
  });
});

describe('the rolling window', () => {
  test('refuses until Retry-After is over and lets pass exactly then', async () => {
    const options = { windowMs: 10_000, limit: 2, countBlocked: false, clock: time.clock };
    const app = appWith(rateLimit(options));
    await get(app);
    time.advance(4000);
    await get(app);
    time.advance(1000);
    expect((await get(app)).headers['retry-after']).toBe('5');
    time.advance(4999);
    expect((await get(app)).headers['retry-after']).toBe('1');
    time.advance(1);
    const answer = await get(app);
    expect(answer.status).toBe(200);
    // The action at 4 s is the oldest now: it leaves at 14 s, and this is second 10.
    expect(answer.headers['x-ratelimit-reset']).toBe(String(Math.ceil((START_MS + 14_000) / 1000)));
  });

  test('counts refusals unless told otherwise', async () => {
    const play = async (countBlocked) => {
      const app = appWith(rateLimit({ windowMs: 1000, limit: 1, countBlocked, clock: time.clock }));
      const answers = await getTimes(app, 1);
      time.advance(600);
      answers.push(await get(app));
      time.advance(600);
      answers.push(await get(app));
      return statuses(answers);
    };
    expect(await play(undefined)).toEqual([200, 429, 429]);
    expect(await play(false)).toEqual([200, 429, 200]);
  });

  test('several windows: a policy each, the numbers of the tightest one', async () => {
    const limits = [
      { interval: 1000, maxInInterval: 2 },
      { interval: 60_000, maxInInterval: 3 },
    ];
    const app = appWith(
      rateLimit({ limits, countBlocked: false, standardHeaders: true, clock: time.clock }),
    );
    const shown = async () => {
      const { status, headers } = await get(app);
      return [
        status,
        headers['ratelimit-limit'],
        headers['ratelimit-remaining'],
        headers['ratelimit-reset'],
        headers['retry-after'],
      ];
    };
    expect(await shown()).toEqual([200, '2', '1', '1', undefined]);
    expect(await shown()).toEqual([200, '2', '0', '1', undefined]);
    expect(await shown()).toEqual([429, '2', '0', '1', '1']);
    time.advance(1000);
    expect(await shown()).toEqual([200, '3', '0', '59', undefined]);
    expect(await shown()).toEqual([429, '3', '0', '59', '59']);
    expect((await get(app)).headers['ratelimit-policy']).toBe('2;w=1, 3;w=60');
  });

  test('minDifference refuses while the window has room left', async () => {
    const app = appWith(rateLimit({ limit: 5, minDifference: 1500, clock: time.clock }));
    const [first, second] = await getTimes(app, 2);
    expect([first.status, second.status]).toEqual([200, 429]);
    expect(second.headers['retry-after']).toBe('2');
  });

  test('Retry-After needs some rate-limit headers', async () => {
    const limited = { limit: 0, clock: time.clock };
    const bare = await get(appWith(rateLimit({ ...limited, legacyHeaders: false })));
    expect(bare.headers).not.toHaveProperty('retry-after');
    const draft6 = { ...limited, legacyHeaders: false, standardHeaders: 'draft-6' };
    expect((await get(appWith(rateLimit(draft6)))).headers['retry-after']).toBe('60');
  });
});

describe('a limiter from outside', () => {
  test('is shared between middleware and with the rest of the application', async () => {
    const limiter = RateLimiter({ interval: 1000, maxInInterval: 3, clock: time.clock });
    const [one, other] = [appWith(rateLimit({ limiter })), appWith(rateLimit({ limiter }))];
    await get(one);
    await get(other);
    expect(limiter('127.0.0.1')).toBe(0);
    expect((await get(one)).status).toBe(429);
  });

  test('may answer with promises', async () => {
    const limiter = asRemote(RateLimiter({ interval: 1000, maxInInterval: 1, clock: time.clock }));
    const middleware = rateLimit({ limiter, standardHeaders: true });
    const app = appWith(middleware);
    const [first, second] = await getTimes(app, 2);
    expect([first.status, second.status]).toEqual([200, 429]);
    expect(second.headers).toMatchObject({ 'ratelimit-policy': '1;w=1', 'retry-after': '1' });
    expect(await middleware.getKey('127.0.0.1')).toMatchObject({ totalHits: 1 });
    await middleware.resetKey('127.0.0.1');
    expect(await middleware.getKey('127.0.0.1')).toBeUndefined();
    expect((await get(app)).status).toBe(200);
  });

  test('concurrent requests get no more than the limit between them', async () => {
    const limiter = asRemote(RateLimiter({ interval: 1000, maxInInterval: 4, clock: time.clock }));
    const server = appWith(rateLimit({ limiter })).listen(0, '127.0.0.1');
    try {
      const answers = await Promise.all(Array.from({ length: 12 }, () => request(server).get('/')));
      expect(statuses(answers).filter((status) => status === 200)).toHaveLength(4);
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });
});

describe('getKey', () => {
  test('tells what is counted, with and without counted refusals', async () => {
    for (const countBlocked of [true, false]) {
      const middleware = rateLimit({ limit: 3, countBlocked, clock: time.clock });
      const app = appWith(middleware);
      const totals = [];
      for (let i = 0; i < 5; i++) {
        await get(app);
        totals.push((await middleware.getKey('127.0.0.1')).totalHits);
      }
      expect(totals).toEqual([1, 2, 3, 3, 3]);
    }
  });

  test('is right where minDifference would refuse', async () => {
    for (const countBlocked of [true, false]) {
      const middleware = rateLimit({
        limit: 5,
        minDifference: 100,
        countBlocked,
        clock: time.clock,
      });
      await get(appWith(middleware));
      expect(await middleware.getKey('127.0.0.1')).toMatchObject({ totalHits: 1 });
    }
  });

  test('tells when quota grows, not what an attempt would make of it', async () => {
    const middleware = rateLimit({ limit: 1, windowMs: 60_000, clock: time.clock });
    await get(appWith(middleware));
    time.advance(59_000);
    const { resetTime } = await middleware.getKey('127.0.0.1');
    expect(resetTime.getTime() - Date.now()).toBe(1000);
  });

  test('asks without counting', async () => {
    const middleware = rateLimit({ limit: 1, clock: time.clock });
    expect(await middleware.getKey('127.0.0.1')).toBeUndefined();
    expect((await get(appWith(middleware))).status).toBe(200);
  });

  test('has nothing to tell at limit 0', async () => {
    const middleware = rateLimit({ limit: 0 });
    expect(await middleware.getKey('127.0.0.1')).toBeUndefined();
    await expect(middleware.resetKey('127.0.0.1')).resolves.toBeUndefined();
  });
});

describe('other servers', () => {
  /** The way of Connect: req and res are Node's own. */
  function plainServer(middleware) {
    return http.createServer((req, res) => {
      middleware(req, res, (error) => {
        res.statusCode = error ? 500 : 200;
        res.end(error ? String(error) : 'passed');
      });
    });
  }

  test.each([
    ['too fast', 'too fast', 'text/plain; charset=utf-8'],
    [{ error: 'too fast' }, '{"error":"too fast"}', 'application/json; charset=utf-8'],
    [Buffer.from('too fast'), 'too fast', 'application/octet-stream'],
  ])('without res.send the message %j is sent all the same', async (message, body, type) => {
    const server = plainServer(rateLimit({ limit: 1, message, clock: time.clock }));
    expect((await request(server).get('/')).text).toBe('passed');
    const refused = await request(server).get('/').buffer(true).parse(rawBody);
    expect(refused.status).toBe(429);
    expect(refused.body.toString()).toBe(body);
    expect(refused.headers['content-type']).toBe(type);
  });

  function rawBody(res, done) {
    const chunks = [];
    res.on('data', (chunk) => chunks.push(chunk));
    res.on('end', () => done(null, Buffer.concat(chunks)));
  }
});

test('a message function that answers by itself is not answered over', async () => {
  const message = (_req, res) => {
    res.status(418).end('teapot');
  };
  const answer = await get(appWith(rateLimit({ limit: 0, message })));
  expect([answer.status, answer.text]).toEqual([418, 'teapot']);
});

test('a response whose headers are sent already is not touched', async () => {
  const app = express();
  app.use((_req, res, next) => {
    res.write('early ');
    next();
  });
  app.use(rateLimit({ clock: time.clock, standardHeaders: true }));
  app.get('/', (_req, res) => res.end('and late'));
  const answer = await get(app);
  expect(answer.text).toBe('early and late');
  expect(answer.headers).not.toHaveProperty('x-ratelimit-limit');
});
