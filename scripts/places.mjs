// Tries the package in other places, one of the kinds in the folder `places`:
//   npm run systems | runtimes | hosts | bundlers | servers | cross [-- NAME...] [--list], and the options of the kind
//
// A kind exports `names`, which NAME can be, or `options`, those of parseArgs, and `casesOf(values, names)`, which gives the
// chosen cases, each with a `name`; `setUp(cases, values)`, whose result `run(case, context)` gets, which returns what the
// line of the case says, or throws; and as far as it has them: `jobs`, how many run at a time; `unavailable()`, why nothing
// can be tried here; `tearDown(context)`; `report(values, cases)`, which prints more and throws if that is not well.
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { runCases } from './lib/cases.mjs';
import { chosen } from './lib/chosen.mjs';
import { main } from './lib/commands.mjs';

const { removeFolders } = createRequire(import.meta.url)('../test/support/tarball.js');

const [kind, ...args] = process.argv.slice(2);
process.once('exit', removeFolders); // also when a signal has ended a group

await main(kind, async () => {
  const place = await import(`./places/${kind}.mjs`);
  const options = { ...place.options, list: { type: 'boolean' } };
  const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
  const cases = place.casesOf
    ? await place.casesOf(values, positionals)
    : chosen(positionals, place.names, kind).map((name) => ({ name }));
  if (values.list) return console.log(cases.map(({ name }) => name).join('\n'));
  if (cases.length === 0) throw new Error('no case is chosen');
  const reason = place.unavailable?.();
  if (reason) return console.log(`nothing was tried, because ${reason}`);
  const context = await place.setUp(cases, values);
  try {
    await runCases(cases, place.jobs ?? 1, (one) => place.run(one, context));
  } finally {
    await place.tearDown?.(context);
  }
  place.report?.(values, cases);
});
