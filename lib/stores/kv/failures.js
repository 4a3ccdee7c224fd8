// The errors of a limiter over a key-value store.
'use strict';

const { failure, show } = require('../../base/errors');

/** Errors that concern one id only. */
const ofOneId = new WeakSet();

function aboutOneId(error) {
  ofOneId.add(error);
  return error;
}

/** The store did not answer in time; `cause` is its last error, if it was busy. */
function timeout(commandTimeout, cause) {
  const what = cause === undefined ? 'did not answer' : 'was busy';
  return failure(
    'ERR_ROLLGATE_KV_TIMEOUT',
    `the key-value store ${what} within ${commandTimeout} ms (commandTimeout)`,
    cause,
  );
}

/** The store answered, but other processes wrote the id again and again. */
function lostRaces(commandTimeout) {
  return aboutOneId(
    failure(
      'ERR_ROLLGATE_KV_TIMEOUT',
      `others wrote this id in the key-value store each time for ${commandTimeout} ms (commandTimeout)`,
    ),
  );
}

/** Only the first line: messages of databases may be long. */
function failed(cause) {
  const message = typeof cause?.message === 'string' ? cause.message.split('\n')[0] : show(cause);
  return failure('ERR_ROLLGATE_KV', `the key-value store failed: ${message}`, cause);
}

/** A user's store returned something invalid. */
function answer(what, expected, came) {
  return failure(
    'ERR_ROLLGATE_KV',
    `the key-value store: ${what} gave ${show(came)}, expected ${expected}`,
  );
}

/** The id's key holds something that rollgate did not write. */
function foreign() {
  return aboutOneId(
    failure('ERR_ROLLGATE_KV', "the key of this id holds something that is not rollgate's"),
  );
}

/** Any error of a store as one of these. */
function from(error) {
  return String(error?.code).startsWith('ERR_ROLLGATE_') ? error : failed(error);
}

/** Whether the next call would fail in the same way, with any id. */
function isOutage(error) {
  return !ofOneId.has(error);
}

const BUSY = /database (table )?is (locked|busy)|SQLITE_(BUSY|LOCKED)/i;

/** Another process wrote between read and write: nothing was done. */
const LOST_RACE = new Error('somebody else wrote meanwhile');

/** Whether nothing was done because of another writer. */
function isBusy(error) {
  if (error === LOST_RACE) return true;
  if (typeof error !== 'object' || error === null) return false;
  return BUSY.test(error.code) || BUSY.test(error.message);
}

module.exports = { LOST_RACE, answer, foreign, from, isBusy, isOutage, lostRaces, timeout };
