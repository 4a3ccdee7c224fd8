// The recipe for web sockets does what docs/recipes.md promises.
'use strict';

const { once } = require('node:events');
const net = require('node:net');
const { WebSocket } = require('ws');
const { inTurn } = require('../middleware/apps');
const { blocksByHeading, load, withServer } = require('../support/page-programs');

const [CODE] = blocksByHeading('docs/recipes.md').get('WebSocket messages');

let now;
let recipe;
let url;

beforeEach(async () => {
  now = 0;
  recipe = load(CODE, 'server, sockets', { clock: () => now });
  await once(recipe.server.listen(0, '127.0.0.1'), 'listening');
  url = `ws://127.0.0.1:${recipe.server.address().port}`;
});
afterEach(async () => {
  for (const client of recipe.sockets.clients) client.terminate();
  await new Promise((resolve) => recipe.server.close(resolve));
});

async function connect(user) {
  const socket = new WebSocket(`${url}/?user=${user}`);
  await once(socket, 'open');
  return socket;
}

async function say(socket, text) {
  const answered = once(socket, 'message');
  socket.send(text);
  return JSON.parse((await answered)[0]);
}

test('a user may send 50 messages in ten seconds over all connections', async () => {
  const [one, other, ofBob] = await inTurn(['ada', 'ada', 'bob'], connect);
  for (let i = 0; i < 25; i++) {
    for (const socket of [one, other]) expect(await say(socket, `${i}`)).toEqual({ echo: `${i}` });
  }
  now = 4000;
  const refusal = { error: 'too many messages', retryAfterMs: 6000 };
  expect(await say(one, 'more')).toEqual(refusal);
  expect(await say(other, 'more')).toEqual(refusal);
  expect(await say(ofBob, '')).toEqual({ echo: '' });
  now = 10_000;
  expect(await say(one, 'more')).toEqual({ echo: 'more' });
});

test('and 100,000 bytes in a minute', async () => {
  const socket = await connect('ada');
  const large = 'x'.repeat(16_000);
  for (let i = 0; i < 6; i++) expect(await say(socket, large)).toEqual({ echo: large });
  expect(await say(socket, large)).toEqual({ error: 'too many messages', retryAfterMs: 60_000 });
  expect(await say(socket, 'small')).toEqual({ echo: 'small' });
  const closed = once(socket, 'close');
  socket.send('x'.repeat(16_385));
  expect((await closed)[0]).toBe(1009);
});

test('a strange path harms nobody', async () => {
  const strange = new WebSocket(`${url}//?user=ada`);
  await once(strange, 'open');
  expect(await say(strange, 'hi')).toEqual({ echo: 'hi' });
  const another = new WebSocket(`${url}//`);
  await once(another, 'open');
  expect(await say(another, 'hi')).toEqual({ echo: 'hi' });
});

test('clients that reset their connection after a refusal do not end it', async () => {
  await withServer(CODE, async (ask, port) => {
    const request = [
      'GET / HTTP/1.1',
      'Host: localhost',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Version: 13',
    ];
    let refusals = 0;
    for (let i = 0; i < 30; i++) {
      const socket = net.connect(port, '127.0.0.1');
      socket.write(`${request.join('\r\n')}\r\n\r\n`);
      const [answer] = await once(socket, 'data');
      if (answer.toString().startsWith('HTTP/1.1 429')) refusals += 1;
      socket.resetAndDestroy();
    }
    expect(refusals).toBe(10);
    expect((await ask()).status).toBe(426);
  });
});

test('an address may open 20 connections in a minute', async () => {
  for (let i = 0; i < 20; i++) await connect(`user${i}`);
  const refused = new WebSocket(url);
  const [, response] = await once(refused, 'unexpected-response');
  expect([response.statusCode, response.headers['retry-after']]).toEqual([429, '60']);
  now = 60_000;
  await connect('ada');
});
