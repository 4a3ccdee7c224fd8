// Runs the fuzzers of test/fuzz one after the other: npm run fuzz [-- --seconds=60] [--only=states]
// Their findings are in build/fuzz; test/fuzz/corpus has the inputs to start from.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, root, treeOf } from './build.mjs';

const FUZZERS = ['decisions', 'states'];

/** Enough for long sequences of operations, and for states with many actions. */
const LONGEST_INPUT = 400;

function fuzz(name, seconds) {
  console.log(`\n== ${name}, ${seconds} s`);
  const found = join(root, 'build/fuzz', name);
  mkdirSync(found, { recursive: true });
  const kept = join(root, 'test/fuzz/corpus', name);
  const { status } = spawnSync(
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
  return status === 0;
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
const failed = names.filter((name) => !fuzz(name, seconds));
console.log(failed.length ? `\nFAILED: ${failed.join(', ')}` : '\nThe fuzzers found nothing.');
process.exitCode = failed.length ? 1 : 0;
