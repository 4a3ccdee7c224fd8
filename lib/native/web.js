// The native side where there are no modules of Node: the core as WebAssembly. package.json maps `#native` to this file,
// and `#module` to the WebAssembly module of each platform.
'use strict';

const { createBinding } = require('./wasm');

/** A WebAssembly.Module, or a function that returns it. */
let given;
let binding;

/** For an entry that knows the module before the first limiter is created. */
function useModule(module) {
  given = module;
}

/** The functions of src/binding/addon.h that the WebAssembly module has. */
function loadBinding() {
  if (binding !== undefined) return binding;
  given ??= require('#module').default;
  binding = createBinding(typeof given === 'function' ? given() : given);
  return binding;
}

module.exports = { loadBinding, useModule };
