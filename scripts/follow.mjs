// Prints the files that a call passes through: a check in memory, a request of a middleware, a check on Redis. They are
// those of which a function (JavaScript) or a line (C++) runs once more when there is one call more: npm run follow
import { spawnSync } from 'node:child_process';
import { Session } from 'node:inspector/promises';
import { createRequire } from 'node:module';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build, prebuildOf, root } from './build.mjs';
import { countedLines, forgetCounts, VARIANT } from './lib/gcov.mjs';

const require = createRequire(import.meta.url);
const LIMIT = { interval: 60_000, maxInInterval: 100 };

/** Each returns a function that makes one call, or promises its end. */
const CALLS = {
  'a check in memory'(RateLimiter) {
    const limiter = new RateLimiter(LIMIT);
    return () => limiter.attempt('id');
  },

  'a request of a middleware'(RateLimiter) {
    const { IncomingMessage, ServerResponse } = require('node:http');
    const middleware = RateLimiter.rateLimit(LIMIT);
    const socket = { remoteAddress: '192.0.2.1', readable: true, writable: true, destroyed: false };
    return () => {
      const req = Object.assign(new IncomingMessage(socket), { url: '/', method: 'GET' });
      return new Promise((next) => middleware(req, new ServerResponse(req), next));
    };
  },

  async 'a check on Redis'(RateLimiter) {
    const { startRedis } = require('../test/support/redis-server');
    const { url } = await startRedis();
    const limiter = new RateLimiter({ ...LIMIT, redis: url });
    return () => limiter.attempt('id');
  },
};

/** Makes calls, and prints the files of lib that the last one passes through. */
async function makeCalls(name, times) {
  const call = await CALLS[name](require('../lib'));
  await call(); // what is created by the first one
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  for (let i = 0; i < times; i++) await call();
  const { result } = await session.post('Profiler.takePreciseCoverage');
  const ran = ({ functions }) => functions.some(({ ranges: [{ count }] }) => count > 0);
  const files = result
    .filter(({ url }) => url.startsWith('file://'))
    .filter(ran)
    .map(({ url }) => relative(root, fileURLToPath(url)));
  console.log(JSON.stringify(files.filter((file) => file.startsWith('lib/'))));
  process.exit();
}

/** The counts of C++ after so many calls, and the files of lib. */
function countsAfter(name, times) {
  forgetCounts();
  const args = [fileURLToPath(import.meta.url), `--call=${name}`, `--times=${times}`];
  const env = { ...process.env, ROLLGATE_PREBUILD: prebuildOf(VARIANT) };
  const { stdout, status } = spawnSync(process.execPath, args, { env, stdio: [0, 'pipe', 2] });
  if (status !== 0) throw new Error(`'${name}' ended with ${status}`);
  return { lib: JSON.parse(stdout), lines: countedLines() };
}

function follow(name) {
  const { lines: before } = countsAfter(name, 1);
  const { lib, lines: after } = countsAfter(name, 2);
  const isPassed = ([file, lines]) =>
    [...lines].some(([line, count]) => count > (before.get(file)?.get(line) ?? 0));
  const src = [...after].filter(isPassed).map(([file]) => file);
  console.log(`\n${name}: ${lib.length + src.length} files`);
  for (const file of [...lib.sort(), ...src.sort()]) console.log(`  ${file}`);
}

const { call, times } = parseArgs({
  options: { call: { type: 'string' }, times: { type: 'string' } },
}).values;
if (call !== undefined) {
  await makeCalls(call, Number(times));
} else {
  build(['addon'], { variant: VARIANT });
  for (const name of Object.keys(CALLS)) follow(name);
}
