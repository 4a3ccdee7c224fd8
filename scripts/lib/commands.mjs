// Runs commands to their end, and work on many things side by side.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';

/** The output of a command; throws with the last lines of it if it fails. */
export function must(command, args, options = {}) {
  const { error, status, signal, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    ...options,
  });
  if (!error && status === 0) return stdout;
  const end = error?.message ?? `ended with ${signal ?? status}`;
  const output = `${stdout ?? ''}${stderr ?? ''}`.split('\n').slice(-50).join('\n');
  throw new Error(`${command} ${args[0]}: ${end}${output && `\n${output}`}`);
}

/** Runs a command beside others, with its output here; gives its exit code, or the signal that ended it. */
export async function endOf(command, args, options = {}) {
  const child = spawn(command, args, { stdio: 'inherit', ...options });
  const [code, signal] = await once(child, 'close');
  return signal ?? code;
}

/** Runs `work` on each item, on as many at a time as there are jobs. */
export async function forEach(items, jobs, work) {
  const waiting = [...items];
  const next = async (_, job) => {
    while (waiting.length > 0) await work(waiting.shift(), job);
  };
  await Promise.all(Array.from({ length: jobs }, next));
}

/** Runs a script; an error becomes its last line and its exit code. */
export async function main(name, script) {
  try {
    await script();
  } catch ({ message }) {
    console.error(`${name}: ${message}`);
    process.exitCode = 1;
  }
}
