// One request that is counted without end, as the one that a web socket began with: it remembers no count twice.
'use strict';

const { askProgram } = require('../support/run-program');

const TIMES = 50;

/** How many of the earlier states of one request are still held after TIMES rounds of two middleware. */
function countHeld(options) {
  const source = `
    const { rateLimit } = require('rollgate');
    const logger = { warn() {}, error() {} };
    const both = [1, 2].map(() => rateLimit({ keyGenerator: () => 'key', logger, ...${JSON.stringify(options)} }));
    const req = {};
    const earlier = [];
    function count() {
      for (let i = 0; i < ${TIMES}; i++) {
        for (const middleware of both) {
          middleware(req, { headersSent: true }, () => {});
          earlier.push(new WeakRef(req.rateLimit));
        }
      }
    }
    async function main() {
      count();
      for (let i = 0; i < 10; i++) {
        await new Promise(setImmediate);
        gc();
      }
      const held = earlier.filter((ref) => ref.deref() !== undefined).length;
      console.log(JSON.stringify({ held, has: req.rateLimit !== undefined }));
    }
    main();
  `;
  return askProgram(source, { flags: ['--expose-gc'] });
}

test.each([[true], [false]])('with validate %p', async (validate) => {
  const { held, has } = await countHeld({ validate, limit: TIMES });
  expect(has).toBe(true);
  // One for each middleware, and perhaps one that the last call left behind.
  expect(held).toBeLessThanOrEqual(4);
});
