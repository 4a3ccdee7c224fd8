// The package loaded into a context of vm, for programs of their own.
'use strict';

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
        if (isBuiltin(name) || !name.startsWith('.')) return outer(name);
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

module.exports = { LOAD_IN };
