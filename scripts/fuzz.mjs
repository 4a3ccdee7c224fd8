// Runs the fuzzers of test/fuzz at the same time: npm run fuzz [-- --seconds=60] [--only=states]
// Their findings are in build/fuzz; test/fuzz/corpus has the inputs to start from.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, root, treeOf } from './build.mjs';

const FUZZERS = ['decisions', 'states'];

/** Enough for long sequences of operations, and for states with many actions. */
const LONGEST_INPUT = 400;

/** Returns whether the fuzzer found nothing. */
async function fuzz(name, seconds) {
  const found = join(root, 'build/fuzz', name);
  mkdirSync(found, { recursive: true });
  const kept = join(root, 'test/fuzz/corpus', name);
  const child = spawn(
    join(treeOf('fuzz'), `${name}_fuzz`),
    [
      `-max_total_time=${seconds}`,
      `-max_len=${LONGEST_INPUT}`,
      `-artifact_prefix=${found}/found-`,
      '-print_final_stats=1',
      '-verbosity=0',
      found,
      ...(existsSync(kept) ? [kept] : []),
    ],
    { stdio: 'inherit' },
  );
  const [code] = await once(child, 'close');
  return code === 0;
}

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '60' }, only: { type: 'string' } },
});
const seconds = Number(values.seconds);
const names = values.only ? [values.only] : FUZZERS;
if (!Number.isInteger(seconds) || seconds < 1 || !names.every((name) => FUZZERS.includes(name))) {
  console.error(`fuzz: --seconds takes a number >= 1, --only one of ${FUZZERS.join(', ')}`);
  process.exit(2);
}
build(['fuzz'], { variant: 'fuzz' });
console.log(`\n== ${names.join(', ')}, ${seconds} s`);
const passed = await Promise.all(names.map((name) => fuzz(name, seconds)));
const failed = names.filter((_, i) => !passed[i]);
console.log(failed.length ? `\nFAILED: ${failed.join(', ')}` : '\nThe fuzzers found nothing.');
process.exitCode = failed.length ? 1 : 0;
