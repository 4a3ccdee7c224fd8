// The servers in examples/frameworks that speak tRPC, GraphQL or web sockets, run as their readers run them.
'use strict';

const { once } = require('node:events');
const net = require('node:net');
const { getIntrospectionQuery } = require('graphql');
const { io } = require('socket.io-client');
const { WebSocket } = require('ws');
const { fetchText, inTurn } = require('../middleware/apps');
const { serveExample, stop } = require('../support/run-program');

const ends = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

async function start(name) {
  const server = await serveExample(`frameworks/${name}`);
  ends.push(() => stop(server));
  return server.url;
}

const statusesOf = (answers) => answers.map(({ status }) => status);
const SECONDS = /^([1-5]?\d|60)$/;

test('trpc.js lets ten calls of a user pass, then answers TOO_MANY_REQUESTS', async () => {
  const url = `${await start('trpc.js')}/greet`;
  const call = (user) => fetchText(url, { headers: { 'x-user': user } });
  const answers = await inTurn(Array(11).fill('ada'), call);
  expect(statusesOf(answers)).toEqual([...Array(10).fill(200), 429]);
  expect(JSON.parse(answers[0].text).result.data).toBe('Welcome, ada.');
  const refused = answers[10];
  expect(JSON.parse(refused.text).error.data.code).toBe('TOO_MANY_REQUESTS');
  expect(refused.headers.get('retry-after')).toMatch(SECONDS);
  expect((await call('bob')).status).toBe(200);
});

describe('graphql-yoga.js', () => {
  let url;
  beforeEach(async () => {
    url = `${await start('graphql-yoga.js')}/graphql`;
  });

  const query = (query, variables) =>
    fetchText(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    });

  const FRIENDS = '{ me { friends(first: 30) { name friends(first: 10) { name } } } }';

  test('a query costs what it may return', async () => {
    // 1 for me, 1 for its friends, 30 names, 30 lists of 10 names: 362.
    const answers = await inTurn([FRIENDS, FRIENDS, FRIENDS], (each) => query(each));
    expect(statusesOf(answers)).toEqual([200, 200, 429]);
    expect(JSON.parse(answers[0].text).data.me.friends[0].name).toBe('Bob');
    const [, , refused] = answers;
    expect(JSON.parse(refused.text).errors[0].message).toBe('Too complex for now');
    expect(refused.headers.get('retry-after')).toMatch(SECONDS);
    expect((await query('{ me { name } }')).status).toBe(200);
  });

  test('a query that costs more than the limit is refused for good', async () => {
    const { status, headers } = await query('{ me { friends(first: 2000) { name } } }');
    expect([status, headers.get('retry-after')]).toEqual([429, null]);
    expect((await query('{ me { name } }')).status).toBe(200);
  });

  test.each([
    [
      'fragments',
      '{ me { friends(first: 40) { ...more } } } fragment more on Person { friends(first: 40) { name } }',
    ],
    [
      'inline fragments',
      '{ me { friends(first: 40) { ... on Person { friends(first: 40) { name } } } } }',
    ],
    ['lists without a size', '{ me { friends { friends(first: 10) { name } } } }'],
    ['negative sizes', '{ me { friends(first: 40) { friends(first: -1000) { name } } } }'],
    [
      'variables without a known value',
      'query($n: Int) { me { friends(first: 40) { friends(first: $n) { name } } } }',
    ],
  ])('%s hide no cost', async (_what, hiding) => {
    expect((await query(hiding)).status).toBe(429);
  });

  test('variables count as what they are', async () => {
    const text = 'query($n: Int) { me { friends(first: $n) { name } } }';
    expect((await query(text, { n: 900 })).status).toBe(200);
    expect((await query(text, { n: 200 })).status).toBe(429);
    expect((await query(text, { n: 10 })).status).toBe(200);
  });

  test('introspection, as by GraphiQL, passes', async () => {
    expect((await query(getIntrospectionQuery())).status).toBe(200);
  });

  test('fragments that spread each other twice are refused fast', async () => {
    const fragments = Array.from({ length: 60 }, (_, i) => {
      const next = i < 59 ? `...f${i + 1} a: me { ...p } ...f${i + 1}` : 'me { name }';
      return `fragment f${i} on Query { ${next} }`;
    });
    const all = `{ ...f0 } ${fragments.join(' ')} fragment p on Person { name }`;
    const { data, errors } = JSON.parse((await query(all)).text);
    const message = 'Query exceeds the maximum allowed number of nodes.';
    expect([data, errors]).toEqual([undefined, [{ message }]]);
  });
});

describe('socket-io.js', () => {
  /** Resolves to the socket, or rejects with the refusal. */
  async function connect(url, user) {
    const socket = io(url, { auth: { user }, forceNew: true, reconnection: false });
    ends.push(() => socket.disconnect());
    await Promise.race([
      once(socket, 'connect'),
      once(socket, 'connect_error').then(([error]) => Promise.reject(error)),
    ]);
    return socket;
  }

  /** What came for an event: an echo, or a refusal. */
  async function say(socket, text) {
    const refused = once(socket, 'refused').then(([{ retryAfterMs }]) => retryAfterMs);
    return Promise.race([socket.emitWithAck('echo', text), refused]);
  }

  test('a user may send five events in ten seconds, over all connections', async () => {
    const url = await start('socket-io.js');
    const first = await connect(url, 'ada');
    expect(await inTurn(['a', 'b', 'c'], (text) => say(first, text))).toEqual(['a', 'b', 'c']);
    const second = await connect(url, 'ada');
    expect(await inTurn(['d', 'e'], (text) => say(second, text))).toEqual(['d', 'e']);
    const wait = await say(second, 'f');
    expect(wait).toBeGreaterThan(0);
    expect(wait).toBeLessThanOrEqual(10_000);
    expect(await say(await connect(url, 'bob'), 'g')).toBe('g');
  });

  test('a client that sends what no client should does not end the server', async () => {
    const url = await start('socket-io.js');
    for (const user of [{ name: 'ada' }, true, ['ada']]) {
      const socket = await connect(url, user);
      for (const extra of [[], [5], [null]]) socket.emit('echo', 'x', ...extra);
      for (const extra of [[], [null]]) socket.emit('error', ...extra);
    }
    expect(await say(await connect(url, 'bob'), 'hi')).toBe('hi');
  });

  test('the eleventh connection of an address in a minute is refused, with the wait', async () => {
    const url = await start('socket-io.js');
    for (let i = 0; i < 10; i++) await connect(url, `user${i}`);
    const refused = connect(url, 'ada');
    await expect(refused).rejects.toThrow('too many requests');
    const { data } = await refused.catch((error) => error);
    expect(data.retryAfterMs).toBeGreaterThan(0);
    expect(data.retryAfterMs).toBeLessThanOrEqual(60_000);
  });
});

describe('ws-upgrade.js', () => {
  /** Resolves to the socket, or to the response that refuses the upgrade. */
  async function connect(url, localAddress = '127.0.0.1') {
    const socket = new WebSocket(url.replace('http', 'ws'), { localAddress });
    ends.push(() => socket.terminate());
    socket.on('error', () => {});
    const refused = once(socket, 'unexpected-response').then(([, response]) => response);
    return Promise.race([once(socket, 'open').then(() => socket), refused]);
  }

  /** A client that never closes its side; resolves when the server has forgotten the connection. */
  async function stay(url) {
    const { port } = new URL(url);
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    ends.push(() => socket.destroy());
    const lines = [
      'GET / HTTP/1.1',
      'Host: x',
      'Connection: Upgrade',
      'Upgrade: websocket',
      '',
      '',
    ];
    socket.write(lines.join('\r\n'));
    socket.resume();
    await once(socket, 'end');
    // Only on a connection that the server has forgotten do writes fail.
    const failed = new Promise((resolve) => socket.once('error', ({ code }) => resolve(code)));
    const writeOn = () => socket.writable && socket.write('x', () => setImmediate(writeOn));
    writeOn();
    return failed;
  }

  test('a refused client that does not close its side is forgotten', async () => {
    const url = await start('ws-upgrade.js');
    for (let i = 0; i < 10; i++) await connect(url);
    expect(['ECONNRESET', 'EPIPE']).toContain(await stay(url));
  });

  test('the eleventh upgrade of an address in a minute is answered with 429', async () => {
    const url = await start('ws-upgrade.js');
    for (let i = 0; i < 10; i++) {
      const socket = await connect(url);
      socket.send('hi');
      const [data] = await once(socket, 'message');
      expect(data.toString()).toBe('hi');
    }
    const { statusCode, headers } = await connect(url);
    expect(statusCode).toBe(429);
    expect(headers['retry-after']).toMatch(SECONDS);
    if (process.platform === 'linux') {
      expect(await connect(url, '127.0.0.2')).toBeInstanceOf(WebSocket);
    }
  });
});
