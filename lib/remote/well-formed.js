// Whether a text can be written as UTF-8 and still be told from every other: no lone surrogates in it.
'use strict';

const LONE_SURROGATE = /\p{Surrogate}/u;

/** @type {(text: string) => boolean} */
const isWellFormed =
  typeof String.prototype.isWellFormed === 'function'
    ? (text) => text.isWellFormed()
    : (text) => !LONE_SURROGATE.test(text); // Node 18

module.exports = { isWellFormed };
