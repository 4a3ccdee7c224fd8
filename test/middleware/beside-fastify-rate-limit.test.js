// What docs/migration-fastify-rate-limit.md says, next to the real @fastify/rate-limit.
'use strict';

const createFastify = require('fastify');
const theirs = require('@fastify/rate-limit');
const ours = require('../../lib/adapters/fastify');
const { blocksOf, load } = require('../support/page-programs');
const { fetchText, inTurn, useHandMovedClock } = require('./apps');

const time = useHandMovedClock();
const HEADERS = ['limit', 'remaining', 'reset'].map((name) => `x-ratelimit-${name}`);

const open = [];
afterEach(() => Promise.all(open.splice(0).map((app) => app.close())));

async function appWith(plugin, options) {
  const app = createFastify();
  open.push(app);
  await app.register(plugin, options);
  app.get('/', () => 'hello\n');
  return app;
}

/** The program of the page, with a limit of 2. */
function appOfPage() {
  const [code] = blocksOf('docs/migration-fastify-rate-limit.md');
  const short = code.replace('limit: 100,', 'limit: 2, clock: () => Date.now(),');
  const { app } = load(short, 'app', { Date });
  open.push(app);
  return app;
}

async function ask(app) {
  if (!app.server.listening) await app.listen({ port: 0, host: '127.0.0.1' });
  return fetchText(`http://127.0.0.1:${app.server.address().port}/`);
}

/** Three requests, 20 s apart. */
const answersOf = (app) =>
  inTurn([0, 20_000, 20_000], async (ms) => {
    time.advance(ms);
    return ask(app);
  });

const shown = ({ status, headers, text }) => {
  const names = [...HEADERS, 'retry-after'];
  return { status, text, headers: names.map((name) => headers.get(name)) };
};

test('the program of the page answers as before, but for the words of the refusal', async () => {
  const expected = (await answersOf(await appWith(theirs, { max: 2 }))).map(shown);
  const answers = (await answersOf(appOfPage())).map(shown);
  expect(answers.slice(0, 1)).toEqual(expected.slice(0, 1));
  const [second, refused] = answers.slice(1);
  expect(second).toEqual({ ...expected[1], headers: ['2', '0', '40', null] });
  expect(refused).toEqual({ ...expected[2], text: expect.any(String) });
  const [before, now] = [expected[2], refused].map(({ text }) => JSON.parse(text));
  expect({ ...before, message: '' }).toEqual({ ...now, message: '' });
});

test('without it, the reset is a time of day, and a refusal is no error', async () => {
  const app = await appWith(ours, { limit: 1, clock: time.clock });
  const handler = jest.fn();
  app.setErrorHandler(handler);
  const { headers } = await ask(app);
  expect(Number(headers.get('x-ratelimit-reset'))).toBe(Math.ceil((Date.now() + 60_000) / 1000));
  expect((await ask(app)).status).toBe(429);
  expect(handler).not.toHaveBeenCalled();
});

test('a hook of the application comes before their limiter, and after ours', async () => {
  for (const [plugin, expected] of [
    [theirs, 'ada'],
    [ours, undefined],
  ]) {
    const seen = [];
    const keyGenerator = ({ user }) => {
      seen.push(user);
      return 'a';
    };
    const app = await appWith(plugin, { keyGenerator });
    app.addHook('onRequest', async (request) => {
      request.user = 'ada';
    });
    await ask(app);
    expect(seen).toEqual([expected]);
  }
});
