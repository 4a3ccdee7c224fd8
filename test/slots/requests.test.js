// Requests that hold slots: however a response closes, its slot is free again.
'use strict';

const { once } = require('node:events');
const http = require('node:http');
const http2 = require('node:http2');
const net = require('node:net');
const { concurrencyLimit } = require('../..');
const { waitUntil } = require('../support/outcome');
const { all } = require('../support/tiers');
const { randomFrom } = require('../support/traces');

const REQUESTS = all ? 6000 : 1500;
const AT_ONCE = 40;
const MAX = 5;
const LONGEST_MS = 6;

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Of HTTP/2, Node emits no 'close' for a stream that the client resets between the end of the response and its sending. */
const isOpen = (res) => !(res.closed || res.destroyed || res.stream?.closed);

/** Answers late, early, in parts, by an error, or never. `open`: the responses of requests that have passed. */
function createHandler(limit, random) {
  const state = { most: 0, open: [] };
  async function handle(_req, res) {
    state.open = [...state.open.filter(isOpen), res];
    state.most = Math.max(state.most, state.open.length);
    if (random.chance(70)) await pause(random.between(0, LONGEST_MS));
    if (random.chance(5)) return res.destroy?.();
    if (random.chance(20)) res.write('some');
    if (random.chance(20)) await pause(random.between(0, LONGEST_MS));
    return res.end('done');
  }
  const server = (req, res) =>
    limit(req, res, (error) => (error === undefined ? handle(req, res) : res.destroy()));
  return { server, state };
}

/** Resolves when the request has ended, whatever that was. `leaves`: after how many ms the client does. */
const protocols = {
  'HTTP/1': {
    createServer: (handle) => http.createServer(handle),
    connect: (port) => {
      const agent = new http.Agent({ keepAlive: true, maxSockets: AT_ONCE });
      const ask = (leaves) =>
        new Promise((resolve) => {
          const request = http.get({ host: '127.0.0.1', port, agent }, (res) => {
            res
              .on('error', () => {})
              .on('close', resolve)
              .resume();
          });
          request.on('error', () => {}).on('close', resolve);
          if (leaves !== undefined) setTimeout(() => request.destroy(), leaves);
        });
      return { ask, close: () => agent.destroy() };
    },
  },
  'HTTP/2': {
    createServer: (handle) => http2.createServer(handle),
    connect: (port) => {
      // A server closes a session whose streams are reset too often.
      const sessions = [];
      let asked = 0;
      const ask = (leaves) =>
        new Promise((resolve) => {
          if (asked++ % 500 === 0) sessions.push(http2.connect(`http://127.0.0.1:${port}`));
          const stream = sessions.at(-1).request({ ':path': '/' });
          stream
            .on('error', () => {})
            .on('close', resolve)
            .resume();
          if (leaves !== undefined) setTimeout(() => stream.close(), leaves);
        });
      const close = () => {
        for (const session of sessions) session.destroy();
      };
      return { ask, close };
    },
  },
};

// Kills: a slot for a response that is closed already, and a slot that is not released if the client leaves.
test.each([
  ...Object.keys(protocols).map((name) => [name, {}]),
  ...Object.keys(protocols).map((name) => [name, { maxWait: 20, maxQueue: 10 }]),
])('%s, %j: no slot is left after clients that leave at random moments', async (name, waiting) => {
  const random = randomFrom(7);
  const limit = concurrencyLimit({
    max: MAX,
    keyGenerator: () => 'all',
    skip: async () => pause(random.between(0, 2)), // so that some have left before
    validate: false,
    ...waiting,
  });
  const { server: handle, state } = createHandler(limit, random);
  const server = protocols[name].createServer(handle);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = protocols[name].connect(server.address().port);
  let left = REQUESTS / 2;
  const askOnAndOn = async () => {
    while (left-- > 0) await client.ask(random.chance(33) ? random.between(0, 8) : undefined);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, askOnAndOn));
  await waitUntil('nothing is held', () => limit.limiter.stats().held === 0);
  const { waiting: inLine, keys, allowed, leaked } = limit.limiter.stats();
  expect({ inLine, keys, leaked, open: state.open.filter(isOpen) }).toEqual({
    inLine: 0,
    keys: 0,
    leaked: 0,
    open: [],
  });
  expect(allowed).toBeGreaterThan(10);
  expect(state.most).toBeLessThanOrEqual(MAX);
  client.close();
  server.close();
});

// Kills: only the events of the response, of which there are none behind an unfinished one; listeners that stay.
test('responses that are queued behind another one give their slots back when the connection closes', async () => {
  const limit = concurrencyLimit({ max: 100, keyGenerator: () => 'all', validate: false });
  let asked = 0;
  const server = http.createServer((req, res) =>
    limit(req, res, () => {
      asked += 1;
      if (asked % 2 === 0) res.end('waits for the one in front');
    }),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const client = net.connect(server.address().port, '127.0.0.1');
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(10));
  const { limiter } = limit;
  await waitUntil('all are held', () => asked === 10 && limiter.stats().held === 10);
  client.destroy();
  await waitUntil('nothing is held', () => limiter.stats().held === 0);
  expect(limiter.stats().leaked).toBe(0);
  server.close();
});

// Kills: only a look before the slot is asked for.
test('a response that closes between the grant and its slot holds none', async () => {
  const limit = concurrencyLimit({
    max: 1,
    maxWait: 60_000,
    keyGenerator: () => 'all',
    validate: false,
  });
  const { limiter } = limit;
  const slot = limiter.acquire('all');
  const req = new http.IncomingMessage(new net.Socket());
  const res = new http.ServerResponse(req);
  let passed = 0;
  const returned = limit(req, res, () => passed++);
  await waitUntil('it waits', () => limiter.stats().waiting === 1);
  slot.release();
  expect(limiter.stats()).toMatchObject({ held: 1, waiting: 0 });
  res.destroy();
  await returned;
  expect([limiter.stats().held, passed]).toEqual([0, 0]);
});

test('a response that only finishes gives its slot back', async () => {
  const limit = concurrencyLimit({ max: 1, keyGenerator: () => 'all', validate: false });
  const res = new http.ServerResponse(new http.IncomingMessage(new net.Socket()));
  limit(res.req, res, () => {});
  expect(limit.limiter.stats().held).toBe(1);
  res.emit('finish');
  expect(limit.limiter.stats().held).toBe(0);
});
