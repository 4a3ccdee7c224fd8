// The text of an id: ids of one text are one id.
'use strict';

const { refuseId } = require('./refusals');

/** @throws TypeError ERR_ROLLGATE_ID */
function textOf(id) {
  if (typeof id === 'string') return id;
  if (id === undefined || id === null) return '';
  if (Number.isFinite(id) || typeof id === 'bigint') return String(id);
  return refuseId(id);
}

module.exports = { textOf };
