// Limiters over the native Redis client, and what a server says of its clients.
'use strict';

const RateLimiter = require('../..');

let made = 0;

/**
 * A limiter of a namespace of its own, two in a minute unless `options` say otherwise; `redis` is a
 * URL or the options of a connection.
 */
function nativeLimiter(redis, options) {
  made += 1;
  return RateLimiter({
    redis,
    interval: 60_000,
    maxInInterval: 2,
    namespace: `native-${process.pid}-${made}`,
    ...options,
  });
}

/** The lines of CLIENT LIST whose connection has this name, as objects of their fields. */
async function clientsNamed(server, name) {
  const list = await server.command('CLIENT', 'LIST');
  return list
    .split('\n')
    .map((line) => Object.fromEntries(line.split(' ').map((field) => field.split('='))))
    .filter((client) => client.name === name);
}

/** How often the server has run scripts, by their SHA-1 or by their text. */
async function scriptRuns(server) {
  const stats = await server.command('INFO', 'commandstats');
  const runs = stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g);
  return Array.from(runs, ([, calls]) => Number(calls)).reduce((sum, calls) => sum + calls, 0);
}

module.exports = { clientsNamed, nativeLimiter, scriptRuns };
