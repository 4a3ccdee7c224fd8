// Runs a small program in a Node of its own, for what can only be seen from outside.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');

const ROOT = path.join(__dirname, '..', '..');
const PATIENCE_MS = 25_000 * (process.env.ROLLGATE_SANITIZED ? 4 : 1);

/**
 * Runs `source` with `require`, or as a module if `type` is 'module'; the package can be imported by
 * its name; `env` is added to the environment. A program that does not end by itself is killed, and `signal` says so.
 *
 * @returns {Promise<{ code: number | null, signal: string | null, stdout: string, stderr: string }>}
 */
async function runProgram(source, { type = 'commonjs', flags = [], env = {} } = {}) {
  const args = [...flags, `--input-type=${type}`, '--eval', source];
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8');
    child[name].on('data', (text) => {
      output[name] += text;
    });
  }
  const impatience = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  const [code, signal] = await once(child, 'close');
  clearTimeout(impatience);
  return { code, signal, ...output };
}

/** The same for a program that prints one line of JSON and must end well; returns what it printed. */
async function askProgram(source, options) {
  const { code, signal, stdout, stderr } = await runProgram(source, options);
  if (code !== 0) throw new Error(`the program ended with ${code ?? signal}: ${stderr}${stdout}`);
  return JSON.parse(stdout);
}

module.exports = { askProgram, runProgram };
