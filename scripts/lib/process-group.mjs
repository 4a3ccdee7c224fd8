// Runs a command in a process group of its own, so that all that it starts ends with it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { finished } from 'node:stream/promises';

const LAST_OUTPUT_MS = 5000;

/** Functions that kill the groups that run. */
const running = new Set();

const SIGNALS = ['SIGINT', 'SIGTERM'];

/** Without this, the groups would outlive this process. */
function endAll(signal) {
  for (const end of running) end();
  process.exit(128 + constants.signals[signal]);
}

/** Only while a group runs: a process that listens to a signal does not end by it during a spawnSync. */
function add(end) {
  if (running.size === 0) for (const signal of SIGNALS) process.on(signal, endAll);
  running.add(end);
}

function remove(end) {
  running.delete(end);
  if (running.size === 0) for (const signal of SIGNALS) process.off(signal, endAll);
}

/** Collects what a process prints. */
function outputOf(child) {
  const output = { stdout: '', stderr: '', text: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (text) => {
      output[name] += text;
      output.text += text;
    });
  }
  return output;
}

/**
 * The group is killed after the timeout, and when `until(signal, child, output)` is settled. Its signal is aborted when
 * the command has ended.
 *
 * @returns {Promise<{ code, signal, isLate: boolean, answer, stdout: string, stderr: string, text: string }>}
 *   `answer` is that of `until`; undefined if the command ended before
 */
export async function runGroup([program, ...args], { timeoutMs, until, stdio, ...options }) {
  const child = spawn(program, args, {
    ...options,
    detached: true,
    stdio: stdio ?? ['ignore', 'pipe', 'pipe'],
  });
  const output = outputOf(child);
  let isLate = false;
  const end = () => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {} // all have ended
  };
  add(end);
  const timer = setTimeout(() => {
    isLate = true;
    end();
  }, timeoutMs);
  const ended = new AbortController();
  try {
    const exited = once(child, 'exit').finally(() => ended.abort());
    const gone = exited.then(() => {});
    const settled = until ? until(ended.signal, child, output) : gone;
    const answer = await Promise.race([settled, gone]).finally(end); // with what it has started and left
    const [code, signal] = await exited;
    await closed(child);
    return { code, signal, isLate, answer, ...output };
  } catch (error) {
    throw new Error(`${error.message}\n${output.text}`);
  } finally {
    clearTimeout(timer);
    remove(end);
  }
}

/** Once all of its output has come. A process that has left the group may keep the pipes open, so this has a bound. */
async function closed({ stdout, stderr }) {
  const signal = AbortSignal.timeout(LAST_OUTPUT_MS);
  await Promise.allSettled([finished(stdout, { signal }), finished(stderr, { signal })]);
  stdout.destroy();
  stderr.destroy();
}

/** Why a run failed; undefined if it did not. */
export function failureOf({ code, signal, isLate }) {
  if (isLate) return 'was not done in time';
  if (signal) return `was ended by ${signal}`;
  return code === 0 ? undefined : `ended with ${code}`;
}
