// Unescapes paths by hand: an exception for each escape that is no UTF-8 would be work for whoever sends many.
'use strict';

const PERCENT = 37;

/** What unescaped would mean something else: a slash, and the beginning of an escape. */
const KEPT = ['/', '%'].map((text) => text.charCodeAt(0));

/** The least code point that takes so many bytes behind its first. */
const LEAST = [0, 0x80, 0x800, 0x10000];

/** Escapes of UTF-8 as what they stand for, but for those of the slash and of the percent sign. */
function unescapePath(path) {
  let unescaped = '';
  let copied = 0;
  let at = path.indexOf('%');
  while (at !== -1) {
    const codePoint = escapedAt(path, at);
    if (codePoint === -1 || KEPT.includes(codePoint)) {
      at = path.indexOf('%', at + 1);
      continue;
    }
    unescaped += path.slice(copied, at) + String.fromCodePoint(codePoint);
    copied = at + 3 * (1 + LEAST.findLastIndex((least) => codePoint >= least));
    at = path.indexOf('%', copied);
  }
  return copied === 0 ? path : unescaped + path.slice(copied);
}

/** The code point whose escapes begin here; -1 where they are none, or no UTF-8. */
function escapedAt(path, at) {
  const first = byteAt(path, at);
  if (first < 0x80) return first;
  if (first < 0xc2 || first > 0xf4) return -1;
  const following = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  let codePoint = first & (0x3f >> following);
  for (let k = 1; k <= following; k++) {
    const byte = byteAt(path, at + 3 * k);
    if ((byte & 0xc0) !== 0x80) return -1;
    codePoint = (codePoint << 6) | (byte & 0x3f);
  }
  const isSurrogate = codePoint >= 0xd800 && codePoint <= 0xdfff;
  return codePoint < LEAST[following] || isSurrogate || codePoint > 0x10ffff ? -1 : codePoint;
}

/** -1 where no escape is; no byte of UTF-8 that follows a first one looks like it. */
function byteAt(path, at) {
  if (path.charCodeAt(at) !== PERCENT) return -1;
  const high = hexDigit(path.charCodeAt(at + 1));
  const low = hexDigit(path.charCodeAt(at + 2));
  return high === -1 || low === -1 ? -1 : high * 16 + low;
}

function hexDigit(code) {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = code | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

module.exports = { unescapePath };
