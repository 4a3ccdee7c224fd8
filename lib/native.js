// Finds and loads the native addon when the first limiter is created; the only file that does.
'use strict';

const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');
const { fileURLToPath, URL } = require('node:url');
const { failure, show, typeError } = require('./errors');

const NAME = 'rollgate.node';
const CODE = 'ERR_ROLLGATE_ADDON';

/** e_machine in an ELF header, by process.arch. */
const ELF_MACHINES = { ia32: 3, arm: 40, x64: 62, arm64: 183, riscv64: 243, loong64: 258 };

let addon;
/** The file of `addon`; unknown where ncc loads it. */
let addonFile;
/** As setAddonPath got it. */
let chosenFile;

/** False in a bundle. There __dirname and __filename are those of the bundle, missing or made up. */
function runsInPackage() {
  return (
    typeof __filename === 'string' &&
    path.basename(__filename) === 'native.js' &&
    fs.existsSync(__filename)
  );
}

/**
 * Where the addon may be, in the order of the search; a path that the user gave is the only one. `find` and
 * `load` throw what is wrong with the place.
 *
 * @returns {{ name: string, find: () => string, load: () => object }[]}
 */
function places() {
  if (chosenFile !== undefined) return [fileAt(chosenFile, ' (setAddonPath)')];
  const { ROLLGATE_ADDON } = process.env;
  if (ROLLGATE_ADDON) return [fileAt(path.resolve(ROLLGATE_ADDON), ' (ROLLGATE_ADDON)')];
  const main = process.argv[1] && path.join(path.dirname(process.argv[1]), NAME);
  if (runsInPackage()) return [packageFolder(), ...(main ? [fileAt(main)] : [])];
  const here = typeof __dirname === 'string' && path.join(__dirname, NAME);
  const files = [...new Set([here, main])].filter(Boolean);
  return [...files.map((file) => fileAt(file)), copyOfBundler];
}

function fileAt(file, origin = '') {
  const find = () => {
    if (!fs.existsSync(file)) throw new Error('does not exist');
    if (!fs.statSync(file).isFile()) throw new Error('is not a file');
    return file;
  };
  return { name: file + origin, find, load: () => open(find()) };
}

/** By module.path: from __dirname bundlers would conclude that they have to copy the whole folder. */
function packageFolder() {
  const { ROLLGATE_PREBUILD } = process.env; // node-gyp-build reads it, too
  const folder = path.resolve(ROLLGATE_PREBUILD || path.dirname(module.path));
  const find = () => {
    if (!fs.existsSync(folder)) throw new Error('does not exist');
    try {
      return require('node-gyp-build').path(folder);
    } catch (error) {
      const [reason] = error.message.split('\n');
      throw new Error(`${reason}; there are ${prebuildsIn(folder).join(', ') || 'no prebuilds'}`);
    }
  };
  const origin = ROLLGATE_PREBUILD ? ' (ROLLGATE_PREBUILD)' : '';
  return { name: folder + origin, find, load: () => open(find()) };
}

function prebuildsIn(folder) {
  const prebuilds = path.join(folder, 'prebuilds');
  if (!fs.existsSync(prebuilds)) return [];
  return fs
    .readdirSync(prebuilds, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) =>
      fs.readdirSync(path.join(prebuilds, name)).map((file) => `prebuilds/${name}/${file}`),
    );
}

/**
 * ncc and @vercel/nft know the call in `load`: they copy the addon, and ncc replaces the call. ncc does so
 * only in a file without `??=`, `||=` and `&&=`, which its parser does not know.
 */
const copyOfBundler = {
  name: "the bundler's copy",
  find() {
    throw new Error('is not known');
  },
  load() {
    try {
      return require('node-gyp-build')(path.dirname(__dirname));
    } catch (error) {
      if (error.code === 'ERR_DLOPEN_FAILED') throw error;
      throw new Error('there is none');
    }
  },
};

/** Not by require, which bundlers rewrite. */
function open(file) {
  if (process.platform === 'linux') checkElf(file);
  if (process.dlopen === undefined) return createRequire(file)(file);
  const loaded = { exports: {} };
  process.dlopen(loaded, file);
  addonFile = file;
  return loaded.exports;
}

/**
 * Of a file that is cut short dlopen ends the process by SIGBUS, and of another processor's it says that it
 * does not exist. The section headers are the last part of an ELF file.
 */
function checkElf(file) {
  const header = new DataView(new ArrayBuffer(64));
  const descriptor = fs.openSync(file);
  let size;
  try {
    fs.readSync(descriptor, header);
    size = fs.fstatSync(descriptor).size;
  } finally {
    fs.closeSync(descriptor);
  }
  const isLittleElf64 =
    size >= header.byteLength &&
    header.getUint32(0) === 0x7f454c46 &&
    header.getUint16(4) === 0x201;
  if (!isLittleElf64) return; // dlopen says what it is
  const machine = header.getUint16(18, true);
  const expected = ELF_MACHINES[process.arch] ?? machine;
  if (machine !== expected) {
    const arch = Object.keys(ELF_MACHINES).find((name) => ELF_MACHINES[name] === machine);
    throw new Error(`is built for ${arch ?? 'another processor'}, not for ${process.arch}`);
  }
  const sections = header.getUint16(58, true) * header.getUint16(60, true);
  const expectedSize = Number(header.getBigUint64(40, true)) + sections;
  if (size < expectedSize) throw new Error(`is truncated: ${size} of ${expectedSize} bytes`);
}

/**
 * @returns {{ createMemoryLimiter: Function, createPortableLimiter: Function, createRedisClient?: Function,
 *   createSharedLimiter?: Function, unlinkShared?: Function, redisHasTls?: boolean, liveLimiters: () => number }}
 */
function loadAddon() {
  if (addon !== undefined) return addon;
  addon = firstOf(places(), (place) => {
    const loaded = place.load();
    if (typeof loaded.createMemoryLimiter === 'function') return loaded;
    throw new Error("is an addon, but not rollgate's");
  });
  return addon;
}

function addonPath() {
  return addonFile ?? firstOf(places(), (place) => place.find());
}

function setAddonPath(file) {
  const isUrl = file instanceof URL || (typeof file === 'string' && file.startsWith('file:'));
  if (!isUrl && (typeof file !== 'string' || file === '')) {
    const expected = 'expected the path of a .node file or a file: URL';
    throw typeError('ERR_ROLLGATE_OPTION', `setAddonPath: ${expected}, got ${show(file)}`);
  }
  const chosen = path.resolve(isUrl ? fileURLToPath(file) : file);
  if (addon !== undefined && chosen !== addonFile) {
    const from = addonFile ?? copyOfBundler.name;
    throw failure(
      CODE,
      `setAddonPath: the addon was loaded from ${from} already; call it before the first limiter is created`,
    );
  }
  chosenFile = chosen;
}

/** What `use` makes of the first place at which it does not throw. */
function firstOf(candidates, use) {
  const errors = [];
  for (const place of candidates) {
    try {
      return use(place);
    } catch (error) {
      errors.push(error);
    }
  }
  const tried = candidates.map(({ name }, i) => `\n- ${name}: ${reasonOf(errors[i])}`);
  const system = `${process.platform}-${process.arch}, Node ${process.versions.node}`;
  throw failure(
    CODE,
    `rollgate's native addon cannot be loaded (${system}). Tried in this order:${tried.join('')}\n${advice()}`,
    errors.find(({ code }) => code === 'ERR_DLOPEN_FAILED') ?? errors[0],
  );
}

/** dlopen's messages begin with the path of the file, which stands before the reason. */
function reasonOf({ message }) {
  return message.trim().replace(/^\/.*?: /, '');
}

function advice() {
  if (chosenFile !== undefined) return 'Correct the path that setAddonPath gets.';
  for (const variable of ['ROLLGATE_ADDON', 'ROLLGATE_PREBUILD']) {
    if (process.env[variable]) return `Correct or remove the environment variable ${variable}.`;
  }
  if (runsInPackage()) {
    const script = path.join(packageFolder().name, 'scripts/install.mjs');
    if (fs.existsSync(script)) {
      return `Run 'node ${script}': it builds the addon, or says what is missing for that.`;
    }
  }
  return (
    `This is a bundle or a copy without the addon: copy the addon as ${NAME} next to the script that is run, or ` +
    'set the environment variable ROLLGATE_ADDON to its path. In the project, this prints its path: ' +
    `node -p "require('rollgate').addonPath()". More in docs/bundling.md of the package rollgate.`
  );
}

module.exports = { addonPath, loadAddon, setAddonPath };
