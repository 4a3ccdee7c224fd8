// Writes the conformance corpus to build/corpus, runs this package's stores and other limiters on it, and writes the table
// of docs/comparison.md.
//   npm run corpus [-- --seed=N] [--only=TEXT] [--write]
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './build.mjs';
import { npmFolder } from './caches.mjs';

process.env.ROLLGATE_TESTS = 'all'; // all stores
const require = createRequire(import.meta.url);
const { SEED, linesOf } = require('../test/conformance/corpus');
const { breaksPromise, judge, tableOf } = require('../test/corpus/judge');
const { VERSIONS, loadPeers } = require('../test/corpus/peers');
const { startRedis, stopRedis } = require('../test/support/redis-server');

const { values: options } = parseArgs({
  options: {
    seed: { type: 'string', default: String(SEED) },
    only: { type: 'string', default: '' },
    write: { type: 'boolean', default: false },
  },
});
const seed = Number(options.seed);
const PAGE = join(root, 'docs/comparison.md');
const [BEGIN, END] = ['<!-- npm run corpus writes this part -->', '<!-- the end of that part -->'];

const begunAt = Date.now();
const file = join(root, 'build/corpus/corpus.jsonl');
mkdirSync(join(root, 'build/corpus'), { recursive: true });
const lines = linesOf(seed);
const text = `${lines.join('\n')}\n`;
writeFileSync(file, text);
const [header, ...written] = lines;
console.log(`${file}: ${header}, ${(text.length / 1e6).toFixed(1)} MB`);

const isWanted = (name) => name.includes(options.only);
const rows = [];
let failed = false;

function report(row) {
  rows.push(row);
  const verdicts = Object.entries(row.verdicts).map(([promise, { cannot, tried, failures }]) => {
    const kinds = failures?.map(
      ({ kind, isPromised }) => `${isPromised ? 'BROKEN' : 'not promised'} ${kind}`,
    );
    return `${promise}: ${cannot ?? `${tried} traces ${kinds.join(', ')}`}`;
  });
  console.log(`${row.name}, ${row.algorithm}; ${verdicts.join('; ')}`);
}

async function runStores(traces) {
  const {
    ALGORITHM_NAMES,
    EACH_STORE,
    differences,
    rollgateSubject,
  } = require('../test/corpus/rollgate');
  for (const [name, store] of EACH_STORE.filter(([each]) => isWanted(each))) {
    const place = await store.open();
    const { tried, found } = await differences(store, place, written);
    console.log(`${name}: ${tried - found.length} of ${tried} traces answered as written`);
    if (found.length > 0) console.log(JSON.stringify(found[0]));
    failed ||= found.length > 0;
    for (const algorithm of ALGORITHM_NAMES) {
      const subject = rollgateSubject(store, place, algorithm);
      const own = traces.filter(
        ({ policy, part }) => part === 'steps' || policy.algorithm === algorithm,
      );
      const verdicts = await judge(subject, own);
      failed ||= breaksPromise(verdicts);
      report({ ...subject, verdicts });
    }
    await place.close();
  }
}

async function runPeers(traces) {
  const server = await startRedis();
  const Redis = require('ioredis');
  const redis = new Redis(server.url);
  const folder = npmFolder('corpus', VERSIONS, ['--legacy-peer-deps']);
  for (const subject of await loadPeers(folder, redis)) {
    if (isWanted(subject.name)) report({ ...subject, verdicts: await judge(subject, traces) });
  }
  redis.disconnect();
  await stopRedis([server]);
}

function writeTable() {
  const page = readFileSync(PAGE, 'utf8');
  const [before, rest] = page.split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error(`${PAGE} lacks "${BEGIN}" or "${END}"`);
  writeFileSync(PAGE, `${before}${BEGIN}\n\n${tableOf(rows)}\n\n${END}${after}`);
  console.log(`Written: ${PAGE}`);
}

if (!options.write) {
  const traces = written.map((line) => JSON.parse(line));
  await runPeers(traces);
  await runStores(traces);
  if (seed === SEED && options.only === '') writeTable();
  console.log(`It took ${Math.round((Date.now() - begunAt) / 1000)} s.`);
  process.exitCode = failed ? 1 : 0;
}
