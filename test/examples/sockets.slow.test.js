// The examples and the recipe for web sockets: messages and connections are limited, and no client ends a server.
'use strict';

const { once } = require('node:events');
const net = require('node:net');
const { io } = require('socket.io-client');
const { WebSocket } = require('ws');
const { inTurn } = require('../middleware/apps');
const { load, serveBlock } = require('../support/page-programs');
const { serveExample, stop } = require('../support/run-program');
const { codeOf, listen } = require('./recipes');

const RECIPE = codeOf('WebSocket messages');

const ends = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function started(serving) {
  const server = await serving;
  ends.push(() => stop(server));
  return server.found;
}
const start = (name) => started(serveExample(name));

/** Resolves to a socket, or to the response that refuses the upgrade. */
async function connect(url, path = '', options = {}) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/${path}`, options);
  ends.push(() => socket.terminate());
  socket.on('error', () => {});
  const refused = once(socket, 'unexpected-response').then(([, response]) => response);
  return Promise.race([once(socket, 'open').then(() => socket), refused]);
}

/** Sends them all at once; what was answered until there was one answer for each, or the end. */
function say(socket, ...messages) {
  const answers = [];
  return new Promise((resolve) => {
    socket.on('close', (code) => resolve([...answers, code]));
    socket.on('message', (data) => {
      answers.push(`${data}`);
      if (answers.length === messages.length) resolve(answers);
    });
    for (const message of messages) socket.send(message);
  });
}

const echo = (text) => JSON.stringify({ echo: text });
const REFUSAL = expect.stringMatching(/^\{"error":"too many messages","retryAfterMs":\d+\}$/);
const SECONDS = /^([1-5]?\d|60)$/;

describe('websocket.js', () => {
  test('echoes five messages in a second, refuses further ones politely, then closes', async () => {
    const socket = await connect(await start('websocket.js'), '/'); // no URL, and no user
    const answers = await say(socket, ...Array(12).fill('hi'));
    expect(answers).toEqual([...Array(5).fill(echo('hi')), ...Array(4).fill(REFUSAL), 1008]);
  });

  test('a user has one limit over all connections, and no other user is hurt', async () => {
    const url = await start('websocket.js');
    const five = async (user) => say(await connect(url, `?user=${user}`), ...Array(5).fill('hi'));
    for (let i = 0; i < 6; i++) expect(await five('ada')).toEqual(Array(5).fill(echo('hi')));
    expect((await five('ada'))[0]).toEqual(REFUSAL);
    expect((await five('bob'))[0]).toEqual(echo('hi'));
  });
});

describe('the recipe', () => {
  let now;
  let url;

  beforeEach(async () => {
    now = 0;
    const { server } = load(RECIPE, 'server', { clock: () => now });
    url = await listen(server);
  });

  test('a user may send 50 messages in ten seconds over all connections', async () => {
    const [one, other] = await inTurn(['?user=ada', '/?user=ada'], (path) => connect(url, path));
    for (const socket of [one, other]) {
      expect(await say(socket, ...Array(25).fill('hi'))).toEqual(Array(25).fill(echo('hi')));
    }
    now = 4000;
    const refusal = JSON.stringify({ error: 'too many messages', retryAfterMs: 6000 });
    for (const socket of [one, other]) expect(await say(socket, 'hi')).toEqual([refusal]);
    expect(await say(await connect(url, '/'), '')).toEqual([echo('')]);
    now = 10_000;
    expect(await say(one, 'hi')).toEqual([echo('hi')]);
  });

  test('and 100,000 bytes in a minute', async () => {
    const socket = await connect(url, '?user=ada');
    const large = 'x'.repeat(16_000);
    const refusal = JSON.stringify({ error: 'too many messages', retryAfterMs: 60_000 });
    const answers = await say(socket, ...Array(7).fill(large), 'small');
    expect(answers).toEqual([...Array(6).fill(echo(large)), refusal, echo('small')]);
    expect((await say(socket, 'x'.repeat(16_385))).at(-1)).toBe(1009);
  });

  test('an address may open 20 connections in a minute', async () => {
    for (let i = 0; i < 20; i++) {
      expect(await connect(url, `?user=${i}`)).toBeInstanceOf(WebSocket);
    }
    const { statusCode, headers } = await connect(url);
    expect([statusCode, headers['retry-after']]).toEqual([429, '60']);
    now = 60_000;
    expect(await connect(url)).toBeInstanceOf(WebSocket);
  });
});

test('ws-upgrade.js echoes, and answers the eleventh upgrade of an address in a minute with 429', async () => {
  const url = await start('frameworks/ws-upgrade.js');
  for (let i = 0; i < 10; i++) expect(await say(await connect(url), 'hi')).toEqual(['hi']);
  const { statusCode, headers } = await connect(url);
  expect([statusCode, headers['retry-after']]).toEqual([429, expect.stringMatching(SECONDS)]);
  if (process.platform === 'linux') {
    expect(await connect(url, '', { localAddress: '127.0.0.2' })).toBeInstanceOf(WebSocket);
  }
});

describe.each([
  ['ws-upgrade.js', 10, () => start('frameworks/ws-upgrade.js')],
  ['the recipe', 20, () => started(serveBlock(RECIPE))],
])('of %s, after %d connections', (_name, most, begin) => {
  let port;
  beforeEach(async () => {
    const url = await begin();
    for (let i = 0; i < most; i++) await connect(url);
    ({ port } = new URL(url));
  });

  /** Asks for an upgrade, by a client that closes its side only if it is told; `sent` is called when that is sent. */
  function ask(sent) {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    ends.push(() => socket.destroy());
    const request =
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
    socket.write(request, () => sent?.(socket));
    return socket;
  }

  // A program that does not answer any more is killed, which ends connections as well.
  afterEach(async () => {
    expect((await connect(`http://127.0.0.1:${port}`)).statusCode).toBe(429);
  });

  test('a refused client that does not close its side is forgotten', async () => {
    const socket = ask().resume();
    await once(socket, 'end');
    // Only on a connection that the server has forgotten do writes fail.
    const failed = new Promise((resolve) => socket.once('error', ({ code }) => resolve(code)));
    const writeOn = () => socket.writable && socket.write('x', () => setImmediate(writeOn));
    writeOn();
    expect(['ECONNRESET', 'EPIPE']).toContain(await failed);
  });

  test('refused clients that reset their connection, also while they are refused, do not end it', async () => {
    for (let i = 0; i < 10; i++) {
      const socket = ask();
      const [answer] = await once(socket, 'data');
      expect(answer.toString()).toMatch(/^HTTP\/1.1 429/);
      socket.resetAndDestroy();
      await once(
        ask((sent) => sent.resetAndDestroy()),
        'close',
      );
    }
  });
});

describe('socket-io.js', () => {
  /** Resolves to the socket, or rejects with the refusal. */
  async function connectIo(url, user) {
    const socket = io(url, { auth: { user }, forceNew: true, reconnection: false });
    ends.push(() => socket.disconnect());
    const refused = once(socket, 'connect_error').then(([error]) => Promise.reject(error));
    await Promise.race([once(socket, 'connect'), refused]);
    return socket;
  }

  /** What came for an event: an echo, or a refusal. */
  const sayIo = (socket, text) =>
    Promise.race([
      socket.emitWithAck('echo', text),
      once(socket, 'refused').then(([{ retryAfterMs }]) => retryAfterMs),
    ]);

  test('a user may send five events in ten seconds, over all connections', async () => {
    const url = await start('frameworks/socket-io.js');
    const sockets = [await connectIo(url, 'ada'), await connectIo(url, 'ada')];
    for (let i = 0; i < 5; i++) expect(await sayIo(sockets[i % 2], `${i}`)).toBe(`${i}`);
    const wait = await sayIo(sockets[1], 'f');
    expect(wait > 0 && wait <= 10_000).toBe(true);
    expect(await sayIo(await connectIo(url, 'bob'), 'g')).toBe('g');
  });

  test('a client that sends what no client should does not end the server', async () => {
    const url = await start('frameworks/socket-io.js');
    for (const user of [{ name: 'ada' }, true, ['ada']]) {
      const socket = await connectIo(url, user);
      for (const extra of [[], [5], [null]]) socket.emit('echo', 'x', ...extra);
      for (const extra of [[], [null]]) socket.emit('error', ...extra);
    }
    expect(await sayIo(await connectIo(url, 'bob'), 'hi')).toBe('hi');
  });

  test('the eleventh connection of an address in a minute is refused, with the wait', async () => {
    const url = await start('frameworks/socket-io.js');
    for (let i = 0; i < 10; i++) await connectIo(url, `user${i}`);
    const { message, data } = await connectIo(url, 'ada').catch((error) => error);
    expect(message).toBe('too many requests');
    expect(data.retryAfterMs > 0 && data.retryAfterMs <= 60_000).toBe(true);
  });
});
