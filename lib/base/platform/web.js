// What this package takes from a platform without modules of Node: workerd, other edge runtimes, browsers.
'use strict';

const { sha256 } = require('./sha256');

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

function base64url(bytes) {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

const ENCODINGS = { hex, base64url };

/** Those of Node. */
const METHODS = (
  'ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY MKCALENDAR MKCOL MOVE ' +
  'NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND ' +
  'UNLINK UNLOCK UNSUBSCRIBE'
).split(' ');

const BYTE = '(?:\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])';
const IPV4 = new RegExp(`^${BYTE}(?:\\.${BYTE}){3}$`);

/** As Node sees it: with a zone, which no URL has. */
function isIPv6(address) {
  const [, bare] = /^([\da-f:.]+)(?:%[\da-z.:-]+)?$/i.exec(address) ?? [];
  if (bare === undefined) return false;
  try {
    return new URL(`http://[${bare}]/`) !== undefined;
  } catch {
    return false;
  }
}

module.exports = {
  /** Nobody can subscribe. */
  channel: () => ({ hasSubscribers: false, publish() {} }),

  /** Some hosts forbid it before the first request. */
  randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),

  random32: () => crypto.getRandomValues(new Uint32Array(1))[0],

  sha256: (string, encoding) => ENCODINGS[encoding](sha256(new TextEncoder().encode(string))),

  flatCopy: (string) =>
    Array.from({ length: string.length }, (_, i) => String.fromCharCode(string.charCodeAt(i))).join(
      '',
    ),

  byteLength: (string) => new TextEncoder().encode(string).length,

  warn(message, code, detail) {
    const details = detail === undefined ? [] : [detail];
    console.warn(`(rollgate) [${code}] RollgateWarning: ${message}`, ...details);
  },

  inspect: (error) => error?.stack ?? String(error),

  isIP(address) {
    if (IPV4.test(address)) return 4;
    return isIPv6(address) ? 6 : 0;
  },

  methods: () => METHODS,

  /** The URL of a Request is always a usual one. */
  parseUrl(target) {
    throw new TypeError(`no path: ${target}`);
  },

  soon(callback, ...args) {
    setTimeout(() => callback(...args), 0);
  },

  nextTurn: () => new Promise((resolve) => setTimeout(resolve, 0)),

  afterTurn: (callback) => void setTimeout(callback, 0),

  /** Stands still in sleep where the host's clock does. */
  monotonicMs: () => performance.now(),
};
