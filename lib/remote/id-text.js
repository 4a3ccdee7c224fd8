// The text of an id as remote stores have it in their keys.
'use strict';

const { typeError } = require('../errors');
const { textOf } = require('../id-text');
const { isWellFormed } = require('./well-formed');

/** @throws TypeError ERR_ROLLGATE_ID */
function idText(id) {
  const text = textOf(id);
  if (isWellFormed(text)) return text;
  throw typeError(
    'ERR_ROLLGATE_ID',
    'id: expected well-formed Unicode, as ids on Redis or in a key-value store must be, got a string with a lone surrogate',
  );
}

module.exports = { idText };
