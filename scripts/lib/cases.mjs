// Runs cases, prints a line for each, and counts those that fail.
import { forEach } from './commands.mjs';

/**
 * `run(case)` returns what the line of the case says, or throws. Sets the exit code if one fails.
 *
 * @param {{ name: string }[]} cases
 * @param {number} jobs how many run at a time
 */
export async function runCases(cases, jobs, run) {
  const width = Math.max(...cases.map(({ name }) => name.length));
  let failed = 0;
  const print = (verdict, { name }, detail = '') =>
    console.log(`${verdict}  ${name.padEnd(width)}  ${detail}`.trimEnd());
  await forEach(cases, jobs, async (one) => {
    try {
      print('passed', one, await run(one));
    } catch ({ message }) {
      failed += 1;
      print('FAILED', one, message);
    }
  });
  console.log(`${cases.length - failed} passed, ${failed} failed`);
  if (failed > 0) process.exitCode = 1;
}
