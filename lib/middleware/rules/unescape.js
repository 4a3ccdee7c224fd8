// Unescapes paths by hand: an exception for each escape that is no UTF-8 would be work for whoever sends many.
'use strict';

const PERCENT = 37;
const SLASH = 47;
const BACKSLASH = 92;

/** The least code point that takes so many bytes behind its first. */
const LEAST = [0, 0x80, 0x800, 0x10000];

/**
 * Escapes of UTF-8 as what they stand for, but for those of the percent sign, which would begin others.
 * Those of the slash stay as well, for they do not part segments.
 */
function unescapePath(path) {
  return unescapeAs(path, { unescapesSlashes: false, takesBackslashes: false });
}

/**
 * @param {object} reading
 * @param {boolean} reading.unescapesSlashes whether an escape may be what parts segments
 * @param {boolean} reading.takesBackslashes whether a backslash is a slash
 */
function unescapeAs(path, { unescapesSlashes, takesBackslashes }) {
  const text = takesBackslashes ? path.split('\\').join('/') : path;
  let unescaped = '';
  let copied = 0;
  for (let at = text.indexOf('%'); at !== -1; at = text.indexOf('%', at)) {
    const point = escapedAt(text, at);
    if (point === -1 || point === PERCENT || (point === SLASH && !unescapesSlashes)) {
      at += 1;
      continue;
    }
    const isSlash = point === BACKSLASH && unescapesSlashes && takesBackslashes;
    if (at > copied) unescaped += text.slice(copied, at);
    unescaped += String.fromCodePoint(isSlash ? SLASH : point);
    at += escapesLength(point);
    copied = at;
  }
  return copied === 0 ? text : unescaped + text.slice(copied);
}

/** The code point whose escapes begin here; -1 where they are none, or no UTF-8. */
function escapedAt(path, at) {
  const first = byteAt(path, at);
  if (first < 0x80) return first;
  if (first < 0xc2 || first > 0xf4) return -1;
  const following = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  let point = first & (0x3f >> following);
  for (let k = 1; k <= following; k++) {
    const byte = byteAt(path, at + 3 * k);
    if (byte === -1 || byte >> 6 !== 0b10) return -1;
    point = (point << 6) | (byte & 0x3f);
  }
  const isSurrogate = point >= 0xd800 && point <= 0xdfff;
  return point < LEAST[following] || isSurrogate || point > 0x10ffff ? -1 : point;
}

/** -1 where no escape is. */
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

function escapesLength(point) {
  if (point < LEAST[1]) return 3;
  if (point < LEAST[2]) return 6;
  return point < LEAST[3] ? 9 : 12;
}

module.exports = { unescapeAs, unescapePath };
