// Every way to import the package type-checks, under every module setting that TypeScript users have.
'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const ts = require('@tsd/typescript');

const ROOT = path.join(__dirname, '..', '..');

const useOfAll = `
const limiter = new RateLimiter({ interval: 1000, maxInInterval: 2 });
const timeLeft: number = limiter('a') + RateLimiter({ interval: 1, maxInInterval: 1 })();
const same: RateLimiter = new RateLimiter.RateLimiter({ interval: 1, maxInInterval: 1 });
const options: RateLimiter.RateLimiterOptions = { limits: [{ interval: 1, maxInInterval: 1 }] };
const decision: RateLimiter.Decision = new RateLimiter.InMemoryRateLimiter(options).attempt('a');
class Counting extends RateLimiter { count = 0; }
const counted: number = new Counting(options)('a') + new Counting(options).count;
RateLimiter.rateLimit({ limiter });
RateLimiter.ipKeyGenerator('192.0.2.1').length;
export { counted, decision, same, timeLeft };
`;
const named = `
import { ipKeyGenerator, rateLimit, RateLimiter, InMemoryRateLimiter } from 'rollgate';
import type { Decision, RateLimitInfo, RateLimiterOptions, Stats } from 'rollgate';
const options: RateLimiterOptions = { interval: 1000, maxInInterval: 2 };
const limiter: RateLimiter = new InMemoryRateLimiter(options);
export const decision: Decision = limiter.attempt(ipKeyGenerator('192.0.2.1'));
export const stats: Stats = limiter.stats();
export let info: RateLimitInfo;
rateLimit({ windowMs: 1000, limit: 2 });
`;
const express = `
import express from 'express';
import { rateLimit, RateLimiter } from 'rollgate';
import type { WithRateLimit } from 'rollgate';
const app = express();
app.use(rateLimit());
app.use('/api', rateLimit({ windowMs: 1000, limit: 2, standardHeaders: 'draft-6' }));
app.use(rateLimit({ keyGenerator: (req) => req.ip, skip: (req) => req.method === 'OPTIONS' }));
app.use(rateLimit({ keyGenerator: (req: express.Request) => String(req.query.key) }));
app.use(
  rateLimit({
    limiter: new RateLimiter({ interval: 1000, maxInInterval: 2 }),
    handler: (req: express.Request, res: express.Response, _next, settings) =>
      res.status(settings.statusCode).json({ path: req.path }),
  }),
);
app.get('/', rateLimit({ limit: 1 }), (req, res) => {
  res.json((req as WithRateLimit<express.Request>).rateLimit.remaining);
});
`;
const subpaths = `
import createFastify from 'fastify';
import { rateLimit } from 'express-rate-limit';
import plugin, { rollgate, type RollgateFastifyOptions } from 'rollgate/fastify';
import { register } from 'prom-client';
import { type Metrics, registerMetrics } from 'rollgate/metrics';
import Store, { RollgateStore, type RollgateStoreOptions } from 'rollgate/store';
const options: RollgateFastifyOptions = { limit: 2 };
const app = createFastify();
app.register(plugin, options);
app.register(rollgate, { keyGenerator: (request) => request.ip });
app.get('/', (request) => request.rateLimit?.remaining);
const given: RollgateStoreOptions = { maxInInterval: 5 };
rateLimit({ store: new RollgateStore(given) });
export const store: RollgateStore = new Store();
export const metrics: Metrics = registerMetrics({ register });
`;
const throughDefault = `import RateLimiter from 'rollgate';\n${useOfAll}`;
const throughRequire = `import RateLimiter = require('rollgate');\n${useOfAll}`;

const { ModuleKind, ModuleResolutionKind } = ts;
const settings = {
  'CommonJS with esModuleInterop': {
    files: { 'default.ts': throughDefault, 'named.ts': named, 'require.ts': throughRequire },
    options: {
      module: ModuleKind.CommonJS,
      moduleResolution: ModuleResolutionKind.Node10,
      esModuleInterop: true,
    },
  },
  'CommonJS without esModuleInterop': {
    files: { 'named.ts': named, 'require.ts': throughRequire },
    options: {
      module: ModuleKind.CommonJS,
      moduleResolution: ModuleResolutionKind.Node10,
      esModuleInterop: false,
    },
  },
  'Node 16 and newer': {
    files: {
      'default.mts': throughDefault,
      'default.cts': throughDefault,
      'named.mts': named,
      'named.cts': named,
      'require.cts': throughRequire,
      'express.mts': express,
      'subpaths.mts': subpaths,
    },
    options: { module: ModuleKind.NodeNext, moduleResolution: ModuleResolutionKind.NodeNext },
  },
  'a bundler': {
    files: {
      'default.ts': throughDefault,
      'named.ts': named,
      'express.ts': express,
      'subpaths.ts': subpaths,
    },
    options: { module: ModuleKind.ESNext, moduleResolution: ModuleResolutionKind.Bundler },
  },
};

let folder;

beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-types-'));
  fs.mkdirSync(path.join(folder, 'node_modules'));
  fs.symlinkSync(ROOT, path.join(folder, 'node_modules', 'rollgate'), 'junction');
  for (const name of ['@types', 'fastify', 'express-rate-limit', 'prom-client']) {
    const [from, to] = [ROOT, folder].map((place) => path.join(place, 'node_modules', name));
    fs.symlinkSync(from, to, 'junction');
  }
});

afterEach(() => fs.rmSync(folder, { recursive: true }));

/** What TypeScript finds wrong, one line each. */
function check(files, options) {
  for (const [name, text] of Object.entries(files)) {
    fs.writeFileSync(path.join(folder, name), text);
  }
  const names = Object.keys(files).map((name) => path.join(folder, name));
  const program = ts.createProgram(names, {
    ...options,
    lib: ['lib.es2022.d.ts'],
    noEmit: true,
    strict: true,
    target: ts.ScriptTarget.ES2022,
    types: ['node'],
    typeRoots: [path.join(folder, 'node_modules', '@types')],
  });
  return ts.getPreEmitDiagnostics(program).map((found) => {
    const text = ts.flattenDiagnosticMessageText(found.messageText, ' ');
    if (!found.file) return text;
    const { line } = found.file.getLineAndCharacterOfPosition(found.start);
    return `${path.basename(found.file.fileName)}:${line + 1}: ${text}`;
  });
}

test.each(Object.entries(settings))('%s: all imports type-check', (_name, { files, options }) => {
  expect(check(files, options)).toEqual([]);
});

test('a wrong option is found through any of them', () => {
  const wrong = { 'a.mts': "import { rateLimit } from 'rollgate';\nrateLimit({ windwMs: 1 });\n" };
  const found = check(wrong, settings['Node 16 and newer'].options);
  expect(found).toEqual([expect.stringMatching(/^a\.mts:2: .*'windwMs' does not exist/)]);
});
