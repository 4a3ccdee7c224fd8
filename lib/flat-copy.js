// A copy of a text that keeps no other text alive: to be made of what is remembered for long.
'use strict';

/**
 * A part of a text, such as of a header, may be kept as a view of all of it. UTF-16 is what a string is made
 * of, so that lone surrogates stay what they are.
 */
function flatCopy(text) {
  return Buffer.from(text, 'utf16le').toString('utf16le');
}

module.exports = { flatCopy };
