// The program of a simulated process: modules of lib, loaded for it alone, whose clocks, timers and random numbers are
// its own.
'use strict';

const fs = require('node:fs');
const { isBuiltin } = require('node:module');
const path = require('node:path');
const vm = require('node:vm');

const ROOT = path.join(__dirname, '../../..');
const { imports } = require('../../../package.json');

const OF_MODULES = 'exports, require, module, __filename, __dirname';
/** Loaded once, because they have no time: the addon. */
const SHARED = /^lib\/native\//;

/** Compiled, by file. */
const compiled = new Map();

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

/**
 * @param {object} host of the process
 * @param {object} host.globals take the place of global names
 * @param {object} host.modules take the place of Node's modules and of files of lib, by name
 * @returns {(file: string) => any} gives what a file exports
 */
function createProgram({ globals, modules }) {
  const loaded = new Map();

  function compile(file) {
    if (!compiled.has(file)) {
      const filename = path.join(ROOT, file);
      const own = `return function (${OF_MODULES}) {${fs.readFileSync(filename, 'utf8')}\n}`;
      compiled.set(file, vm.compileFunction(own, Object.keys(globals), { filename }));
    }
    return compiled.get(file)(...Object.values(globals));
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
    return module.exports;
  }
  return load;
}

module.exports = { createProgram };
