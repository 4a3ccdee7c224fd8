// Finds and loads the native addon when the first limiter is created; the only file that does.
'use strict';

const fs = require('node:fs');
const { createRequire } = require('node:module');
const path = require('node:path');
const { fileURLToPath } = require('node:url');
const { failure, show, typeError } = require('../base/errors');

const NAME = 'rollgate.node';
const CODE = 'ERR_ROLLGATE_ADDON';

let addon;
/** The file of `addon`; unknown if ncc loads it. */
let addonFile;
/** The argument of setAddonPath. */
let chosenFile;
/** See goWithoutAddon. */
let isWithoutAddon = false;

/** False in a bundle, where __dirname and __filename are those of the bundle, missing, or placeholders. */
function runsInPackage() {
  return (
    typeof __filename === 'string' &&
    __filename.endsWith(path.join('lib', 'native', 'addon.js')) &&
    fs.existsSync(__filename)
  );
}

/**
 * The places of the addon, in the order of the search; a path that the user gave is the only one. `find` and
 * `load` throw why the addon is not there; `cause` is the error of the system's loader.
 *
 * @typedef {{ exports: object, file?: string }} Loaded
 * @returns {{ name: string, find: () => string, load: () => Loaded }[]}
 */
function places() {
  if (chosenFile !== undefined) return [fileAt(chosenFile, ' (setAddonPath)')];
  const { ROLLGATE_ADDON } = process.env;
  if (ROLLGATE_ADDON) {
    const refuse = (why) => failure(CODE, `environment variable ROLLGATE_ADDON: ${why}`);
    return [fileAt(readPath(ROLLGATE_ADDON, refuse), ' (ROLLGATE_ADDON)')];
  }
  const files = filesNearby(NAME).map((file) => fileAt(file));
  return runsInPackage() ? [packageFolder(), ...files] : [...files, copyOfBundler];
}

/** Where a file of that name may be: in a bundle, next to it; always, next to the script that runs. */
function filesNearby(name) {
  const here = !runsInPackage() && typeof __dirname === 'string' && path.resolve(__dirname, name);
  const main = process.argv[1] && path.resolve(path.dirname(process.argv[1]), name);
  return [...new Set([here, main].filter(Boolean))];
}

function fileAt(file, origin = '') {
  const find = () => {
    if (!fs.existsSync(file)) throw new Error('does not exist');
    if (!fs.statSync(file).isFile()) throw new Error('is not a file');
    return file;
  };
  return { name: file + origin, find, load: () => open(find()) };
}

/** By module.path: bundlers that see __dirname here would copy the whole folder. */
function packageFolder() {
  const { ROLLGATE_PREBUILD } = process.env; // node-gyp-build reads it, too
  const folder = path.resolve(ROLLGATE_PREBUILD || path.join(module.path, '../..'));
  const find = () => {
    if (!fs.existsSync(folder)) throw new Error('does not exist');
    try {
      return require('node-gyp-build').path(folder);
    } catch (error) {
      const [reason] = error.message.split('\n');
      throw new Error(`${reason}; there are ${prebuildsIn(folder).join(', ') || 'no prebuilds'}`);
    }
  };
  const load = () => {
    const file = find();
    try {
      return open(file);
    } catch ({ message, cause }) {
      throw new Error(`${path.relative(folder, file)}: ${message}`, cause && { cause });
    }
  };
  const origin = ROLLGATE_PREBUILD ? ' (ROLLGATE_PREBUILD)' : '';
  return { name: folder + origin, find, load };
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
 * ncc and @vercel/nft know the call after `return`: they copy the addon, and ncc replaces the call. ncc does
 * so only in a file without `??=`, `||=` and `&&=`, which its parser does not know.
 */
function loadCopyOfBundler() {
  try {
    return require('node-gyp-build')(path.join(__dirname, '../..'));
  } catch (error) {
    if (error.code === 'ERR_DLOPEN_FAILED') throw new Error(error.message, { cause: error });
    throw new Error('there is none');
  }
}

const copyOfBundler = {
  name: "the bundler's copy",
  find() {
    throw new Error('is not known');
  },
  load: () => ({ exports: loadCopyOfBundler() }),
};

/** Not by require, which bundlers rewrite. */
function open(file) {
  if (process.platform === 'linux') checkElf(file);
  if (process.dlopen === undefined) return { exports: createRequire(file)(file), file };
  const loaded = { exports: {} };
  try {
    process.dlopen(loaded, file);
  } catch (error) {
    const message = error.message.trim();
    const start = `${file}: `;
    const reason = message.startsWith(start) ? message.slice(start.length) : message;
    throw new Error(reason, { cause: error });
  }
  return { exports: loaded.exports, file };
}

/** The functions of src/binding/addon.h. */
function loadAddon() {
  if (addon !== undefined) return addon;
  addon = firstOf(places(), (place) => {
    const { exports: loaded, file } = place.load();
    if (typeof loaded?.createMemoryLimiter !== 'function') {
      throw new Error("is an addon, but not rollgate's");
    }
    addonFile = file;
    return loaded;
  });
  return addon;
}

function addonPath() {
  return addonFile ?? firstOf(places(), (place) => place.find());
}

/** The path of a path or a file: URL. `refuse` creates the error for anything else. */
function readPath(given, refuse) {
  const location = typeof given === 'object' ? given?.href : given;
  const refusal = (why = '') =>
    refuse(
      `expected the path of a .node file or a file: URL, got ${show(location ?? given)}${why}`,
    );
  if (typeof location !== 'string' || location === '') throw refusal();
  if (/^file:/i.test(location)) {
    try {
      return fileURLToPath(location);
    } catch (error) {
      throw refusal(`: ${error.message}`);
    }
  }
  if (location !== given) throw refusal(); // a URL of something else
  return path.resolve(location);
}

function setAddonPath(file) {
  const refuse = (why) => typeError('ERR_ROLLGATE_OPTION', `setAddonPath: ${why}`);
  const chosen = readPath(file, refuse);
  if (isWithoutAddon || (addon !== undefined && chosen !== addonFile)) {
    const loaded = isWithoutAddon
      ? 'rollgate runs as WebAssembly'
      : `the addon was loaded from ${addonFile ?? copyOfBundler.name}`;
    throw failure(
      CODE,
      `setAddonPath: ${loaded} already; call it before the first limiter is created`,
    );
  }
  chosenFile = chosen;
}

/** The result of `use` for the first place for which it does not throw. */
function firstOf(candidates, use) {
  const errors = [];
  for (const place of candidates) {
    try {
      return use(place);
    } catch (error) {
      errors.push(error);
    }
  }
  const tried = candidates.map(({ name }, i) => `\n- ${name}: ${errors[i].message}`);
  const system = `${process.platform}-${process.arch}, Node ${process.versions.node}`;
  throw failure(
    CODE,
    `rollgate's native addon cannot be loaded (${system}). Tried in this order:${tried.join('')}\n${advice()}`,
    errors.find(({ cause }) => cause)?.cause ?? errors[0],
  );
}

function advice() {
  if (chosenFile !== undefined) return 'Correct the path that setAddonPath gets.';
  const variables = ['ROLLGATE_ADDON', ...(runsInPackage() ? ['ROLLGATE_PREBUILD'] : [])];
  for (const variable of variables) {
    if (process.env[variable]) {
      return `Correct or remove the environment variable ${variable}.`;
    }
  }
  if (runsInPackage()) {
    const script = path.join(packageFolder().name, 'scripts/install.mjs');
    if (fs.existsSync(script)) {
      return `Install rollgate again, or run: node ${JSON.stringify(script)}\nIt builds the addon or says what is missing for that.`;
    }
  }
  return (
    `This is a bundle or a copy without the addon: copy the addon as ${NAME} next to the script that is run, or ` +
    'set the environment variable ROLLGATE_ADDON to its path. In the project, this prints its path: ' +
    `node -p "require('rollgate').addonPath()". More in docs/bundling.md of the package rollgate.`
  );
}

/** The size of a program header in ELF64. */
const PROGRAM_HEADER_BYTES = 56;

/** e_machine in an ELF header, by process.arch. */
const ELF_MACHINES = { ia32: 3, arm: 40, x64: 62, arm64: 183, riscv64: 243, loong64: 258 };

/**
 * Throws if the file is truncated or for another processor, on Linux: dlopen ends the process by SIGBUS for the
 * first, and reports a missing file for the second. dlopen maps up to the end of the last segment; section headers
 * follow that.
 */
function checkElf(file) {
  const bytes = fs.readFileSync(file);
  const isLittleElf64 =
    bytes.length >= 64 && bytes.readUInt32BE(0) === 0x7f454c46 && bytes.readUInt16BE(4) === 0x201;
  if (!isLittleElf64) return; // dlopen reports what it is
  const machine = bytes.readUInt16LE(18);
  const expected = ELF_MACHINES[process.arch] ?? machine;
  if (machine !== expected) {
    const arch = Object.keys(ELF_MACHINES).find((name) => ELF_MACHINES[name] === machine);
    throw new Error(`is built for ${arch ?? 'another processor'}, not for ${process.arch}`);
  }
  if (bytes.readUInt16LE(54) !== PROGRAM_HEADER_BYTES) return; // dlopen rejects it
  const numberAt = (offset) => Number(bytes.readBigUInt64LE(offset));
  const headers = numberAt(32);
  const headersEnd = headers + PROGRAM_HEADER_BYTES * bytes.readUInt16LE(56);
  const sectionsEnd = numberAt(40) + bytes.readUInt16LE(58) * bytes.readUInt16LE(60);
  let end = Math.max(headersEnd, sectionsEnd);
  if (headersEnd <= bytes.length) {
    for (let header = headers; header < headersEnd; header += PROGRAM_HEADER_BYTES) {
      end = Math.max(end, numberAt(header + 8) + numberAt(header + 32));
    }
  }
  if (bytes.length < end) throw new Error(`is truncated: ${bytes.length} of ${end} bytes`);
}

/** From now on there is no addon in this thread: the WebAssembly module takes its place. */
function goWithoutAddon() {
  isWithoutAddon = true;
}

/** Whether the user has said where the addon is. */
function placeIsChosen() {
  return chosenFile !== undefined || Boolean(process.env.ROLLGATE_ADDON);
}

module.exports = {
  addonPath,
  filesNearby,
  goWithoutAddon,
  loadAddon,
  placeIsChosen,
  runsInPackage,
  setAddonPath,
};
