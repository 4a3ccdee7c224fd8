// docs/for-agents.md: each of its statements holds, and has a test with the statement as its name.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const RateLimiter = require('../..');
const { readPage } = require('../support/page-programs');
const { startRedis } = require('../support/redis-server');

const FOLDER = path.join(__dirname, 'for-agents');

/** Tests of statements: an object by heading, and in it by statement. */
const sections = Object.assign(
  {},
  ...fs.readdirSync(FOLDER).map((file) => require(path.join(FOLDER, file)).sections),
);

const written = readPage('docs/for-agents.md')
  .split(/^## /m)
  .slice(1)
  .map((section) => [section.split('\n', 1)[0], section.match(/(?<=^- ).+$/gm) ?? []]);

const made = [];
afterEach(() => Promise.all(made.splice(0).map((limiter) => limiter.close())));

/** What a proof gets: `make` creates limiters, by default of one in a minute, that are closed after the test. */
const around = {
  make(options) {
    made.push(RateLimiter({ interval: 60_000, maxInInterval: 1, ...options }));
    return made.at(-1);
  },
};

beforeAll(async () => {
  around.redisUrl = (await startRedis()).url;
});

// Kills: a statement that was added to the page or changed there, without a test.
test('the page has these statements, each once', () => {
  const tested = Object.entries(sections).map(([title, tests]) => [title, Object.keys(tests)]);
  expect(Object.fromEntries(written)).toEqual(Object.fromEntries(tested));
});

// Kills: a statement that the library does not keep.
describe.each(Object.entries(sections))('%s', (_title, tests) => {
  test.each(Object.entries(tests))('%s', async (_statement, prove) => prove(around));
});
