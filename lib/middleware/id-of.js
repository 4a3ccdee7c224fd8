// The text of a key, by which what is remembered of it is found again.
'use strict';

/** `1` and `'1'` are one id, and so are undefined, null and ''. */
function idOf(key) {
  return String(key ?? '');
}

module.exports = { idOf };
