// Builds for other systems, and runs the tests where this machine can: npm run cross [-- arm64 windows] [--only=jest]
// --only: the steps whose names contain this
import { join } from 'node:path';
import { root } from '../build.mjs';
import { chosen } from '../lib/chosen.mjs';
import { must } from '../lib/commands.mjs';
import { logged } from '../lib/step.mjs';

const TARGETS = ['arm64', 'windows'];

export const options = { only: { type: 'string', default: '' } };

export async function casesOf({ only }, names) {
  const cases = [];
  for (const target of chosen(names, TARGETS, 'cross')) {
    const { steps } = await import(`../lib/cross/${target}.mjs`);
    for (const [name, step] of Object.entries(steps)) {
      if (name.includes(only)) cases.push({ name: `${target} ${name}`, target, step });
    }
  }
  return cases;
}

export function setUp(cases) {
  for (const target of new Set(cases.map((one) => one.target))) {
    const setup = [join(root, 'scripts/setup.mjs'), `--for=cross-${target}`];
    must(process.execPath, setup, { stdio: 'inherit' });
  }
}

export function run({ name, step }) {
  const started = Date.now();
  const text = logged(name.replace(' ', '-'), step);
  const [, , count = ''] = /^(\[ {2}PASSED {2}\]|Tests:|result:) +(.+)/m.exec(text) ?? [];
  return `${((Date.now() - started) / 1000).toFixed(0).padStart(4)} s  ${count}`;
}
