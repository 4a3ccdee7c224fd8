// The recipes for outbound calls, jobs, a pool and serverless functions do what docs/recipes.md promises.
'use strict';

const RateLimiter = require('../..');
const { inTurn, settled } = require('../middleware/apps');
const { load } = require('../support/page-programs');
const { startRedis } = require('../support/redis-server');
const { runProgram } = require('../support/run-program');
const { codeOf, listen, printed, RECIPES, times } = require('./recipes');

test('each section has one program', () => {
  expect([...RECIPES].filter(([, programs]) => programs.length !== 1)).toEqual([]);
});

test.each([
  ['Jobs', 'password'],
  ['A pool that follows errors', 'at once'],
])('%s prints what the page says', async (name, words) => {
  const { code, stdout, stderr } = await runProgram(codeOf(name));
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: printed(words), stderr: '' });
});

afterEach(() => jest.useRealTimers());

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
    await settled();
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
    api.url = await listen((_req, res) => {
      api.seen.push(Date.now());
      const isRefused = own('key') > 0;
      if (isRefused) {
        api.refused += 1;
        res.writeHead(429, { 'retry-after': api.retryAfter });
      }
      res.end('an item');
    });
    api.limiter = own;
    return api;
  }

  const codeFor = (url) => codeOf('Outbound calls', ['https://api.example.com', url]);
  const callOf = (url) => load(codeFor(url), 'call', { clock: () => Date.now() }).call;

  test('prints what the API answers, as it stands', async () => {
    const { url } = await startApi({ clock: undefined, maxInInterval: 100 });
    const { code, stdout, stderr } = await runProgram(codeFor(url));
    const statuses = `${times(12, 200).join(' ')}\n`;
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: statuses, stderr: '' });
  });

  test('the API never has a reason to refuse', async () => {
    useStillTime();
    const api = await startApi();
    const call = callOf(api.url);
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
    const call = callOf(api.url);
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
    let asked = 0;
    const url = await listen((_req, res) => {
      asked += 1;
      res.writeHead(429, { 'retry-after': '0' }).end();
    });
    useStillTime();
    const answer = callOf(url)('/');
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
  /** Without the calls of the page. `ask(count)` begins calls, `end(how, count)` settles the oldest ones. */
  function startPool(...exchanges) {
    const [code] = codeOf('A pool that follows errors', ...exchanges).split(
      '/** In place of an up',
    );
    const { pool, run } = load(code, 'pool, run', { console: { log: () => {} } });
    const calls = [];
    const begin = (signal) =>
      new Promise((resolve, reject) => calls.push({ resolve, reject, signal }));
    const ask = async (count) => {
      for (let i = 0; i < count; i++) run(begin).catch(() => {});
      await settled();
    };
    const end = async (how, count = calls.length) => {
      for (const call of calls.splice(0, count)) call[how](new Error('503'));
      await settled();
    };
    const state = () => [pool.usage('search').max, calls.length];
    return { ask, begin, end, pool, run, state };
  }

  test('grows by about one for a round that succeeds, and halves once for calls that fail together', async () => {
    const { ask, end, state } = startPool();
    await ask(200);
    const running = [state()[1]];
    for (const how of ['resolve', 'resolve', 'resolve', 'reject', 'resolve', 'reject', 'reject']) {
      await end(how);
      running.push(state()[1]);
    }
    expect(running).toEqual([4, 4, 5, 6, 3, 3, 1, 1]);
  });

  test('does not grow while there is little to do', async () => {
    const { ask, end, state } = startPool();
    for (let i = 0; i < 50; i++) {
      await ask(1);
      await end('resolve');
    }
    expect(state()).toEqual([4, 0]);
  });

  test('calls keep their slots when the maximum falls', async () => {
    const { ask, end, state } = startPool();
    await ask(8);
    await end('reject', 1);
    expect(state()).toEqual([2, 3]);
    await end('resolve', 1);
    expect(state()).toEqual([2, 2]);
    await end('resolve', 1);
    expect(state()).toEqual([2, 2]);
  });

  test('a time-out halves', async () => {
    const { pool, run } = startPool(['TIMEOUT_MS = 2000', 'TIMEOUT_MS = 20']);
    const url = await listen(() => {});
    await expect(run((signal) => fetch(url, { signal }))).rejects.toThrow('timeout');
    expect(pool.usage('search')).toEqual({ max: 2, used: 0, remaining: 2 });
  });

  test('call 1001 in line is refused and changes nothing', async () => {
    const { ask, begin, run, state } = startPool();
    await ask(1004);
    await expect(run(begin)).rejects.toMatchObject({ code: 'ERR_ROLLGATE_WAIT_QUEUE' });
    expect(state()).toEqual([4, 4]);
  });
});

describe('serverless', () => {
  const event = (sourceIp) => ({ requestContext: { http: { sourceIp } } });
  let redis;

  beforeAll(async () => {
    redis = await startRedis();
  });
  beforeEach(() => redis.command('FLUSHALL'));

  const started = [];
  afterEach(() => Promise.all(started.splice(0).map((limiter) => limiter.close())));

  /** An instance that has just been started: `ask(address)` calls its handler. */
  function startInstance() {
    const process = { env: { REDIS_URL: redis.url } };
    const exports = {};
    started.push(load(codeOf('Serverless'), 'limiter', { exports, process }).limiter);
    return (address = '192.0.2.1') => exports.handler(event(address));
  }

  test('all instances count together, new ones, too', async () => {
    const instances = [startInstance(), startInstance()];
    for (let left = 9; left >= 0; left--) {
      const ask = left > 3 ? instances[left % 2] : startInstance();
      expect(await ask()).toMatchObject({ statusCode: 200, body: `${left} left\n` });
    }
    for (const ask of [...instances, startInstance()]) {
      const { statusCode, headers } = await ask();
      expect([statusCode, Number(headers['retry-after']) > 0]).toEqual([429, true]);
    }
    expect((await instances[0]('192.0.2.2')).statusCode).toBe(200);
  });

  test('an instance whose connection was lost while it slept goes on', async () => {
    const ask = startInstance();
    await ask();
    await redis.command('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const bodies = await inTurn([1, 2, 3], async () => (await ask()).body);
    expect(bodies).toEqual(['8 left\n', '7 left\n', '6 left\n']);
  });

  test('a program that has called the handler ends by itself', async () => {
    const source = `${codeOf('Serverless')}
      exports.handler(${JSON.stringify(event('192.0.2.1'))}).then(({ body }) => console.log(body));`;
    const { code, stdout } = await runProgram(source, { env: { REDIS_URL: redis.url } });
    expect({ code, stdout }).toEqual({ code: 0, stdout: '9 left\n\n' });
  });
});
