// The corpus: its bytes, its answers, and the page that describes it.
'use strict';

const { spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const RateLimiter = require('../..');
const { PARTS, linesOf, traceOf, withoutSteps } = require('../conformance/corpus');
const { firstDifference } = require('../conformance/replay');
const { blocksOf, readPage } = require('../support/page-programs');

const lines = linesOf();
const text = `${lines.join('\n')}\n`;
const [, ...traces] = lines;

// Kills: a draw from Math.random or the date, an order that depends on anything else than the seed.
test('is the same on every machine', () => {
  const digest = createHash('sha256').update(text).digest('hex');
  expect(digest).toBe('c0515b31b7c54121bee6c318cdc5b485b78a7db5eccb969143c61123593facc2'); // another one may be another version
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
    const names = new Set(Object.keys(PARTS));
    for (const line of lines) {
      JSON.parse(line, (key, value) => {
        if (/^[a-z]/i.test(key)) names.add(key);
        if (key === 'op') names.add(value);
        return value;
      });
    }
    expect(names.size).toBeGreaterThan(40);
    const isNamed = (name) => new RegExp(`\`[^\`]*\\b${name}\\b[^\`]*\``).test(page);
    expect([...names].filter((name) => !isNamed(name))).toEqual([]);
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
