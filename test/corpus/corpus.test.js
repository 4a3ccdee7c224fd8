// The corpus: its schema, its bytes, its answers, and the page that describes it.
'use strict';

const { spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const RateLimiter = require('../..');
const {
  FIELDS,
  OPERATIONS,
  PARTS,
  linesOf,
  problemsOf,
  traceOf,
  withoutSteps,
} = require('../conformance/corpus');
const { firstDifference } = require('../conformance/random-traces');
const { blocksOf, readPage } = require('../support/page-programs');

const lines = linesOf();
const text = `${lines.join('\n')}\n`;
const [, ...traces] = lines;

test('is large enough, and of a bounded size', () => {
  expect(traces.length).toBeGreaterThanOrEqual(2000);
  expect(text.length).toBeLessThan(6e6);
  expect(JSON.parse(lines[0]).traces).toBe(traces.length);
});

// Kills: a draw from Math.random or the date, an order that depends on anything else than the seed.
test('is the same on every machine', () => {
  const digest = createHash('sha256').update(text).digest('hex');
  expect(digest).toBe('c0515b31b7c54121bee6c318cdc5b485b78a7db5eccb969143c61123593facc2'); // another one may be another version
});

test('each line fits the schema, and all that the schema has occurs', () => {
  expect(lines.filter((line, i) => problemsOf(line, i === 0).length > 0)).toEqual([]);
  const operations = traces.flatMap((line) => JSON.parse(line).operations);
  const kinds = new Set(operations.map(({ op }) => op));
  expect([...kinds].sort()).toEqual(Object.keys(OPERATIONS).sort());
  expect(new Set(traces.map((line) => JSON.parse(line).part)).size).toBe(Object.keys(PARTS).length);
});

// Kills: a schema that lets anything pass.
test.each([
  ['a field that is missing', (trace) => delete trace.start, 'start'],
  ['an unknown field', (trace) => Object.assign(trace, { extra: 1 }), 'extra'],
  ['an unknown part', (trace) => Object.assign(trace, { part: 'other' }), 'part'],
  ['an algorithm of no name', ({ policy }) => Object.assign(policy, { algorithm: 'x' }), 'policy'],
  ['a limit without max', ({ policy }) => delete policy.limits[0].max, 'policy'],
  [
    'an operation of no kind',
    ({ operations }) => Object.assign(operations[1], { op: 'x' }),
    'operations',
  ],
  [
    'a fraction of a microsecond',
    ({ operations }) => Object.assign(operations[1], { at: 0.5 }),
    'operations',
  ],
  ['an answer that is missing', ({ operations }) => delete operations[1].allowed, 'operations'],
  ['a window without its reset', ({ operations }) => operations[1].windows[0].pop(), 'operations'],
])('the schema refuses %s', (_, change, field) => {
  const trace = JSON.parse(traces[0]);
  change(trace);
  expect(problemsOf(JSON.stringify(trace))).toEqual([field]);
});

// Kills: a field that is written or read as another.
test('the store in memory answers what its lines say', async () => {
  const differences = [];
  for (const line of traces.filter((_, i) => i % 5 === 0)) {
    const trace = withoutSteps(traceOf(line));
    const found = await firstDifference(trace, (options) => RateLimiter(options));
    if (found !== null) differences.push(found);
  }
  expect(differences).toEqual([]);
});

describe('its page', () => {
  test('names every field and operation', () => {
    const page = readPage('docs/corpus.md');
    const names = [...FIELDS, ...Object.keys(OPERATIONS), ...Object.keys(PARTS)];
    const isNamed = (name) => new RegExp(`\`[^\`]*\\b${name}\\b[^\`]*\``).test(page);
    expect(names.filter((name) => !isNamed(name))).toEqual([]);
    for (const { count } of Object.values(PARTS)) expect(page).toContain(`| ${count}`);
  });

  const hasPython = spawnSync('python3', ['--version']).status === 0;

  (hasPython ? test : test.skip)('has a runner that runs', () => {
    const [program] = blocksOf('docs/corpus.md', 'python');
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-corpus-'));
    const file = path.join(folder, 'corpus.jsonl');
    fs.writeFileSync(file, text);
    const { stdout, stderr } = spawnSync('python3', ['-', file], {
      input: program,
      encoding: 'utf8',
    });
    fs.rmSync(folder, { recursive: true });
    expect(`${stdout}${stderr}`).toBe(`${PARTS.plain.count} of ${PARTS.plain.count} traces\n`);
  });
});
