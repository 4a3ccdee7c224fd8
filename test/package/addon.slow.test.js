// The file of the addon: which one is loaded, what the error says where none can be, and on which machines it runs.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { pathToFileURL } = require('node:url');
const { symbols } = require('node-api-headers');
const { askProgram } = require('../support/run-program');
const { emptyFolder, removeFolders } = require('../support/tarball');

const ROOT = path.join(__dirname, '../..');
const ADDON = require('../..').addonPath();
const LIMITS = '{ interval: 60_000, maxInInterval: 1 }';

/** e_machine of arm64 and x64, in the header of an ELF file. */
const OTHER_MACHINE = process.arch === 'arm64' ? 62 : 183;
const OTHER_ARCH = process.arch === 'arm64' ? 'x64' : 'arm64';

const onLinux = process.platform === 'linux' ? test : test.skip;

const folder = emptyFolder();
afterAll(removeFolders);

function fileWith(name, bytes) {
  const file = path.join(folder, name);
  fs.writeFileSync(file, bytes);
  return file;
}

/** What constructing a limiter throws with each of these files, in one process that must survive them. */
function errorsOf(files) {
  return askProgram(`
    const { RateLimiter, setAddonPath } = require('rollgate');
    const errors = ${JSON.stringify(files)}.map((file) => {
      setAddonPath(file);
      try { RateLimiter(${LIMITS}); } catch ({ code, message }) { return { code, message }; }
    });
    console.log(JSON.stringify(errors));
  `);
}

/** The first addon of another package among the development dependencies. */
function foreignAddon() {
  const modules = path.join(ROOT, 'node_modules');
  const names = fs.readdirSync(path.join(modules, '@unrs'));
  const binding = names.find((name) => name.startsWith('resolver-binding-'));
  return require.resolve(path.join(modules, '@unrs', binding));
}

const TRY = `
  try { console.log(JSON.stringify({ wait: require('rollgate')(${LIMITS})('a') })); }
  catch ({ code, message }) { console.log(JSON.stringify({ code, message })); }
`;

/** An installed package with lib alone, and the program of an application beside it. */
function installedWithoutAddon(name, program = TRY) {
  const app = path.join(folder, name);
  const rollgate = path.join(app, 'node_modules/rollgate');
  for (const part of ['lib', 'package.json', 'scripts/install.mjs']) {
    fs.cpSync(path.join(ROOT, part), path.join(rollgate, part), { recursive: true });
  }
  // It would decide instead: see test/wasm/choice.test.js.
  fs.rmSync(path.join(rollgate, 'lib/native/wasm/rollgate.wasm'), { force: true });
  const dependency = 'node_modules/node-gyp-build';
  fs.cpSync(path.join(ROOT, dependency), path.join(app, dependency), { recursive: true });
  const main = path.join(app, 'main.js');
  fs.writeFileSync(main, program);
  const start = (env = {}) =>
    askProgram(
      `const { execFileSync } = require('node:child_process');
       process.stdout.write(execFileSync(process.execPath, [${JSON.stringify(main)}]));`,
      { env: { ROLLGATE_ADDON: '', ROLLGATE_PREBUILD: '', ...env } },
    );
  return { app, rollgate, start };
}

/** Files that cannot be loaded here, with the reason. */
function wrongFiles() {
  const place = path.join(folder, 'a: b');
  fs.mkdirSync(place);
  const rows = [
    [path.join(folder, 'none.node'), 'does not exist'],
    [folder, 'is not a file'],
    [fileWith('a: b/text.node', 'text'), process.platform === 'linux' ? 'file too short' : ''],
    [foreignAddon(), "is an addon, but not rollgate's"],
  ];
  if (process.platform !== 'linux') return rows;
  const whole = fs.readFileSync(ADDON);
  const other = Buffer.from(whole);
  other.writeUInt16LE(OTHER_MACHINE, 18);
  const built = `is built for ${OTHER_ARCH}, not for ${process.arch}`;
  rows.push([fileWith('other.node', other), built]);
  // Truncated ones would end the process by SIGBUS.
  const cut = (name, bytes, sizes) => {
    for (const size of sizes) {
      const reason = size < 64 ? 'file too short' : `is truncated: ${size} of `;
      rows.push([fileWith(`${name}-${size}.node`, bytes.subarray(0, size)), reason]);
    }
  };
  cut('whole', whole, [0, 10, 64, 5000, whole.length >> 3, whole.length >> 1, whole.length - 1]);
  const bare = withoutSections(whole);
  cut('bare', bare, [100, bare.length >> 1]);
  return rows;
}

function withoutSections(bytes) {
  return Buffer.from(bytes).fill(0, 40, 48).fill(0, 58, 64);
}

describe('a file that is not rollgate.node', () => {
  test('is named with the reason, whatever is in its path, and does not end the process', async () => {
    const rows = wrongFiles();
    const errors = await errorsOf(rows.map(([file]) => file));
    for (const [i, [file, reason]] of rows.entries()) {
      const { code, message } = errors[i];
      const [, line] = message.split('\n');
      expect(code).toBe('ERR_ROLLGATE_ADDON');
      expect(line.startsWith(`- ${file} (setAddonPath): ${reason}`)).toBe(true);
      expect(line.split(path.basename(file))).toHaveLength(2);
      expect(message).toContain('Correct the path that setAddonPath gets.');
    }
  });

  onLinux('is not one without section headers', async () => {
    const bare = withoutSections(fs.readFileSync(ADDON));
    expect(await errorsOf([fileWith('bare.node', bare)])).toEqual([null]);
  });

  test('is not what addonPath names after it was refused', async () => {
    const { app, start } = installedWithoutAddon(
      'refused',
      `const { RateLimiter, addonPath, setAddonPath } = require('rollgate');
       let message;
       try { RateLimiter(${LIMITS}); } catch (error) { message = error.message; }
       setAddonPath(${JSON.stringify(ADDON)});
       console.log(JSON.stringify({ message, path: addonPath() }));`,
    );
    fs.copyFileSync(foreignAddon(), path.join(app, 'rollgate.node'));
    const { message, path: named } = await start();
    expect(message).toContain("is an addon, but not rollgate's");
    expect(named).toBe(ADDON);
  });
});

describe('the search', () => {
  const { href } = pathToFileURL(ADDON);

  test('takes ROLLGATE_ADDON, relative to the current folder or a file: URL, and setAddonPath before that', async () => {
    const copy = fileWith('copy.node', fs.readFileSync(ADDON));
    const ask = (ROLLGATE_ADDON, chosen) =>
      askProgram(
        `const { RateLimiter, addonPath, setAddonPath } = require('rollgate');
        ${chosen === undefined ? '' : `setAddonPath(${JSON.stringify(chosen)});`}
        console.log(JSON.stringify([addonPath(), RateLimiter(${LIMITS})('a'), addonPath()]));`,
        { env: { ROLLGATE_ADDON } },
      );
    const relative = path.relative(ROOT, copy);
    expect(await ask(relative)).toEqual([copy, 0, copy]);
    expect(await ask(href)).toEqual([ADDON, 0, ADDON]);
    for (const chosen of [ADDON, href, href.replace('file', 'FILE'), { href }]) {
      expect(await ask(relative, chosen)).toEqual([ADDON, 0, ADDON]);
    }
  });

  test('refuses a URL in ROLLGATE_ADDON that is no path', async () => {
    const env = { ROLLGATE_ADDON: 'file:///a%2Fb' };
    const { code, message } = await askProgram(TRY, { env });
    expect(code).toBe('ERR_ROLLGATE_ADDON');
    expect(message).toMatch(
      /^environment variable ROLLGATE_ADDON: expected .* file: URL, got "file:/,
    );
  });

  test('is made at construction where onError is memory, not during an outage', async () => {
    const none = path.join(folder, 'none.node');
    const [message, ...others] = await askProgram(
      `
      const { RateLimiter } = require('rollgate');
      const IORedis = require('ioredis');
      const messages = ['memory', 'throw'].map((onError) => {
        const redis = new IORedis({ lazyConnect: true });
        try { RateLimiter({ redis, onError, limits: [${LIMITS}] }); } catch ({ message }) { return message; }
      });
      console.log(JSON.stringify(messages));
    `,
      { env: { ROLLGATE_ADDON: none } },
    );
    expect(message).toContain(`- ${none} (ROLLGATE_ADDON): does not exist`);
    expect(message).toContain('Correct or remove the environment variable ROLLGATE_ADDON.');
    expect(others).toEqual([null]);
  });

  test('makes a path of a script without one absolute', async () => {
    const { start } = installedWithoutAddon('relative', `process.argv[1] = 'main.js';\n${TRY}`);
    const { message } = await start();
    expect(message).toContain(`\n- ${path.resolve(ROOT, 'rollgate.node')}: does not exist`);
  });

  test('goes from the package to the folder of the running script', async () => {
    const { app, start } = installedWithoutAddon('beside');
    fs.copyFileSync(ADDON, path.join(app, 'rollgate.node'));
    expect(await start()).toEqual({ wait: 0 });
  });
});

describe('an installed package', () => {
  test('with a binary of another platform alone says what it has and what builds one', async () => {
    const { app, rollgate, start } = installedWithoutAddon('foreign');
    const binary = 'prebuilds/sunos-mips/rollgate.node';
    fs.cpSync(ADDON, path.join(rollgate, binary));
    const { code, message } = await start();
    expect(code).toBe('ERR_ROLLGATE_ADDON');
    expect(message.split('\n')).toEqual([
      expect.stringContaining(`${process.platform}-${process.arch}, Node ${process.versions.node}`),
      expect.stringMatching(`^- ${rollgate}: No native build was found.*; there are ${binary}$`),
      `- ${path.join(app, 'rollgate.node')}: does not exist`,
      `Install rollgate again, or run: node "${path.join(rollgate, 'scripts/install.mjs')}"`,
      'It builds the addon or says what is missing for that.',
      expect.stringContaining('module cannot be used: there is no file'),
    ]);
  });

  test('without any binary says so, and names a wrong ROLLGATE_PREBUILD', async () => {
    const { start } = installedWithoutAddon('prebuild');
    expect((await start()).message).toContain('; there are no prebuilds');
    const ROLLGATE_PREBUILD = path.join(folder, 'no folder');
    const { code, message } = await start({ ROLLGATE_PREBUILD });
    expect(code).toBe('ERR_ROLLGATE_ADDON');
    expect(message).toContain(`- ${ROLLGATE_PREBUILD} (ROLLGATE_PREBUILD): does not exist`);
    expect(message).toContain('Correct or remove the environment variable ROLLGATE_PREBUILD.');
  });
});

test('a bundle does not name ROLLGATE_PREBUILD, which has no effect there', async () => {
  const { app, rollgate, start } = installedWithoutAddon(
    'bundle',
    `try { require('./bundle').loadAddon(); }
     catch ({ message }) { console.log(JSON.stringify(message)); }`,
  );
  const bundle = path.join(app, 'bundle.js'); // where the loader is not native.js
  const source = fs.readFileSync(path.join(rollgate, 'lib/native/addon.js'), 'utf8');
  fs.writeFileSync(bundle, source.replaceAll("'../", "'./node_modules/rollgate/lib/"));
  const message = await start({ ROLLGATE_PREBUILD: path.join(folder, 'no folder') });
  expect(message).toContain(`- ${path.join(app, 'rollgate.node')}: does not exist`);
  expect(message).not.toContain('ROLLGATE_PREBUILD');
});

describe('setAddonPath', () => {
  const { RateLimiter, addonPath, setAddonPath } = require('../..');

  test.each([undefined, null, '', 5, {}, new URL('http://x/y'), 'file://host/x', 'file:///a%2Fb'])(
    'refuses what is no path: %p',
    (value) => {
      expect(() => setAddonPath(value)).toThrow(
        expect.objectContaining({ name: 'TypeError', code: 'ERR_ROLLGATE_OPTION' }),
      );
    },
  );

  test('refuses another file once one is loaded, and goes on with that', () => {
    const limiter = RateLimiter({ interval: 60_000, maxInInterval: 1 });
    expect(() => setAddonPath(path.join(folder, 'none.node'))).toThrow(
      expect.objectContaining({
        code: 'ERR_ROLLGATE_ADDON',
        message: expect.stringContaining(ADDON),
      }),
    );
    setAddonPath(ADDON);
    expect([addonPath(), limiter('a')]).toEqual([ADDON, 0]);
  });
});

describe('on other machines', () => {
  const DECENT = {
    exports: ['napi_register_module_v1'],
    imports: ['napi_create_function', 'uv_close', 'memcpy'],
    libraries: ['libc.so.6', 'libgcc_s.so.1'],
    glibc: '2.17',
  };

  /** Calls one of the check's functions, which are a module of the build's. */
  function check(name, ...args) {
    const program = `
      import { ${name} } from './scripts/lib/portability.mjs';
      console.log(JSON.stringify(${name}(...${JSON.stringify(args)})));
    `;
    return askProgram(program, { type: 'module' });
  }

  /** Whether a binary of this system may be asked to run on old ones: newer headers ask for more. */
  function buildsForOldSystems() {
    const { glibcVersionRuntime = '2.0' } = process.report.getReport().header;
    return Number(glibcVersionRuntime.split('.')[1]) <= 36;
  }

  onLinux('the addon exports what Node looks for alone, and needs no libstdc++', async () => {
    const needs = await check('needsOf', ADDON);
    expect(needs.exports.sort()).toEqual([
      'napi_register_module_v1',
      'node_api_module_get_api_version_v1',
    ]);
    expect(needs.imports).toContain('napi_create_function');
    expect(needs.libraries.filter((name) => name.includes('stdc++'))).toEqual([]);
    if (buildsForOldSystems()) expect(await check('findingsIn', needs, symbols)).toEqual([]);
  });

  const LATER = 'node_api_create_buffer_from_arraybuffer';
  const entry = 'napi_register_module_v1';
  test.each([
    [{}],
    [{ glibc: '2.4' }],
    [{ exports: [entry, 'redisConnect'] }, 'it exports redisConnect'],
    [{ libraries: ['libhiredis.so.1.1.0', 'libc.so.6'] }, 'it needs libhiredis.so.1.1.0'],
    [{ glibc: '2.34' }, 'it needs glibc 2.34, not 2.17'],
    [{ imports: [LATER] }, `it calls ${LATER}, which Node-API 8 has not got`],
    [{ exports: [] }, `it does not export ${entry}`],
  ])('the check of its needs finds what is wrong with %j', async (change, ...expected) => {
    expect(await check('findingsIn', { ...DECENT, ...change }, symbols)).toEqual(expected);
  });
});
