// The recipes for outbound calls, jobs, a pool and serverless functions do what docs/recipes.md promises.
'use strict';

const { once } = require('node:events');
const http = require('node:http');
const RateLimiter = require('../..');
const { inTurn } = require('../middleware/apps');
const { blocksByHeading, blocksOf, load } = require('../support/page-programs');
const { startRedis } = require('../support/redis-server');
const { runProgram } = require('../support/run-program');

const PAGE = 'docs/recipes.md';
const RECIPES = blocksByHeading(PAGE);
const codeOf = (name) => RECIPES.get(name)[0];
const [JOBS_PRINT, POOL_PRINTS] = blocksOf(PAGE, 'text');
const times = (count, item) => Array(count).fill(item);

test('each section has one program', () => {
  expect([...RECIPES].filter(([, programs]) => programs.length !== 1)).toEqual([]);
});

const closers = [];
afterEach(async () => {
  jest.useRealTimers();
  for (const close of closers.splice(0).reverse()) await close();
});

/** Starts a server, which is closed after the test; its URL. */
async function listen(server) {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  closers.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** What `wait` uses stands still: Date, performance and setTimeout. Requests and their streams go on. */
const useStillTime = () =>
  jest.useFakeTimers({
    now: Date.UTC(2024, 0, 1),
    doNotFake: [
      ...['hrtime', 'nextTick', 'queueMicrotask', 'setImmediate', 'clearImmediate'],
      ...['setInterval', 'clearInterval'],
    ],
  });

/** Waits until it is so, and then for what is still under way, although the clock stands still. */
async function settle(isDone = () => true) {
  let turns = 0;
  for (let quiet = 0; quiet < 100; quiet = isDone() ? quiet + 1 : 0) {
    if (++turns > 1e6) throw new Error('waited in vain');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('outbound calls', () => {
  /** An API that counts for itself, by the same still clock: ten in a second. */
  async function startApi(options) {
    const own = RateLimiter({
      ...{ interval: 1000, maxInInterval: 10, countBlocked: false },
      clock: () => Date.now(),
      ...options,
    });
    const api = { seen: [], refused: 0, retryAfter: '30' };
    const server = http.createServer((_req, res) => {
      api.seen.push(Date.now());
      const isRefused = own('key') > 0;
      if (isRefused) {
        api.refused += 1;
        res.writeHead(429, { 'retry-after': api.retryAfter });
      }
      res.end('an item');
    });
    api.url = await listen(server);
    api.limiter = own;
    return api;
  }

  const codeFor = (api) => codeOf('Outbound calls').replace('https://api.example.com', api.url);

  test('prints what the API answers, as it stands', async () => {
    const api = await startApi({ clock: undefined, maxInInterval: 100 });
    const { code, stdout, stderr } = await runProgram(codeFor(api));
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: `${times(12, 200).join(' ')}\n`,
      stderr: '',
    });
  });

  test('the API never has a reason to refuse', async () => {
    useStillTime();
    const api = await startApi();
    const { call } = load(codeFor(api), 'call', { clock: () => Date.now() });
    const answered = [];
    const calls = Array.from({ length: 35 }, (_, i) =>
      call(`/${i}`).then(({ status }) => answered.push(status)),
    );
    for (const expected of [10, 20, 30, 35]) {
      await settle(() => answered.length >= expected);
      expect(api.seen).toHaveLength(expected);
      await jest.advanceTimersByTimeAsync(1099);
      expect(api.seen).toHaveLength(expected);
      await jest.advanceTimersByTimeAsync(1);
    }
    await Promise.all(calls);
    expect(answered).toEqual(times(35, 200));
    expect(api.refused).toBe(0);
  });

  test.each([
    ['seconds', () => '30'],
    ['a date', () => new Date(Date.now() + 30_000).toUTCString()],
  ])('after a 429, nothing is sent until its Retry-After in %s', async (_, retryAfter) => {
    useStillTime();
    const api = await startApi();
    api.retryAfter = retryAfter();
    for (let i = 0; i < 10; i++) api.limiter('key'); // somebody else has the same key
    const { call } = load(codeFor(api), 'call', { clock: () => Date.now() });
    const statuses = [];
    const ask = (page) => call(page).then(({ status }) => statuses.push(status));
    const first = ask('/first');
    await settle(() => api.refused === 1);
    const others = ['/second', '/third'].map(ask);
    await jest.advanceTimersByTimeAsync(29_999);
    await settle();
    expect(api.seen).toHaveLength(1);
    await jest.advanceTimersByTimeAsync(1);
    await settle(() => statuses.length === 3);
    await Promise.all([first, ...others]);
    expect(statuses).toEqual([200, 200, 200]);
    expect(api.refused).toBe(1);
  });

  test('gives up after three refusals', async () => {
    const server = http.createServer((_req, res) =>
      res.writeHead(429, { 'retry-after': '0' }).end(),
    );
    let asked = 0;
    server.on('request', () => (asked += 1));
    useStillTime();
    const url = await listen(server);
    const { call } = load(codeFor({ url }), 'call', { clock: () => Date.now() });
    const answer = call('/');
    for (const expected of [1, 2]) {
      await settle(() => asked === expected);
      await jest.advanceTimersByTimeAsync(999);
      await settle();
      expect(asked).toBe(expected);
      await jest.advanceTimersByTimeAsync(1);
    }
    expect((await answer).status).toBe(429);
    expect(asked).toBe(3);
  });
});

describe('jobs', () => {
  test('prints what the page says', async () => {
    const { code, stdout } = await runProgram(codeOf('Jobs'));
    expect({ code, stdout }).toEqual({ code: 0, stdout: JOBS_PRINT });
  });

  test('two at once, 50 ms between two starts, 100 in a minute, urgent ones first', async () => {
    useStillTime();
    // Without the jobs of the page.
    const [code] = codeOf('Jobs').split('/** In place of a mail server. */');
    const { run } = load(code, 'run', { clock: () => Date.now() });
    const begin = Date.now();
    const starts = [];
    let atOnce = 0;
    let most = 0;
    const job = (kind, lasts) =>
      run(kind, async () => {
        starts.push([Date.now() - begin, kind]);
        most = Math.max(most, ++atOnce);
        await new Promise((resolve) => setTimeout(resolve, lasts));
        atOnce -= 1;
      });
    const failing = run('newsletter', async () => {
      throw new Error('no such reader');
    });
    failing.catch(() => {}); // below
    for (let i = 0; i < 120; i++) job('newsletter', 200);
    job('invoice', 200);
    job('password', 200);
    await jest.advanceTimersByTimeAsync(59_999);
    await expect(failing).rejects.toThrow('no such reader');
    expect(starts).toHaveLength(99); // and the failing one
    expect(starts.slice(0, 4).map(([, kind]) => kind)).toContain('password');
    expect(starts.slice(0, 5).map(([, kind]) => kind)).toContain('invoice');
    await jest.advanceTimersByTimeAsync(60_000);
    expect(starts).toHaveLength(122);
    expect(most).toBe(2);
    const gaps = starts.slice(1).map(([at], i) => at - starts[i][0]);
    expect(Math.min(...gaps)).toBe(50);
  });
});

describe('a pool that follows errors', () => {
  const NAME = 'A pool that follows errors';

  /** Without the calls of the page. `ask()` begins a call, whose `end` settles it. */
  function startPool() {
    const [code] = codeOf(NAME).split('/** In place of an upstream');
    const recipe = load(code, 'pool, run', { console: { log: () => {} } });
    const calls = [];
    const ask = () => {
      const answer = recipe.run(
        (signal) => new Promise((resolve, reject) => calls.push({ resolve, reject, signal })),
      );
      answer.catch(() => {});
      return answer;
    };
    const max = () => recipe.pool.usage('search').max;
    return { ...recipe, ask, calls, max };
  }
  const turn = () => new Promise(setImmediate);

  async function endAll({ calls }, how, value) {
    for (const call of calls.splice(0)) call[how](value);
    await turn();
  }

  test('prints what the page says', async () => {
    const { code, stdout } = await runProgram(codeOf(NAME));
    expect({ code, stdout }).toEqual({ code: 0, stdout: POOL_PRINTS });
  });

  test('grows by about one for a round that succeeds, and halves once for calls that fail together', async () => {
    const pool = startPool();
    for (let i = 0; i < 200; i++) pool.ask();
    const running = [];
    for (const how of ['resolve', 'resolve', 'resolve', 'reject', 'resolve', 'reject', 'reject']) {
      await turn();
      running.push(pool.calls.length);
      await endAll(pool, how, new Error('503'));
    }
    expect(running).toEqual([4, 4, 5, 6, 3, 3, 1]);
    for (let i = 0; i < 3; i++) await endAll(pool, 'reject', new Error('503'));
    expect([pool.max(), pool.calls.length]).toEqual([1, 1]);
  });

  test('does not grow while there is little to do', async () => {
    const pool = startPool();
    for (let i = 0; i < 50; i++) {
      pool.ask();
      await turn();
      await endAll(pool, 'resolve');
    }
    expect(pool.max()).toBe(4);
  });

  test('calls keep their slots when the maximum falls', async () => {
    const pool = startPool();
    for (let i = 0; i < 8; i++) pool.ask();
    await turn();
    pool.calls.pop().reject(new Error('503'));
    await turn();
    expect([pool.max(), pool.calls.length]).toEqual([2, 3]);
    pool.calls.pop().resolve();
    await turn();
    expect(pool.calls).toHaveLength(2);
    pool.calls.pop().resolve();
    await turn();
    expect(pool.calls).toHaveLength(2);
  });

  test('a time-out halves', async () => {
    const [code] = codeOf(NAME).split('/** In place of an upstream');
    const short = code.replace('TIMEOUT_MS = 2000', 'TIMEOUT_MS = 20');
    const { pool, run } = load(short, 'pool, run', { console: { log: () => {} } });
    const server = http.createServer(() => {});
    const url = await listen(server);
    await expect(run((signal) => fetch(url, { signal }))).rejects.toThrow('timeout');
    expect(pool.usage('search')).toEqual({ max: 2, used: 0, remaining: 2 });
  });

  test('call 1001 in line is refused and changes nothing', async () => {
    const pool = startPool();
    for (let i = 0; i < 1004; i++) pool.ask();
    await expect(pool.ask()).rejects.toMatchObject({ code: 'ERR_ROLLGATE_WAIT_QUEUE' });
    expect(pool.max()).toBe(4);
  });
});

describe('serverless', () => {
  const event = (sourceIp) => ({ requestContext: { http: { sourceIp } } });
  let redis;

  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(() => redis.command('FLUSHALL'));

  /** An instance that has just been started. */
  function startInstance() {
    const exports = {};
    const { limiter } = load(codeOf('Serverless'), 'limiter', {
      exports,
      process: { env: { REDIS_URL: redis.url } },
    });
    closers.push(() => limiter.close());
    return exports.handler;
  }

  test('all instances count together, new ones, too', async () => {
    const instances = [startInstance(), startInstance()];
    const statuses = [];
    for (let i = 0; i < 10; i++) {
      const handler = i < 6 ? instances[i % 2] : startInstance();
      const { statusCode, body } = await handler(event('192.0.2.1'));
      expect(body).toBe(`${9 - i} left\n`);
      statuses.push(statusCode);
    }
    expect(statuses).toEqual(times(10, 200));
    for (const handler of [...instances, startInstance()]) {
      const { statusCode, headers } = await handler(event('192.0.2.1'));
      expect(statusCode).toBe(429);
      expect(Number(headers['retry-after'])).toBeGreaterThan(0);
    }
    expect((await instances[0](event('192.0.2.2'))).statusCode).toBe(200);
  });

  test('an instance whose connection was lost while it slept goes on', async () => {
    const handler = startInstance();
    await handler(event('192.0.2.1'));
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const bodies = await inTurn([1, 2, 3], async () => (await handler(event('192.0.2.1'))).body);
    expect(bodies).toEqual(['8 left\n', '7 left\n', '6 left\n']);
  });

  test('a program that has called the handler ends by itself', async () => {
    const source = `${codeOf('Serverless')}
      exports.handler(${JSON.stringify(event('192.0.2.1'))}).then(({ body }) => console.log(body));`;
    const { code, stdout } = await runProgram(source, { env: { REDIS_URL: redis.url } });
    expect({ code, stdout }).toEqual({ code: 0, stdout: '9 left\n\n' });
  });
});
