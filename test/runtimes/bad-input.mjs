// What is wrong is refused with an error that has a code: options, ids, callbacks, and an installation
// without an addon for this system, or with a damaged one.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import RateLimiter, { rateLimit } from 'rollgate';

const require = createRequire(import.meta.url);
const good = { interval: 1000, maxInInterval: 1 };

const wrong = [
  undefined,
  {},
  { interval: -1, maxInInterval: 1 },
  { interval: '1000', maxInInterval: 1 },
  { interval: 1000, maxInInterval: 1.5 },
  { ...good, algorithm: 'leaky' },
  { ...good, maxKey: 5 },
  { ...good, shared: 'a/b' },
  { ...good, kv: {}, namespace: 'api' },
  { ...good, redis: 'http://127.0.0.1' },
  { ...good, shared: 'a', kv: { get() {}, set() {} } },
];
for (const options of wrong) {
  assert.throws(() => RateLimiter(options), { code: /^ERR_ROLLGATE_(OPTION|URL)$/ });
}
assert.throws(() => rateLimit({ windowMs: 'soon' }), { code: 'ERR_ROLLGATE_OPTION' });

const limiter = RateLimiter(good);
for (const id of [{}, [], true, Number.NaN, Symbol('a'), () => {}]) {
  assert.throws(() => limiter.attempt(id), { code: 'ERR_ROLLGATE_ID' });
}
assert.throws(() => limiter('ada', 5), { code: 'ERR_ROLLGATE_CALLBACK' });
assert.throws(() => limiter.attempt('ada', { cost: 2 }), { code: 'ERR_ROLLGATE_COST' });
const clocks = [() => Number.NaN, () => 'now', () => assert.fail('no time')];
for (const clock of clocks) {
  assert.throws(() => RateLimiter({ ...good, clock })('ada'), { code: 'ERR_ROLLGATE_CLOCK' });
}
assert.equal(limiter('ada'), 0);

/** Loads a copy of the package whose binary was changed by `change`. */
function loadWith(change) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate copy-'));
  const installed = path.dirname(require.resolve('rollgate/package.json'));
  const copy = path.join(folder, 'node_modules/rollgate');
  fs.cpSync(installed, copy, { recursive: true });
  const loader = path.dirname(require.resolve('node-gyp-build/package.json'));
  fs.cpSync(loader, path.join(folder, 'node_modules/node-gyp-build'), { recursive: true });
  const binaries = path.join(copy, 'prebuilds');
  const [name] = fs
    .readdirSync(binaries, { recursive: true })
    .filter((file) => /\.node$/.test(file));
  change(path.join(binaries, name));
  return require(copy)(good); // the addon is loaded by the first limiter
}

/** The machine that an ELF file is for stands at offset 18; 0xb7 is arm64, 0x3e is x64. */
function exchangeMachine(file) {
  const binary = fs.readFileSync(file);
  binary[18] = process.arch === 'x64' ? 0xb7 : 0x3e;
  fs.writeFileSync(file, binary);
}

const changes = {
  missing: (file) => fs.rmSync(file),
  empty: (file) => fs.truncateSync(file),
  'cut off after its header': (file) => fs.truncateSync(file, 1000),
  'without its last byte': (file) => fs.truncateSync(file, fs.statSync(file).size - 1),
  'for another machine': exchangeMachine,
  'no binary': (file) => fs.writeFileSync(file, 'not found'),
};
for (const [name, change] of Object.entries(changes)) {
  assert.throws(
    () => loadWith(change),
    { code: 'ERR_ROLLGATE_ADDON', message: /install\.mjs/ },
    name,
  );
}
console.log('result: works');
