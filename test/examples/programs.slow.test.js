// The files in examples, run as their readers run them.
'use strict';

const { once } = require('node:events');
const { mkdtemp, readdir, rm } = require('node:fs/promises');
const net = require('node:net');
const { tmpdir } = require('node:os');
const path = require('node:path');
const { WebSocket } = require('ws');
const { unlinkShared } = require('../..');
const { fetchStatuses: statusesOf, fetchText: get, inTurn } = require('../middleware/apps');
const { startRedis } = require('../support/redis-server');
const { runExample, serveExample, stop } = require('../support/run-program');

const running = [];
afterEach(() => Promise.all(running.splice(0).map((server) => stop(server))));

async function start(example, env) {
  const server = await serveExample(example, env);
  running.push(server);
  return server;
}

test.each([
  [
    'in-memory.js',
    ...[1, 2, 3].map((action) => `ada, action ${action}: done`),
    expect.stringMatching(/^ada, action 4: refused, try again in (9\d\d|1000) ms$/),
    'bob, action 1: done',
  ],
  [
    'callback.js',
    'first action: done, 9 left',
    expect.stringMatching(/^second action: refused, try again in \d+ ms$/),
  ],
  [
    'worker-threads.js',
    ...['main thread', 'worker thread 1', 'worker thread 2'].map((one) => `${one}: 2 of 5 allowed`),
  ],
])('%s prints what each action gets, and ends by itself', async (example, ...lines) => {
  const { code, stdout } = await runExample(example);
  expect(code).toBe(0);
  const printed = stdout.trim().split('\n');
  expect(example === 'worker-threads.js' ? printed.sort() : printed).toEqual(lines);
});

test('cluster.js lets ten requests pass in all its processes together', async () => {
  const { url } = await start('cluster.js');
  try {
    const answers = await inTurn(Array(20).fill(url), get);
    const statuses = answers.map(({ status }) => status);
    expect(statuses).toEqual([...Array(10).fill(200), ...Array(10).fill(429)]);
    const processes = new Set(answers.slice(0, 10).map(({ text }) => text.split(':')[0]));
    expect(processes.size).toBe(3);
  } finally {
    unlinkShared('example-cluster');
  }
});

test('redis.js counts in all its processes together, and in each alone when Redis is gone', async () => {
  const redis = await startRedis();
  const env = { REDIS_URL: redis.url };
  const [one, other] = await Promise.all([start('redis.js', env), start('redis.js', env)]);
  const turns = Array(6).fill([one, other]).flat();
  const statuses = await inTurn(turns, async ({ url }) => (await get(url)).status);
  expect(statuses).toEqual([...Array(10).fill(200), 429, 429]);
  await redis.stop();
  for (const { url } of [one, other]) expect((await get(url)).status).toBe(200);
});

test('deno-kv.js counts on after a restart, each user alone, and refuses the 51st request', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'rollgate-example-'));
  const env = { TMPDIR: folder };
  const ask = (url, user) => get(url, { headers: { 'x-user': user } });
  try {
    const first = await serveExample('deno-kv.js', env);
    for (let i = 0; i < 30; i++) {
      const { status, text } = await ask(first.url, 'ada');
      expect(status).toBe(200);
      expect(text).toMatch(/^Welcome\. \d+ more in this hour\.\n$/);
    }
    await stop(first, 'SIGKILL');
    const { url } = await start('deno-kv.js', env);
    let passed = 0;
    while ((await ask(url, 'ada')).status === 200) passed += 1;
    // One more where a new hour of the day begins meanwhile: the counter rounds down.
    expect([20, 21]).toContain(passed);
    const { status, headers, text } = await ask(url, 'ada');
    const retryAfter = Number(headers.get('retry-after'));
    expect(status).toBe(429);
    expect(text).toBe(`Too many requests, try again in ${retryAfter} s.\n`);
    expect(retryAfter).toBeGreaterThan(0);
    expect(retryAfter).toBeLessThanOrEqual(7200);
    expect((await ask(url, 'bob')).text).toContain('49 more');
    await stop(running.pop());
    expect(await readdir(folder)).toContain('rollgate-example.db');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test('rules.js limits by plan and path, asks unknown users for a key, and has a trap', async () => {
  const { url } = await start('rules.js');
  const statuses = (count, page, key, method = 'GET') =>
    statusesOf(url + page, count, { method, headers: { 'x-api-key': key } });
  expect(await statuses(1, '/search', 'nobody')).toEqual([401]);
  expect(await statuses(10, '/search', 'key-of-ada')).toEqual(Array(10).fill(200));
  const ofBob = await statuses(10, '/search', 'key-of-bob');
  expect(ofBob.slice(0, 5)).toEqual(Array(5).fill(200));
  expect(ofBob).toContain(429);
  expect(await statuses(4, '/login', 'key-of-bob', 'POST')).toEqual([403, 403, 403, 429]);
  expect(await statuses(1, '/admin', 'key-of-ada')).toEqual([429]);
  expect(await statuses(1, '/search', 'key-of-ada')).toEqual([429]);
});

test('express-by-hand.js refuses a request that follows too soon', async () => {
  const { url } = await start('express-by-hand.js');
  const answers = await Promise.all(Array.from({ length: 20 }, () => get(url)));
  expect(answers.map(({ status }) => status)).toEqual(expect.arrayContaining([200, 429]));
  const refused = answers.find(({ status }) => status === 429);
  expect(refused.text).toMatch(/^You must wait \d+ ms before you can make requests\.$/);
});

test('frameworks/fastify.js limits all routes together, one by itself and one not at all', async () => {
  const { url } = await start('frameworks/fastify.js');
  const { text, headers } = await get(`${url}/`);
  expect(text).toBe('Welcome. 9 more in this minute.\n');
  expect(headers.get('ratelimit-policy')).toMatch(/^"10-in-1min"; q=10; w=60; pk=/);
  expect(await statusesOf(`${url}/`, 10)).toEqual([...Array(9).fill(200), 429]);
  expect(await statusesOf(`${url}/dear`, 3)).toEqual([200, 200, 429]);
  expect(await statusesOf(`${url}/health`, 12)).toEqual(Array(12).fill(200));
});

describe('login.js', () => {
  const attempt = (name, password) => ({
    method: 'POST',
    body: new URLSearchParams({ name, password }),
  });
  const RIGHT = attempt('ada', 'correct horse');
  const REFUSED = 'Too many attempts, please try again later.\n';

  test('five failures close an account, however its name is written, also to its password', async () => {
    const url = `${(await start('login.js')).url}/login`;
    expect(await statusesOf(url, 3, attempt('ada', 'guess'))).toEqual([401, 401, 401]);
    expect(await statusesOf(url, 2, attempt(' ADA', 'guess'))).toEqual([401, 401]);
    const refused = await get(url, RIGHT);
    expect([refused.status, refused.text]).toEqual([429, REFUSED]);
    // The answers tell nobody how others have failed.
    expect(await statusesOf(url, 1, attempt('bob', 'guess'))).toEqual([401]);
  });

  test('a success resets the account, and successes are not limited', async () => {
    const url = `${(await start('login.js')).url}/login`;
    for (let i = 0; i < 2; i++) {
      expect(await statusesOf(url, 4, attempt('ada', 'guess'))).toEqual([401, 401, 401, 401]);
      expect(await statusesOf(url, 1, RIGHT)).toEqual([200]);
    }
    expect(await statusesOf(url, 25, RIGHT)).toEqual(Array(25).fill(200));
  });

  test('one address may not try many accounts; refusals and failures read the same for all', async () => {
    const url = `${(await start('login.js')).url}/login`;
    const users = Array.from({ length: 21 }, (_, i) => `user${i}`);
    const answers = await inTurn(users, (user) => get(url, attempt(user, 'guess')));
    expect(answers.map(({ status }) => status)).toEqual([...Array(20).fill(401), 429]);
    expect(answers[20].text).toBe(REFUSED);
    const unknown = answers[0];
    const known = await get(`${(await start('login.js')).url}/login`, attempt('ada', 'guess'));
    expect([known.status, known.text]).toEqual([unknown.status, unknown.text]);
  });
});

describe('websocket.js', () => {
  const open = [];
  afterEach(() => {
    for (const socket of open.splice(0)) socket.terminate();
  });

  async function connect(url, user) {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/?user=${user}`);
    open.push(socket);
    await once(socket, 'open');
    return socket;
  }

  /** Sends them all at once; what was answered until there was one answer for each, or the end. */
  function say(socket, messages) {
    const answers = [];
    return new Promise((resolve) => {
      socket.on('close', (code, reason) => resolve({ answers, code, reason: reason.toString() }));
      socket.on('message', (data) => {
        answers.push(JSON.parse(data));
        if (answers.length === messages.length) resolve({ answers });
      });
      for (const message of messages) socket.send(message);
    });
  }

  test('echoes five messages in a second, refuses further ones politely, then closes', async () => {
    const socket = await connect((await start('websocket.js')).url, 'ada');
    const { answers, code, reason } = await say(socket, Array(12).fill('hi'));
    expect(answers.slice(0, 5)).toEqual(Array(5).fill({ echo: 'hi' }));
    expect(answers.slice(5)).toHaveLength(4);
    for (const refusal of answers.slice(5)) {
      expect(refusal).toEqual({ error: 'too many messages', retryAfterMs: expect.any(Number) });
      expect(refusal.retryAfterMs).toBeGreaterThan(0);
      expect(refusal.retryAfterMs).toBeLessThanOrEqual(1000);
    }
    expect([code, reason]).toEqual([1008, 'too many messages']);
  });

  test('a path that is no URL does not end it', async () => {
    const { url } = await start('websocket.js');
    const socket = new WebSocket(`${url.replace('http', 'ws')}//`);
    open.push(socket);
    await once(socket, 'open');
    const { answers } = await say(socket, ['hi']);
    expect(answers).toEqual([{ echo: 'hi' }]);
  });

  test('a user has one limit over all connections, and no other user is hurt', async () => {
    const { url } = await start('websocket.js');
    const allowed = [];
    for (let i = 0; i < 7; i++) {
      const { answers } = await say(await connect(url, 'ada'), Array(5).fill('hi'));
      allowed.push(answers.filter(({ echo }) => echo).length);
    }
    expect(allowed).toEqual([5, 5, 5, 5, 5, 5, 0]);
    const { answers } = await say(await connect(url, 'bob'), ['hi']);
    expect(answers).toEqual([{ echo: 'hi' }]);
  });
});

describe('start/server.js', () => {
  test('prints its URL and a curl line that is true', async () => {
    const server = await start('start/server.js');
    const [, curled] = /curl -i (http:\S+)/.exec(server.output.stdout);
    const { status, headers, text } = await get(curled);
    expect([status, text]).toEqual([200, 'allowed\n']);
    expect(headers.get('ratelimit-policy')).toBe('5;w=10');
    expect(headers.get('ratelimit-remaining')).toBe('4');
    expect(await statusesOf(curled, 5)).toEqual([200, 200, 200, 200, 429]);
  });

  test('takes the next free port and says so', async () => {
    const occupier = net.createServer().listen(0, '127.0.0.1');
    await once(occupier, 'listening');
    const { port } = occupier.address();
    const server = await start('start/server.js', { PORT: String(port) });
    expect(server.output.stdout).toContain(`Port ${port} is taken, trying ${port + 1}.`);
    expect(Number(new URL(server.url).port)).toBeGreaterThan(port);
    expect((await get(`${server.url}/`)).text).toContain('<title>rollgate');
    occupier.close();
  });

  test.each([
    ['PORT', 'x'],
    ['PORT', '65536'],
    ['MAX', 'many'],
    ['MAX', ''],
    ['INTERVAL_MS', '0'],
  ])('%s=%s is refused in one line', async (name, text) => {
    const refused = serveExample('start/server.js', { [name]: text });
    await expect(refused).rejects.toThrow(
      new RegExp(`ended: ${name} must be a number from \\d+ to \\d+, not "${text}"\\.\\n$`),
    );
  });

  test.each(['SIGINT', 'SIGTERM'])(
    '%s ends it cleanly, an unfinished request notwithstanding',
    async (signal) => {
      const server = await serveExample('start/server.js');
      const { hostname, port } = new URL(server.url);
      const socket = net.connect(port, hostname).on('error', () => {});
      const closed = once(socket, 'close');
      await once(socket, 'connect');
      socket.write('GET / HTTP/1.1\r\n');
      await get(`${server.url}/`); // by now, the server has seen the other connection
      expect(await stop(server, signal)).toEqual({ code: 0, signal: null });
      await closed;
    },
  );
});
