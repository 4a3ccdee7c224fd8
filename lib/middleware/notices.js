// What a middleware has to say to whoever runs it: to the user's logger, else as warnings of the process.
'use strict';

const { inspect } = require('node:util');
const { isPromise } = require('./maybe-async');

/**
 * `warn` says each code once. `error` gives a logger every error; the process's warnings have each code
 * once, so that a store which is down does not fill the log. A logger that fails itself is passed over:
 * no request fails for it, and nobody would catch what it throws once a response is finished.
 */
function createNotices(logger) {
  const told = new Set();
  const toldByProcess = new Set();

  function tellByProcess(code, message, error) {
    if (!isNew(toldByProcess, code)) return;
    const detail = error === undefined ? undefined : inspect(error);
    process.emitWarning(message, { type: 'RollgateWarning', code, detail });
  }

  function tell(code, message, error, byLogger) {
    const passOver = () => tellByProcess(code, message, error);
    if (logger === undefined) {
      passOver();
      return;
    }
    try {
      const answer = byLogger();
      if (isPromise(answer)) answer.then(undefined, passOver);
    } catch {
      passOver();
    }
  }

  return {
    warn(code, text) {
      if (!isNew(told, code)) return;
      const message = `rateLimit: ${text} See ${linkTo(code)}`;
      tell(code, message, undefined, () =>
        logger.warn(Object.assign(new Error(message), { name: 'RollgateWarning', code })),
      );
    },

    error(code, text, error) {
      const message = `rateLimit: ${text} See ${linkTo(code)}`;
      tell(code, message, error, () => logger.error(error, message));
    },
  };
}

function isNew(told, code) {
  if (told.has(code)) return false;
  told.add(code);
  return true;
}

/** Every code has a section of its own. */
function linkTo(code) {
  return `docs/errors.md#${code.toLowerCase()}`;
}

module.exports = { createNotices };
