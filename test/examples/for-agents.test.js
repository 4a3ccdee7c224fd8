// docs/for-agents.md: each of its statements holds, and has a test with the statement as its name.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { startRedis } = require('../support/redis-server');

const FOLDER = path.join(__dirname, 'for-agents');
const page = fs.readFileSync(path.join(__dirname, '../../docs/for-agents.md'), 'utf8');

/** Tests of statements: an object by heading, and in it by statement. */
const sections = Object.assign(
  {},
  ...fs.readdirSync(FOLDER).map((file) => require(path.join(FOLDER, file)).sections),
);

const written = page
  .split(/^## /m)
  .slice(1)
  .map((section) => [section.split('\n', 1)[0], section.match(/(?<=^- ).+$/gm) ?? []]);

const around = {};

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
