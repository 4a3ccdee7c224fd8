// The examples for Fastify, for a log-in and for web sockets, run as their readers run them.
'use strict';

const { once } = require('node:events');
const { WebSocket } = require('ws');
const { serve, stop } = require('./child');

const running = [];
afterEach(() => Promise.all(running.splice(0).map((server) => stop(server))));

async function start(example) {
  const server = await serve(example);
  running.push(server);
  return server.url;
}

async function get(url, init) {
  const response = await fetch(url, init);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

async function statusesOf(url, times, init) {
  const statuses = [];
  for (let i = 0; i < times; i++) statuses.push((await get(url, init)).status);
  return statuses;
}

test('fastify.js limits all routes together, one by itself and one not at all', async () => {
  const url = await start('fastify.js');
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
    const url = `${await start('login.js')}/login`;
    expect(await statusesOf(url, 3, attempt('ada', 'guess'))).toEqual([401, 401, 401]);
    expect(await statusesOf(url, 2, attempt(' ADA', 'guess'))).toEqual([401, 401]);
    const refused = await get(url, RIGHT);
    expect([refused.status, refused.text]).toEqual([429, REFUSED]);
    // The answers tell nobody how others have failed.
    expect(await statusesOf(url, 1, attempt('bob', 'guess'))).toEqual([401]);
  });

  test('a success starts the account anew, and successes are not limited', async () => {
    const url = `${await start('login.js')}/login`;
    for (let i = 0; i < 2; i++) {
      expect(await statusesOf(url, 4, attempt('ada', 'guess'))).toEqual([401, 401, 401, 401]);
      expect(await statusesOf(url, 1, RIGHT)).toEqual([200]);
    }
    expect(await statusesOf(url, 25, RIGHT)).toEqual(Array(25).fill(200));
  });

  test('one address may not try many accounts; refusals and failures read the same for all', async () => {
    const url = `${await start('login.js')}/login`;
    const answers = [];
    for (let i = 0; i < 21; i++) answers.push(await get(url, attempt(`user${i}`, 'guess')));
    expect(answers.map(({ status }) => status)).toEqual([...Array(20).fill(401), 429]);
    expect(answers[20].text).toBe(REFUSED);
    const unknown = answers[0];
    const known = await get(`${await start('login.js')}/login`, attempt('ada', 'guess'));
    expect([known.status, known.text]).toEqual([unknown.status, unknown.text]);
  });

  test('what is no form is a failure like others', async () => {
    const url = `${await start('login.js')}/login`;
    expect(await statusesOf(url, 6, { method: 'POST' })).toEqual([401, 401, 401, 401, 401, 429]);
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
    const socket = await connect(await start('websocket.js'), 'ada');
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

  test('a user has one limit over all connections, and no other user is hurt', async () => {
    const url = await start('websocket.js');
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
