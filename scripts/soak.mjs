// Puts limiters under load for minutes, and checks for errors and for growing memory:
//   npm run soak [-- --minutes=5] [--only=memory|redis|shared] [--seed=N]
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { build, root } from './build.mjs';
import { runCases } from './lib/cases.mjs';
import { chosen } from './lib/chosen.mjs';
import { endOf, main } from './lib/commands.mjs';

const PARTS = process.platform === 'linux' ? ['memory', 'redis', 'shared'] : ['memory', 'redis'];

/** Without a limit, V8's heap grows for minutes, which hides other growth. */
const FLAGS = ['--expose-gc', '--max-old-space-size=96', '--max-semi-space-size=4'];

async function runPart(part, seconds, seed) {
  console.log(`\n== ${part}, ${seconds} s, seed ${seed}`);
  const args = [join('test/soak', `${part}.js`), `--seconds=${seconds}`, `--seed=${seed}`];
  const end = await endOf(process.execPath, [...FLAGS, ...args], {
    cwd: root,
    timeout: (seconds + 120) * 1000, // then it hangs
    killSignal: 'SIGKILL',
  });
  if (end !== 0) throw new Error(`ended with ${end}`);
}

await main('soak', async () => {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '5' },
      only: { type: 'string' },
      seed: { type: 'string', default: String(Date.now() % 1e9) },
    },
  });
  const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
  if (!(minutes > 0) || !Number.isSafeInteger(seed)) {
    throw new Error('--minutes takes a number above 0, --seed a whole one');
  }
  const parts = chosen(values.only && [values.only], PARTS, '--only');
  if (!process.env.ROLLGATE_PREBUILD) build(['addon']);
  const seconds = Math.ceil((minutes * 60) / parts.length);
  const cases = parts.map((name) => ({ name }));
  await runCases(cases, 1, ({ name }) => runPart(name, seconds, seed));
});
