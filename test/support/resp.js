// The wire format of Redis (RESP2), as far as tests speak it themselves: writes commands, reads values.
// Source: https://redis.io/docs/latest/develop/reference/protocol-spec/
'use strict';

/** An error that the server answered, as opposed to one of the connection. */
class ReplyError extends Error {
  name = 'ReplyError';
}

/** A command as bytes; words that are no Buffer are written as text. */
function encodeCommand(words) {
  const parts = words.flatMap((word) => {
    const bytes = Buffer.isBuffer(word) ? word : Buffer.from(String(word));
    return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')];
  });
  return Buffer.concat([Buffer.from(`*${words.length}\r\n`), ...parts]);
}

/** The value that starts at `start` and where it ends; undefined if it is not all there yet. */
function valueAt(bytes, start) {
  const lineEnd = bytes.indexOf('\r\n', start);
  if (lineEnd === -1) return undefined;
  const text = bytes.toString('utf8', start + 1, lineEnd);
  let end = lineEnd + 2;
  switch (String.fromCharCode(bytes[start])) {
    case '+':
      return { value: text, end };
    case '-':
      return { value: new ReplyError(text), end };
    case ':':
      return { value: Number(text), end };
    case '$': {
      if (text === '-1') return { value: null, end };
      const length = Number(text);
      if (bytes.length < end + length + 2) return undefined;
      return { value: bytes.toString('utf8', end, end + length), end: end + length + 2 };
    }
    case '*': {
      if (text === '-1') return { value: null, end };
      const value = [];
      for (let left = Number(text); left > 0; left -= 1) {
        const item = valueAt(bytes, end);
        if (item === undefined) return undefined;
        value.push(item.value);
        end = item.end;
      }
      return { value, end };
    }
    default:
      throw new Error(`not RESP2: ${bytes.toString('latin1', start, lineEnd)}`);
  }
}

/** A function that takes bytes as they come and calls `onValue` for each whole value. */
function valueReader(onValue) {
  let unread = Buffer.alloc(0);
  return (chunk) => {
    unread = Buffer.concat([unread, chunk]);
    for (let found = valueAt(unread, 0); found; found = valueAt(unread, 0)) {
      unread = unread.subarray(found.end);
      onValue(found.value);
    }
  };
}

/** A string as a reply; nil for null. */
const bulk = (word) => (word === null ? '$-1\r\n' : `$${word.length}\r\n${word}\r\n`);

/** A reply to CLUSTER SLOTS: each range has its first and last slot, a host or null, and a port. */
const slotsReply = (...ranges) =>
  `*${ranges.length}\r\n${ranges
    .map(([first, last, host, port]) => {
      return `*3\r\n:${first}\r\n:${last}\r\n*2\r\n${bulk(host)}:${port}\r\n`;
    })
    .join('')}`;

/** The same if one node has all slots. */
const allSlotsAt = (host, port) => slotsReply([0, 16_383, host, port]);

/** What the script answers about one key that is allowed, in brief. */
const ALLOWED = '*1\r\n:0\r\n';

module.exports = { ALLOWED, ReplyError, allSlotsAt, bulk, encodeCommand, slotsReply, valueReader };
