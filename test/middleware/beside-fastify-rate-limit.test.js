// The program of docs/migration-fastify-rate-limit.md, next to the real @fastify/rate-limit.
'use strict';

const createFastify = require('fastify');
const theirs = require('@fastify/rate-limit');
const { blocksOf, load } = require('../support/page-programs');
const { fetchText, inTurn, listen, useHandMovedClock } = require('./apps');

const time = useHandMovedClock();
const NAMES = [...['limit', 'remaining', 'reset'].map((n) => `x-ratelimit-${n}`), 'retry-after'];

/** Three requests, 20 s apart. */
async function answersOf(app) {
  await app.ready();
  const url = `http://127.0.0.1:${await listen(app.server)}`;
  return inTurn([0, 20_000, 20_000], async (ms) => {
    time.advance(ms);
    const { status, headers, text } = await fetchText(url);
    const { message, ...body } = status === 200 ? { text } : JSON.parse(text);
    return { status, body, headers: NAMES.map((name) => headers.get(name)) };
  });
}

test('answers as before, but for the words of the refusal and the reset of a rolling window', async () => {
  const before = createFastify();
  await before.register(theirs, { max: 2 });
  before.get('/', () => 'hello\n');
  const [first, second, refused] = await answersOf(before);
  const [code] = blocksOf('docs/migration-fastify-rate-limit.md');
  const short = code.replace('limit: 100,', 'limit: 2, clock: () => Date.now(),');
  const answers = await answersOf(load(short, 'app', { Date }).app);
  expect(answers).toEqual([first, { ...second, headers: ['2', '0', '40', null] }, refused]);
});
