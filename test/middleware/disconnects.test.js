// Clients that leave before their answer, on HTTP/1 and HTTP/2: what stays counted, and what is refused.
'use strict';

const { EventEmitter, once } = require('node:events');
const http = require('node:http');
const http2 = require('node:http2');
const net = require('node:net');
const { Readable } = require('node:stream');
const createFastify = require('fastify');
const RateLimiter = require('../..');
const rollgate = require('../../lib/adapters/fastify');
const { callDirectly, newLogger, settled, warningsDuring } = require('./apps');

const { ipKeyGenerator, rateLimit } = RateLimiter;
const ENOUGH_BYTES = 8 * 1024 * 1024; // more than the buffers of a connection hold

const ends = [];
afterEach(() => Promise.all(ends.splice(0).map((end) => end())));

/** What the handler of a server may do with the response of Node. */
const stepsOf = (res) => ({
  answer(status, body = '') {
    res.statusCode = status;
    res.end(body);
  },
  begin(status) {
    res.writeHead(status);
    res.write('begun');
  },
});

const stepsOfReply = (reply) => ({
  answer: (status, body = '') => reply.code(status).send(body),
  begin(status) {
    const unended = new Readable({ read() {} });
    unended.push('begun');
    reply.code(status).send(unended);
  },
});

const onNode = (createServer) => (options, earlier, handle) => {
  const limit = rateLimit(options);
  return createServer(async (req, res) => {
    // Without an earlier middleware, the limiter runs at once.
    if (earlier !== undefined) await earlier();
    limit(req, res, (error) => handle(error, stepsOf(res)));
  });
};

const onFastify = (settings) => async (options, earlier, handle) => {
  const app = createFastify(settings);
  if (earlier !== undefined) app.addHook('onRequest', () => earlier());
  await app.register(rollgate, options);
  app.all('/', (_request, reply) => void handle(undefined, stepsOfReply(reply)));
  await app.ready();
  return app.server;
};

/** Each: how a server is made, and how its clients ask. */
const SERVERS = {
  'node:http': [onNode(http.createServer), askHttp1],
  Fastify: [onFastify(), askHttp1],
  'node:http2': [onNode(http2.createServer), askHttp2],
  'Fastify on HTTP/2': [onFastify({ http2: true }), askHttp2],
};

/** A request: `status` comes with the headers of its answer, and `leave()` drops it. */
function askHttp1(port) {
  const agent = new http.Agent({ keepAlive: true });
  ends.push(() => agent.destroy());
  const request = http.request({ port, host: '127.0.0.1', method: 'POST', agent });
  request.on('error', () => {});
  request.end();
  const status = once(request, 'response').then(([response]) => response.statusCode);
  status.catch(() => {}); // it has left
  return { status, leave: () => request.destroy() };
}

function askHttp2(port) {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  session.on('error', () => {});
  ends.push(() => session.destroy());
  const stream = session.request({ ':method': 'POST', ':path': '/' }, { endStream: true });
  stream.on('error', () => {});
  const status = once(stream, 'response').then(([headers]) => headers[':status']);
  status.catch(() => {});
  return { status, leave: () => stream.close(http2.constants.NGHTTP2_CANCEL) };
}

/** A gate, which is shut until `open()`. */
function newGate() {
  let open;
  const passed = new Promise((resolve) => (open = resolve));
  return { pass: () => passed, open };
}

/**
 * A server behind a limiter whose decisions are promises. `arrivals` emits 'request' (res) before anything else and 'handled'
 * (steps) for what passes; `earlier` is a step in front of the limiter, and `deciding` one in front of each decision.
 */
async function start([create, ask], options, { earlier, deciding } = {}) {
  const arrivals = new EventEmitter();
  const limiter = RateLimiter({ interval: 60_000, maxInInterval: 3, countBlocked: false });
  const attempt = jest.fn(async (id) => {
    await deciding?.();
    return limiter.attempt(id);
  });
  const refund = jest.fn((decision) => limiter.refund(decision));
  const settings = { limiter: { attempt, refund }, ...options };
  const server = await create(settings, earlier, (error, steps) => {
    if (error) throw error;
    arrivals.emit('handled', steps);
  });
  server.prependListener('request', (_req, res) => arrivals.emit('request', res));
  if (!server.listening) server.listen(0, '127.0.0.1');
  ends.push(() => {
    server.close();
    server.closeAllConnections?.();
  });
  await once(server, 'listening');
  const { port } = server.address();
  const arrive = async (event) => (await once(arrivals, event))[0];
  return { port, arrivals, arrive, attempt, refund, ask: () => ask(port) };
}

/** A client asks, and leaves when `isReady(status)` is fulfilled; without it, as soon as the server sees the request. */
async function leaveWhen(app, isReady) {
  const { status, leave } = app.ask();
  const arrived = app.arrive('request');
  const closed = arrived.then((res) => once(res, 'close'));
  await Promise.all([arrived, isReady?.(status)]);
  leave();
  await closed;
}

/** When a client may leave: behind which gate its request is, or whether its answer has begun. */
const MOMENTS = {
  'before the limiter runs': { gate: 'earlier' },
  'while the store decides': { gate: 'deciding' },
  'before the answer': {},
  'after the headers of an answer': { hasBegun: true },
};

/** Starts a server where a client leaves at a moment. Its password is wrong. */
async function leaveAt({ gate, hasBegun }, server, options) {
  const shut = newGate();
  const app = await start(server, options, { [gate]: shut.pass });
  const handled = app.arrive('handled').then((steps) => {
    if (hasBegun) steps.begin(200);
    return steps;
  });
  await leaveWhen(app, gate ? undefined : (status) => (hasBegun ? status : handled));
  shut.open();
  if (!hasBegun) (await handled).answer(401);
  return app;
}

/** What is left of the count of the only request. */
async function countOf({ attempt, refund }) {
  while (attempt.mock.calls.length === 0) await settled();
  expect(await attempt.mock.results[0].value).toMatchObject({ allowed: true });
  for (let turn = 0; turn < 5; turn++) await settled();
  return attempt.mock.calls.length - refund.mock.calls.length;
}

const keyGenerator = () => 'ada';

describe.each(Object.entries(SERVERS))('on %s', (_name, server) => {
  test.each(Object.entries(MOMENTS))(
    'a client that leaves %s stays counted for skipSuccessfulRequests only',
    async (_when, moment) => {
      const kept = await leaveAt(moment, server, { keyGenerator, skipSuccessfulRequests: true });
      expect(await countOf(kept)).toBe(1);
      const takenBack = await leaveAt(moment, server, { keyGenerator, skipFailedRequests: true });
      expect(await countOf(takenBack)).toBe(0);
    },
  );

  test.each([
    ['skipSuccessfulRequests', 200, 0],
    ['skipSuccessfulRequests', 401, 1],
    ['skipFailedRequests', 200, 1],
    ['skipFailedRequests', 401, 0],
  ])('with %s, an answer of %i leaves a count of %i', async (skip, status, count) => {
    const app = await start(server, { keyGenerator, [skip]: true });
    app.arrivals.on('handled', ({ answer }) => answer(status));
    const finished = app.arrive('request').then((res) => once(res, 'finish'));
    expect(await app.ask().status).toBe(status);
    await finished;
    expect(await countOf(app)).toBe(count);
  });

  test('an answer that is not fetched to its end counts by its status', async () => {
    const app = await start(server, { keyGenerator, skipSuccessfulRequests: true });
    app.arrivals.on('handled', ({ answer }) => answer(401, Buffer.alloc(ENOUGH_BYTES)));
    await leaveWhen(app, (status) => status);
    expect(await countOf(app)).toBe(1);
  });

  test.each([
    ['the default key', {}],
    ['the default key through proxies', { trustProxy: 'loopback' }],
    ['the address as its key', { keyGenerator: ({ ip }) => ipKeyGenerator(ip) }],
    ['its key later', { keyGenerator: async (_req, _res, clientKey) => clientKey() }],
  ])('a client that left before the limiter is refused uncounted, with %s', async (_, options) => {
    const logger = newLogger();
    const warned = new Promise((resolve) => logger.warn.mockImplementation(resolve));
    const gate = newGate();
    const app = await start(server, { logger, ...options }, { earlier: gate.pass });
    const handled = jest.fn();
    app.arrivals.on('handled', handled);
    await leaveWhen(app);
    gate.open();
    expect((await warned).code).toBe('ROLLGATE_CLIENT_GONE');
    await settled();
    expect([app.attempt.mock.calls, handled.mock.calls]).toEqual([[], []]);
  });
});

test.each([200, 401])(
  'an answer of %i through the stream of HTTP/2 stays counted, because its status is not seen',
  async (status) => {
    for (const skip of ['skipSuccessfulRequests', 'skipFailedRequests']) {
      const options = { keyGenerator, [skip]: true };
      const app = await start([onNode(http2.createServer), askHttp2], options);
      const arrived = app.arrive('request');
      app.arrivals.on('handled', async () => {
        const { stream } = await arrived;
        stream.respond({ ':status': status });
        stream.end();
      });
      const closed = arrived.then((res) => once(res, 'close'));
      expect(await app.ask().status).toBe(status);
      await closed;
      expect(await countOf(app)).toBe(1);
    }
  },
);

/** Ends the response of a cancelled stream. Node 20.19.2 and others throw when they do so early. */
function endCancelled(res) {
  try {
    res.end();
  } catch (error) {
    expect(error.code).toBe('ERR_HTTP2_INVALID_STREAM');
  }
}

test.each(['aborted', 'close'])(
  'a response that ends when the request of HTTP/2 emits %s is cut off',
  async (event) => {
    for (const [skip, count] of [
      ['skipSuccessfulRequests', 1],
      ['skipFailedRequests', 0],
    ]) {
      const app = await start(SERVERS['node:http2'], { keyGenerator, [skip]: true });
      app.arrivals.on('request', (res) => res.req.on(event, () => endCancelled(res)));
      const handled = app.arrive('handled');
      await leaveWhen(app, () => handled);
      expect(await countOf(app)).toBe(count);
    }
  },
);

test('an upload that is cancelled without an error is cut off, although its body seems to end', async () => {
  const app = await start(SERVERS['node:http2'], { keyGenerator, skipSuccessfulRequests: true });
  const closed = app.arrive('request').then((res) => {
    res.req.resume().on('end', () => res.end());
    return once(res, 'close');
  });
  const client = net.connect(app.port, '127.0.0.1');
  ends.push(() => client.destroy());
  const frame = (type, flags, payload, stream = 1) =>
    Buffer.from([0, 0, payload.length, type, flags, 0, 0, 0, stream, ...payload]);
  const [DATA, HEADERS, RST_STREAM, SETTINGS, END_HEADERS] = [0, 1, 3, 4, 4];
  const POST = [0x83, 0x86, 0x84, 0x41, 1, 'a'.charCodeAt()]; // :method, :scheme, :path, :authority
  client.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  client.write(Buffer.concat([frame(SETTINGS, 0, [], 0), frame(HEADERS, END_HEADERS, POST)]));
  client.write(frame(DATA, 0, [1]));
  await app.arrive('handled');
  client.write(frame(RST_STREAM, 0, [0, 0, 0, 0]));
  await closed;
  expect(await countOf(app)).toBe(1);
});

test('a client that resets its connection is gone, although its socket is still open', async () => {
  const logger = newLogger();
  const app = await start(SERVERS['node:http'], { logger });
  const sockets = app.arrive('request').then((res) => [res.socket.destroyed, res]);
  const client = net.connect(app.port, '127.0.0.1');
  await once(client, 'connect');
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
  client.resetAndDestroy();
  const [isDestroyed, res] = await sockets;
  if (!res.closed) await once(res, 'close');
  expect([isDestroyed, app.attempt.mock.calls]).toEqual([false, []]);
  expect(logger.warn.mock.calls.map(([{ code }]) => code)).toEqual(['ROLLGATE_CLIENT_GONE']);
});

describe('clients without an address', () => {
  const GONE = { method: 'GET', url: '/', headers: {}, socket: { destroyed: true } };
  const ON_UNIX_SOCKET = { ...GONE, socket: { destroyed: false } };
  const callsWith = (options, req = GONE) =>
    callDirectly(rateLimit({ validate: false, logger: newLogger(), ...options }), { ...req }).calls;

  test('are gone with one warning, unless its check is off', async () => {
    const codesWith = (validate) =>
      warningsDuring(() => {
        const middleware = rateLimit({ validate });
        for (let i = 0; i < 2; i++) {
          const { req, headers, calls } = callDirectly(middleware, { ...GONE });
          expect([req.rateLimit, headers, calls]).toEqual([undefined, {}, []]);
        }
      });
    expect(await codesWith(true)).toEqual(['ROLLGATE_CLIENT_GONE']);
    expect(await codesWith({ ip: false })).toEqual([]);
  });

  test.each([
    ['count on a Unix socket', [[]], {}, ON_UNIX_SOCKET],
    ['count there under no key', [[]], { keyGenerator: () => undefined }, ON_UNIX_SOCKET],
    ['count under a key', [[]], { keyGenerator }],
    ['are gone for rules that limit', [], { rules: [{ path: '/', limit: 1 }] }],
    ['pass shadow rules alone', [[]], { rules: [{ path: '/', limit: 1, shadow: true }] }],
  ])('%s: next() gets %j', (_what, calls, ...asked) => {
    expect(callsWith(...asked)).toEqual(calls);
  });
});
