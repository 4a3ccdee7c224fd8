// The files in examples, run as their readers run them.
'use strict';

const { mkdtemp, readdir, rm } = require('node:fs/promises');
const net = require('node:net');
const { tmpdir } = require('node:os');
const path = require('node:path');
const { unlinkShared } = require('../..');
const { startRedis } = require('../support/redis-server');
const { run, serve, stop } = require('./child');

/** Everything a request was answered, without supertest: the servers are other processes. */
async function get(url, options) {
  const response = await fetch(url, options);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

test('in-memory.js refuses the fourth action, of that user only, and ends by itself', async () => {
  const { code, output } = await run('in-memory.js');
  expect(code).toBe(0);
  expect(output.trim().split('\n')).toEqual([
    'ada, action 1: done',
    'ada, action 2: done',
    'ada, action 3: done',
    expect.stringMatching(/^ada, action 4: refused, try again in (9\d\d|1000) ms$/),
    'bob, action 1: done',
  ]);
});

test('callback.js refuses an action that follows too soon', async () => {
  const { code, output } = await run('callback.js');
  expect(code).toBe(0);
  expect(output.trim().split('\n')).toEqual([
    'first action: done, 9 left',
    expect.stringMatching(/^second action: refused, try again in \d+ ms$/),
  ]);
});

test('worker-threads.js counts in each thread and ends by itself', async () => {
  const { code, output } = await run('worker-threads.js');
  expect(code).toBe(0);
  expect(output.trim().split('\n').sort()).toEqual([
    'main thread: 2 of 5 allowed',
    'worker thread 1: 2 of 5 allowed',
    'worker thread 2: 2 of 5 allowed',
  ]);
});

test('cluster.js lets ten requests pass in all its processes together', async () => {
  const server = await serve('cluster.js');
  try {
    const answers = [];
    for (let i = 0; i < 20; i++) answers.push(await get(server.url));
    expect(answers.map(({ status }) => status)).toEqual([
      ...Array(10).fill(200),
      ...Array(10).fill(429),
    ]);
    const processes = new Set(answers.slice(0, 10).map(({ text }) => text.split(':')[0]));
    expect(processes.size).toBe(3);
  } finally {
    await stop(server);
    unlinkShared('example-cluster');
  }
});

test('express.js lets ten requests pass and answers the eleventh with 429', async () => {
  const server = await serve('express.js');
  try {
    const answers = [];
    for (let i = 0; i < 11; i++) answers.push(await get(server.url));
    expect(answers[0].text).toBe('Welcome. 9 more in this minute.\n');
    expect(answers[0].headers.get('ratelimit-policy')).toBe('10;w=60');
    expect(answers.map(({ status }) => status)).toEqual([...Array(10).fill(200), 429]);
    expect(JSON.parse(answers[10].text).error).toMatch(/Too many requests/);
  } finally {
    await stop(server);
  }
});

test('redis.js counts in all its processes together, and in each alone when Redis is gone', async () => {
  const redis = await startRedis();
  const env = { REDIS_URL: redis.url };
  const servers = await Promise.all([serve('redis.js', env), serve('redis.js', env)]);
  try {
    const statuses = [];
    for (let i = 0; i < 6; i++) {
      for (const { url } of servers) statuses.push((await get(url)).status);
    }
    expect(statuses).toEqual([...Array(10).fill(200), 429, 429]);
    await redis.stop();
    for (const { url } of servers) expect((await get(url)).status).toBe(200);
  } finally {
    await Promise.all(servers.map((server) => stop(server)));
  }
});

test('deno-kv.js counts on after a restart, each user alone, and refuses the 51st request', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'rollgate-example-'));
  const env = { TMPDIR: folder };
  const ask = async (url, user) => {
    const response = await fetch(url, { headers: { 'x-user': user } });
    const retryAfter = Number(response.headers.get('retry-after'));
    return { status: response.status, retryAfter, text: await response.text() };
  };
  try {
    const first = await serve('deno-kv.js', env);
    for (let i = 0; i < 30; i++) {
      const { status, text } = await ask(first.url, 'ada');
      expect(status).toBe(200);
      expect(text).toMatch(/^Welcome\. \d+ more in this hour\.\n$/);
    }
    await stop(first, 'SIGKILL');
    const second = await serve('deno-kv.js', env);
    try {
      let passed = 0;
      while ((await ask(second.url, 'ada')).status === 200) passed += 1;
      // One more where a new hour of the day begins meanwhile: the counter rounds down.
      expect([20, 21]).toContain(passed);
      const refused = await ask(second.url, 'ada');
      expect(refused).toMatchObject({
        status: 429,
        text: `Too many requests, try again in ${refused.retryAfter} s.\n`,
      });
      expect(refused.retryAfter).toBeGreaterThan(0);
      expect(refused.retryAfter).toBeLessThanOrEqual(7200);
      expect((await ask(second.url, 'bob')).text).toContain('49 more');
    } finally {
      await stop(second);
    }
    expect(await readdir(folder)).toContain('rollgate-example.db');
    expect(
      (await readdir(path.join(__dirname, '../..'))).filter((name) => name.includes('.db')),
    ).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('rules.js limits by plan and path, asks who nobody knows for a key, and has a trap', async () => {
  const server = await serve('rules.js');
  const statuses = async (count, path, key, method = 'GET') => {
    const found = [];
    for (let i = 0; i < count; i++) {
      found.push((await get(server.url + path, { method, headers: { 'x-api-key': key } })).status);
    }
    return found;
  };
  try {
    expect(await statuses(1, '/', 'nobody')).toEqual([200]);
    expect(await statuses(1, '/search', 'nobody')).toEqual([401]);
    expect(await statuses(10, '/search', 'key-of-ada')).toEqual(Array(10).fill(200));
    const ofBob = await statuses(10, '/search', 'key-of-bob');
    expect(ofBob.slice(0, 5)).toEqual(Array(5).fill(200));
    expect(ofBob).toContain(429);
    expect(await statuses(4, '/login', 'key-of-bob', 'POST')).toEqual([403, 403, 403, 429]);
    expect(await statuses(1, '/admin', 'key-of-ada')).toEqual([429]);
    expect(await statuses(1, '/search', 'key-of-ada')).toEqual([429]);
  } finally {
    await stop(server);
  }
});

test('express-by-hand.js refuses a request that follows too soon', async () => {
  const server = await serve('express-by-hand.js');
  try {
    const [one, two] = await Promise.all([get(server.url), get(server.url)]);
    expect([one.status, two.status].sort()).toEqual([200, 429]);
    const refused = one.status === 429 ? one : two;
    expect(refused.text).toMatch(/^You must wait \d+ ms before you can make requests\.$/);
  } finally {
    await stop(server);
  }
});

describe('start/server.js', () => {
  test('prints its URL and a curl line that is true', async () => {
    const server = await serve('start/server.js');
    try {
      const curled = /curl -i (http:\S+)/.exec(server.printed())[1];
      const { status, headers, text } = await get(curled);
      expect(status).toBe(200);
      expect(headers.get('ratelimit-policy')).toBe('5;w=10');
      expect(JSON.parse(text)).toMatchObject({ allowed: true, timeLeft: 0, actionsLeft: 4 });
    } finally {
      await stop(server);
    }
  });

  test.each([
    ['action', 'the refusals fill the log', 5],
    ['lenient', 'the refusals leave no trace', 5],
  ])('/api/%s answers with the decision, refused or not: %s', async (route, _why, max) => {
    const server = await serve('start/server.js');
    try {
      const answers = [];
      for (let i = 0; i <= max; i++) answers.push(await get(`${server.url}/api/${route}`));
      const [refused] = answers.slice(-1);
      expect(answers.map(({ status }) => status)).toEqual([...Array(max).fill(200), 429]);
      const { timeLeft, blockedBy, limits, resetIn } = JSON.parse(refused.text);
      expect(blockedBy).toBe('count');
      expect(limits).toHaveLength(1);
      expect(limits[0]).toMatchObject({ used: 5, remaining: 0, maxInInterval: 5 });
      expect(resetIn).toBe(timeLeft);
      expect(refused.headers.get('retry-after')).toBe(String(Math.ceil(timeLeft / 1000)));
    } finally {
      await stop(server);
    }
  });

  test('takes the next free port and says so', async () => {
    const occupier = net.createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => occupier.once('listening', resolve));
    const { port } = occupier.address();
    const server = await serve('start/server.js', { PORT: String(port) });
    try {
      expect(server.printed()).toContain(`Port ${port} is taken, trying ${port + 1}.`);
      expect(Number(new URL(server.url).port)).toBeGreaterThan(port);
      expect((await get(`${server.url}/`)).text).toContain('<title>rollgate');
    } finally {
      await stop(server);
      occupier.close();
    }
  });

  test('refuses a PORT that is none', async () => {
    await expect(serve('start/server.js', { PORT: 'http' })).rejects.toThrow(
      /PORT must be a number/,
    );
  });

  test.each(['SIGINT', 'SIGTERM'])(
    '%s ends it cleanly, an open page notwithstanding',
    async (signal) => {
      const server = await serve('start/server.js');
      const page = await fetch(`${server.url}/api/events`);
      const closed = page.text().catch(() => {});
      expect(await stop(server, signal)).toEqual({ code: 0, signal: null });
      await closed;
    },
  );
});
