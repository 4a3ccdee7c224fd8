// Tries the package in other places, one of the kinds in the folder `places`: npm run systems | runtimes | hosts |
// bundlers | servers [-- NAME...] [--list], and the options of the kind.
//
// A kind exports `options`, those of parseArgs; `casesOf(values, names)`, the chosen ones, each with a `name`;
// `setUp(cases, values)`, whose result `run(case, context)` gets, which returns what the line of the case says, or throws;
// and as far as it has them: `jobs`, how many run at a time; `unavailable()`, why nothing can be tried here;
// `tearDown(context)`; `report(results, values)`, which prints more and returns whether all is well.
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';

const { removeFolders } = createRequire(import.meta.url)('../test/support/tarball.js');

const resultOf = (running) =>
  running.then(
    (detail) => ({ passed: true, detail }),
    ({ message }) => ({ passed: false, detail: message }),
  );

/** The results by case. Each is printed when it is known. */
async function runAll(place, cases, context) {
  const results = new Map();
  const waiting = [...cases];
  const width = Math.max(...cases.map(({ name }) => name.length));
  const work = async () => {
    for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
      const result = await resultOf(place.run(one, context));
      results.set(one, result);
      const verdict = result.passed ? 'passed' : 'FAILED';
      console.log(`${verdict}  ${one.name.padEnd(width)}  ${result.detail ?? ''}`.trimEnd());
    }
  };
  await Promise.all(Array.from({ length: place.jobs ?? 1 }, work));
  return results;
}

async function main(kind, args) {
  const place = await import(`./places/${kind}.mjs`);
  const options = { ...place.options, list: { type: 'boolean' } };
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const cases = place.casesOf(values, positionals);
  if (values.list) return console.log(cases.map(({ name }) => name).join('\n'));
  const reason = place.unavailable?.();
  if (reason) return console.log(`${kind}: nothing was tried, because ${reason}`);
  const context = await place.setUp(cases, values);
  let results;
  try {
    results = await runAll(place, cases, context);
  } finally {
    await place.tearDown?.(context);
  }
  const isWell = place.report?.(results, values) ?? true;
  const failed = [...results.values()].filter(({ passed }) => !passed).length;
  console.log(`${results.size - failed} passed, ${failed} failed`);
  if (failed > 0 || !isWell) process.exitCode = 1;
}

process.once('exit', removeFolders); // also when a signal has ended a group
const [kind, ...args] = process.argv.slice(2);
try {
  await main(kind, args);
} catch (error) {
  console.error(`${kind}: ${error.message}`);
  process.exitCode = 1;
}
