// Runs a program in a Node of its own, a small one or an example, for what can only be seen from outside.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const path = require('node:path');
const { patient } = require('./tiers');

const ROOT = path.join(__dirname, '..', '..');
const PATIENCE_MS = patient(25_000 * (process.env.ROLLGATE_SANITIZED ? 4 : 1));

/** Starts Node with these arguments: the child, what it has printed so far, and a promise of its end. */
function start(args, env, patience = 1) {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (text) => {
      output[name] += text;
      child.emit('printed');
    });
  }
  const impatience = setTimeout(() => child.kill('SIGKILL'), patience * PATIENCE_MS);
  const ended = once(child, 'close').then(([code, signal]) => {
    clearTimeout(impatience);
    child.emit('printed');
    return { code, signal, ...output };
  });
  return { child, output, ended };
}

/**
 * Runs `source` with `require`, or as a module if `type` is 'module'; the package can be imported by
 * its name; `env` is added to the environment. A program that does not end by itself is killed, and `signal` says so;
 * one that does much more than others needs so many times the usual `patience`.
 *
 * @returns {Promise<{ code: number | null, signal: string | null, stdout: string, stderr: string }>}
 */
function runProgram(source, { type = 'commonjs', flags = [], env = {}, patience } = {}) {
  return start([...flags, `--input-type=${type}`, '--eval', source], env, patience).ended;
}

/** Runs a program that serves, until it has printed what `pattern` finds, which is its `found`. */
async function serve(args, env, pattern) {
  const { child, output, ended } = start(args, env);
  for (;;) {
    const found = pattern.exec(output.stdout)?.[0];
    if (found !== undefined) return { child, output, ended, found };
    if (child.exitCode !== null || child.signalCode !== null) {
      throw new Error(`${args} ended: ${output.stdout}${output.stderr}`);
    }
    await once(child, 'printed');
  }
}

/** Asks a program to stop, the way Ctrl+C or a service manager does. */
async function stop({ child, ended }, signal = 'SIGTERM') {
  child.kill(signal);
  const { code, signal: by } = await ended;
  return { code, signal: by };
}

/** Runs one of the examples that end by themselves. */
const runExample = (name) => start([path.join('examples', name)]).ended;

/** Serves one of the examples; `url` is without the last slash. */
async function serveExample(name, env) {
  const served = await serve(
    [path.join('examples', name)],
    { PORT: '0', ...env },
    /http:\/\/\S+?(?=\/\s)/,
  );
  return { ...served, url: served.found };
}

/** The same for a program that prints one line of JSON and must end well; returns what it printed. */
async function askProgram(source, options) {
  const { code, signal, stdout, stderr } = await runProgram(source, options);
  if (code !== 0) throw new Error(`the program ended with ${code ?? signal}: ${stderr}${stdout}`);
  return JSON.parse(stdout);
}

/**
 * `loadIn(context)` gives a fresh copy of the package whose code runs in that context, as test runners do
 * it; Node's own modules and the addon are shared.
 */
const LOAD_IN = `
  const fs = require('node:fs');
  const path = require('node:path');
  const vm = require('node:vm');
  const { createRequire, isBuiltin } = require('node:module');
  function loadIn(context) {
    const cache = new Map();
    function load(file) {
      if (cache.has(file)) return cache.get(file).exports;
      const module = { exports: {}, path: path.dirname(file) };
      cache.set(file, module);
      const outer = createRequire(file);
      const inner = (name) => {
        if (isBuiltin(name) || !/^[.#]/.test(name)) return outer(name);
        const found = outer.resolve(name);
        return found.includes('node_modules') ? outer(name) : load(found);
      };
      const source = '(function (module, exports, require, __filename, __dirname, process) {' + fs.readFileSync(file, 'utf8') + '})';
      vm.runInContext(source, context, { filename: file })(module, module.exports, inner, file, path.dirname(file), process);
      return module.exports;
    }
    return load(path.resolve('lib/index.js'));
  }
`;

module.exports = { askProgram, LOAD_IN, runExample, runProgram, serve, serveExample, stop };
