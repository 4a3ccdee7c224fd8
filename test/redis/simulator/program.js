// The program of a simulated process: modules of lib, loaded for it alone, whose clocks, timers and random numbers are
// its own. A variant of the program is lib with some words replaced.
'use strict';

const { createHash } = require('node:crypto');
const fs = require('node:fs');
const { isBuiltin } = require('node:module');
const path = require('node:path');
const vm = require('node:vm');

const ROOT = path.join(__dirname, '../../..');
const { imports } = require('../../../package.json');

const SCRIPTS = 'lib/stores/redis/scripts.js';
const OF_MODULES = 'exports, require, module, __filename, __dirname';
/** Loaded once, because they have no time: the addon. */
const SHARED = /^lib\/native\//;

/** Compiled, by variant and file. */
const compiled = new Map();

/** Replaces what occurs once. */
function replaced(text, changes, place) {
  let result = text;
  for (const [from, to] of changes) {
    const parts = result.split(from);
    if (parts.length !== 2) throw new Error(`${place}: ${parts.length - 1} times: ${from}`);
    result = parts.join(to);
  }
  return result;
}

const resolved = new Map();

/** From the folder that a file is in, as a path below ROOT. */
function resolve(name, folder) {
  const place = `${folder} ${name}`;
  if (!resolved.has(place)) resolved.set(place, find(name, folder));
  return resolved.get(place);
}

function find(name, folder) {
  const full = imports[name]?.default
    ? path.join(ROOT, imports[name].default)
    : path.resolve(ROOT, folder, name);
  const file = [full, `${full}.js`, path.join(full, 'index.js')].find((each) => {
    return fs.statSync(each, { throwIfNoEntry: false })?.isFile();
  });
  return path.relative(ROOT, file);
}

/** A script is known by its SHA-1, which changes with it. */
function withScripts(scripts, changesOf = {}) {
  const entries = Object.entries(scripts).map(([name, { source: before }]) => {
    const source = replaced(before, changesOf[name] ?? [], name);
    return [name, { source, sha1: createHash('sha1').update(source).digest('hex') }];
  });
  return Object.fromEntries(entries);
}

/**
 * @param {object} host of the process
 * @param {object} host.globals take the place of global names
 * @param {object} host.modules take the place of Node's modules and of files of lib, by name
 * @param {{ name: string, lib?: object, scripts?: object }} variant by file, or by name of a script: what is replaced
 * @returns {(file: string) => any} gives what a file exports
 */
function createProgram({ globals, modules }, variant) {
  const loaded = new Map();

  function compile(file) {
    const key = `${variant.name} ${file}`;
    if (!compiled.has(key)) {
      const source = fs.readFileSync(path.join(ROOT, file), 'utf8');
      const text = replaced(source, variant.lib?.[file] ?? [], file);
      const own = `return function (${OF_MODULES}) {${text}\n}`;
      const options = { filename: path.join(ROOT, file) };
      compiled.set(key, vm.compileFunction(own, Object.keys(globals), options));
    }
    return compiled.get(key)(...Object.values(globals));
  }

  function load(file) {
    if (modules[file] !== undefined) return modules[file];
    if (SHARED.test(file)) return require(path.join(ROOT, file));
    if (loaded.has(file)) return loaded.get(file).exports;
    const module = { exports: {} };
    loaded.set(file, module);
    const requireFrom = (name) => {
      if (!isBuiltin(name)) return load(resolve(name, path.dirname(file)));
      return modules[name] ?? require(name);
    };
    const full = path.join(ROOT, file);
    compile(file)(module.exports, requireFrom, module, full, path.dirname(full));
    if (file === SCRIPTS) module.exports = withScripts(module.exports, variant.scripts);
    return module.exports;
  }
  return load;
}

module.exports = { createProgram };
