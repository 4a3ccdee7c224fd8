// What this package takes from its platform: here Node, Bun or Deno. package.json maps `#platform` to this file or,
// where there are no modules of Node, to web.js.
'use strict';

const crypto = require('node:crypto');
const diagnostics = require('node:diagnostics_channel');
const os = require('node:os');
const { performance } = require('node:perf_hooks');
const { setImmediate: afterTurn } = require('node:timers');
const timers = require('node:timers/promises');
const { inspect } = require('node:util');

// Modules that a limiter in memory does not need are loaded when they are.

/** Kept, because require takes longer than what it is asked in each request. */
let net;

/** Shorter sleeps are ignored: some systems round their uptime to seconds. */
const SHORTEST_SLEEP_MS = 2000;
/** How often the uptime is read at most: that takes some microseconds. */
const LOOKS_EVERY_MS = 1000;

let sleptMs = 0;
let uptimeAhead;
let looksAt = Number.NEGATIVE_INFINITY;

/** performance.now() stands still while a host with Linux sleeps, its uptime does not. */
function noteSleep(now) {
  looksAt = now + LOOKS_EVERY_MS;
  try {
    const ahead = os.uptime() * 1000 - now;
    uptimeAhead ??= ahead;
    if (ahead - uptimeAhead - sleptMs >= SHORTEST_SLEEP_MS) sleptMs = ahead - uptimeAhead;
  } catch {
    looksAt = Number.POSITIVE_INFINITY; // Deno may forbid it
  }
}

if (process.platform !== 'linux') looksAt = Number.POSITIVE_INFINITY;

module.exports = {
  channel: (name) => diagnostics.channel(name),

  /** @returns {Uint8Array} */
  randomBytes: crypto.randomBytes,

  random32: () => crypto.randomInt(2 ** 32),

  /** The SHA-256 of a string's UTF-8 as 'hex' or 'base64url'. crypto.hash (Node 20.12) takes half the time. */
  sha256: crypto.hash
    ? (string, encoding) => crypto.hash('sha256', string, encoding)
    : (string, encoding) => crypto.createHash('sha256').update(string).digest(encoding),

  flatCopy: (string) => Buffer.from(string, 'utf16le').toString('utf16le'),

  byteLength: (string) => Buffer.byteLength(string),

  warn(message, code, detail) {
    process.emitWarning(message, { type: 'RollgateWarning', code, detail });
  },

  inspect,

  /** 4, 6, or 0 for what is no IP address. */
  isIP(address) {
    net ??= require('node:net');
    return net.isIP(address);
  },

  /** The names of HTTP methods. */
  methods: () => require('node:http').METHODS,

  /** What Express does with URLs that are no usual paths. */
  parseUrl: (target) => require('node:url').parse(target),

  // Looked up in each call, because tests replace these functions.

  /** Calls `callback` soon, outside of promises: an exception is uncaught. */
  soon: (callback, ...args) => process.nextTick(callback, ...args),

  /** Resolves after a turn of the event loop. */
  nextTurn: () => timers.setImmediate(),

  /** Calls `callback` at the end of this turn of the event loop; fake timers do not stop it. */
  afterTurn,

  /** Milliseconds since some moment, with those that the host slept. Changes of the system's clock do not move it. */
  monotonicMs() {
    const now = performance.now();
    if (now >= looksAt) noteSleep(now);
    return now + sleptMs;
  },
};
