// How calls end that may fail: their value or their code, and whether they end in time.
'use strict';

/** Far longer than any deadline in tests, far shorter than a hang. */
const PATIENCE_MS = 3000;

/** The value of a promise, or the code of the error it rejects with; throws if neither comes. */
async function outcomeOf(promise, withinMs = PATIENCE_MS) {
  let timer;
  const impatience = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not settled within ${withinMs} ms`)), withinMs);
  });
  const settled = promise.then(
    (value) => value,
    (error) => {
      if (error.code === undefined) throw error;
      return error.code;
    },
  );
  try {
    return await Promise.race([settled, impatience]);
  } finally {
    clearTimeout(timer);
  }
}

/** The error that a promise rejects with. */
async function errorOf(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it did not reject');
}

module.exports = { errorOf, outcomeOf };
