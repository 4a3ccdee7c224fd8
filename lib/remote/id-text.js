// The text of an id as remote stores have it in their keys.
'use strict';

const { typeError } = require('../errors');
const { refuseId } = require('../refusals');
const { isWellFormed } = require('./well-formed');

/** @throws TypeError ERR_ROLLGATE_ID */
function idText(id) {
  if (typeof id === 'string') {
    if (isWellFormed(id)) return id;
    throw typeError(
      'ERR_ROLLGATE_ID',
      'id: expected well-formed Unicode, as ids on Redis or in a key-value store must be, got a string with a lone surrogate',
    );
  }
  if (id === undefined || id === null) return '';
  if (Number.isFinite(id) || typeof id === 'bigint') return String(id);
  return refuseId(id);
}

module.exports = { idText };
