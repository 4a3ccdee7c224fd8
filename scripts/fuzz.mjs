// Runs the fuzzers of test/fuzz at the same time: npm run fuzz [-- --seconds=60] [--only=states]
// Their findings are in build/fuzz; test/fuzz/corpus has the inputs to start from.
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, root, treeOf } from './build.mjs';
import { runCases } from './lib/cases.mjs';
import { chosen } from './lib/chosen.mjs';
import { endOf, main } from './lib/commands.mjs';

const FUZZERS = ['decisions', 'states'];

/** Enough for long sequences of operations, and for states with many actions. */
const LONGEST_INPUT = 400;

async function fuzz(name, seconds) {
  const found = join(root, 'build/fuzz', name);
  mkdirSync(found, { recursive: true });
  const kept = join(root, 'test/fuzz/corpus', name);
  const end = await endOf(join(treeOf('fuzz'), `${name}_fuzz`), [
    `-max_total_time=${seconds}`,
    `-max_len=${LONGEST_INPUT}`,
    `-artifact_prefix=${found}/found-`,
    '-print_final_stats=1',
    '-verbosity=0',
    found,
    ...(existsSync(kept) ? [kept] : []),
  ]);
  if (end !== 0) throw new Error(`see ${found}`);
}

await main('fuzz', async () => {
  const options = { seconds: { type: 'string', default: '60' }, only: { type: 'string' } };
  const { only, seconds } = parseArgs({ options }).values;
  if (!(Number(seconds) >= 1)) throw new Error('--seconds takes a number >= 1');
  const names = chosen(only && [only], FUZZERS, '--only');
  build(['fuzz'], { variant: 'fuzz' });
  console.log(`\n== ${names.join(', ')}, ${seconds} s`);
  const cases = names.map((name) => ({ name }));
  await runCases(cases, cases.length, ({ name }) => fuzz(name, seconds));
});
