// The files in examples, run as their readers run them.
'use strict';

const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const { fetchText: get } = require('../middleware/apps');
const { startRedis } = require('../support/redis-server');
const { runExample, serveExample, stop } = require('../support/run-program');
const { emptyFolder, removeFolders } = require('../support/tarball');
const { askAt, converse, having } = require('./conversation');

const running = [];
afterEach(() => Promise.all(running.splice(0).map((server) => stop(server))));
afterAll(removeFolders);

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

test('redis.js counts in all its processes together, and in each alone when Redis is gone', async () => {
  const redis = await startRedis();
  const env = { REDIS_URL: redis.url };
  running.push(await serveExample('redis.js', env), await serveExample('redis.js', env));
  const [one, other] = running.map(({ found }) => askAt(found));
  for (let i = 0; i < 5; i++) for (const ask of [one, other]) await converse(ask, [[1, '', 200]]);
  for (const ask of [one, other]) await converse(ask, [[1, '', 429]]);
  await redis.stop();
  for (const ask of [one, other]) await converse(ask, [[1, '', 200]]);
});

test('deno-kv.js counts on after a restart, each user alone, and refuses the 51st request', async () => {
  const folder = emptyFolder();
  const serve = () => start('deno-kv.js', { TMPDIR: folder });
  const [ada, bob] = ['ada', 'bob'].map((user) => having({ 'x-user': user }));
  const first = await serve();
  await converse(askAt(first.url), [
    [30, ada, 200, { text: /^Welcome\. \d+ more in this hour\.\n$/ }],
  ]);
  await stop(first, 'SIGKILL');
  const ask = askAt((await serve()).url);
  await converse(ask, [[20, ada, 200]]);
  await ask(...ada); // passes where a new hour of the day has begun: the counter rounds down
  const text = /^Too many requests, try again in \d+ s\.\n$/;
  await converse(ask, [
    [1, ada, 429, { text, 'retry-after': /^[1-7]\d{0,3}$/ }],
    [1, bob, 200, { text: /49 more/ }],
  ]);
  await stop(running.pop());
  expect(fs.readdirSync(folder)).toContain('rollgate-example.db');
});

describe('start/server.js', () => {
  test('prints its URL and a curl line that is true', async () => {
    const server = await start('start/server.js');
    const [, curled] = /curl -i (http:\S+)/.exec(server.output.stdout);
    const passes = { text: 'allowed\n', 'ratelimit-policy': '5;w=10', 'ratelimit-remaining': '4' };
    await converse(
      () => get(curled),
      [
        [1, '', 200, passes],
        [4, '', 200],
        [1, '', 429],
      ],
    );
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
