// Puts limiters under load for minutes, and checks for errors and for growing memory:
//   npm run soak [-- --minutes=5] [--only=memory|redis|shared] [--seed=N]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, root } from './build.mjs';

const PARTS = process.platform === 'linux' ? ['memory', 'redis', 'shared'] : ['memory', 'redis'];

/** Without a limit, V8's heap grows for minutes, which hides other growth. */
const FLAGS = ['--expose-gc', '--max-old-space-size=96', '--max-semi-space-size=4'];

/** A part that takes this much longer than its time hangs. */
const longest = (seconds) => (seconds + 120) * 1000;

async function runPart(part, seconds, seed) {
  console.log(`\n== ${part}, ${seconds} s, seed ${seed}`);
  const args = [...FLAGS, join('test/soak', `${part}.js`)];
  const child = spawn(process.execPath, [...args, `--seconds=${seconds}`, `--seed=${seed}`], {
    cwd: root,
    stdio: 'inherit',
  });
  const impatience = setTimeout(() => child.kill('SIGKILL'), longest(seconds));
  const [code, signal] = await once(child, 'close');
  clearTimeout(impatience);
  return { part, passed: code === 0, end: code ?? signal };
}

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    only: { type: 'string' },
    seed: { type: 'string', default: String(Date.now() % 1e9) },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
const parts = values.only ? [values.only] : PARTS;
if (!(minutes > 0 && minutes <= 24 * 60) || !Number.isSafeInteger(seed)) {
  console.error('soak: --minutes takes a number above 0, up to a day, --seed a whole one');
  process.exit(2);
}
if (!parts.every((part) => PARTS.includes(part))) {
  console.error(`soak: --only takes ${PARTS.join(', ')}, not ${values.only}`);
  process.exit(2);
}
if (!process.env.ROLLGATE_PREBUILD) build(['addon']);
const ends = [];
for (const part of parts) {
  ends.push(await runPart(part, Math.ceil((minutes * 60) / parts.length), seed));
}
console.log();
for (const { part, passed, end } of ends) {
  console.log(`${passed ? 'passed' : 'FAILED'}  ${part}${passed ? '' : ` (ended with ${end})`}`);
}
process.exitCode = ends.every(({ passed }) => passed) ? 0 : 1;
