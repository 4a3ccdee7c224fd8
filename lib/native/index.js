// Picks what decides on Node, Bun and Deno: the addon if it loads, else the same core as WebAssembly. package.json maps
// `#native` to this file or, where there are no modules of Node, to web.js.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { failure, show } = require('../base/errors');
const { filesNearby, goWithoutAddon, loadAddon, placeIsChosen, runsInPackage } = require('./addon');

const NAME = 'rollgate.wasm';

let binding;

/** The functions of src/binding/addon.h; without the addon, those that the WebAssembly module has. */
function loadBinding() {
  binding ??= pick();
  return binding;
}

/** The addon's clock that counts while the host sleeps, in ms; undefined where there is no addon. */
function bootClock() {
  if (binding !== undefined) return binding.bootMs;
  if (process.env.ROLLGATE_BINDING === 'wasm') return undefined;
  try {
    return loadAddon().bootMs;
  } catch {
    return undefined; // nobody has asked for the addon
  }
}

function pick() {
  const { ROLLGATE_BINDING: forced } = process.env;
  if (forced === 'native') return loadAddon();
  if (forced === 'wasm') return loadWasm();
  if (forced) {
    const what = `environment variable ROLLGATE_BINDING: expected 'native' or 'wasm', got ${show(forced)}`;
    throw failure('ERR_ROLLGATE_ADDON', what);
  }
  try {
    return loadAddon();
  } catch (error) {
    // A wrong path of the user's is not hidden.
    if (placeIsChosen()) throw error;
    return insteadOfAddon(error);
  }
}

function insteadOfAddon(error) {
  let module;
  try {
    module = loadWasm();
  } catch ({ message }) {
    throw failure(error.code, `${error.message}\n${message}`, error.cause);
  }
  process.emitWarning(
    "rollgate runs as WebAssembly, without 'shared' and the native Redis client, because its native addon does not " +
      'load. See rollgate/docs/errors.md#rollgate_wasm',
    { type: 'RollgateWarning', code: 'ROLLGATE_WASM', detail: error.message },
  );
  return module;
}

function loadWasm() {
  const { compile, createBinding, wasmError } = require('./wasm');
  const files = runsInPackage() ? [path.join(module.path, 'wasm', NAME)] : filesNearby(NAME);
  const file = files.find((each) => fs.existsSync(each));
  if (file === undefined) throw wasmError(`there is no file ${files.join(' or ')}`);
  let bytes;
  try {
    bytes = fs.readFileSync(file);
  } catch (error) {
    throw wasmError(error.message, error);
  }
  const created = createBinding(compile(bytes, file));
  goWithoutAddon();
  return created;
}

module.exports = { bootClock, loadBinding };
