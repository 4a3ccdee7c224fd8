// What a middleware has to say to whoever runs it: to the user's logger, else as warnings of the process.
'use strict';

/**
 * `warn` says each code once. `error` gives a logger every error; the process's warnings have each code
 * once, so that a store which is down does not fill the log.
 */
function createNotices(logger) {
  const told = new Set();

  function isNew(code) {
    if (told.has(code)) return false;
    told.add(code);
    return true;
  }

  return {
    warn(code, text) {
      if (!isNew(code)) return;
      const message = `rateLimit: ${text} See ${linkTo(code)}`;
      if (logger === undefined) process.emitWarning(message, { type: 'RollgateWarning', code });
      else logger.warn(Object.assign(new Error(message), { name: 'RollgateWarning', code }));
    },

    error(code, text, error) {
      const message = `rateLimit: ${text} See ${linkTo(code)}`;
      if (logger !== undefined) logger.error(error, message);
      else if (isNew(code)) {
        const detail = error instanceof Error ? error.stack : String(error);
        process.emitWarning(message, { type: 'RollgateWarning', code, detail });
      }
    },
  };
}

/** Every code has a section of its own. */
function linkTo(code) {
  return `docs/errors.md#${code.toLowerCase()}`;
}

module.exports = { createNotices };
