// Runs the project's example programs as child processes, with a bound on their time.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { patient } = require('../support/tiers');

const ROOT = path.join(__dirname, '..', '..');
const PATIENCE_MS = patient(20_000);

/** Starts an example: the child, all it has printed so far, and a promise of its end. */
function start(example, env = {}) {
  const child = spawn(process.execPath, [path.join('examples', example)], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const running = { child, output: '' };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text) => {
      running.output += text;
      child.emit('printed');
    });
  }
  const impatience = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  running.ended = once(child, 'close').then(([code, signal]) => {
    clearTimeout(impatience);
    return { code, signal };
  });
  return running;
}

/** Runs an example that ends by itself. */
async function run(example) {
  const running = start(example);
  const { code, signal } = await running.ended;
  return { code, signal, output: running.output };
}

/** Starts an example that serves, and waits until it has printed its URL. */
async function serve(example, env) {
  const running = start(example, { PORT: '0', ...env });
  running.ended.then(() => running.child.emit('printed'));
  for (;;) {
    const url = /http:\/\/\S+?(?=\/\s)/.exec(running.output)?.[0];
    if (url !== undefined) return { ...running, url, printed: () => running.output };
    if (running.child.exitCode !== null || running.child.signalCode !== null) {
      throw new Error(`${example} ended: ${running.output}`);
    }
    await once(running.child, 'printed');
  }
}

/** Asks a serving example to stop, the way Ctrl+C or a service manager does. */
async function stop({ child, ended }, signal = 'SIGTERM') {
  child.kill(signal);
  return ended;
}

module.exports = { run, serve, stop };
