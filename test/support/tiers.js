// Scales the tests to the tier that runs and to the speed of the machine. CONTRIBUTING has the rules.
'use strict';

/** Whether all cases run: in `npm run test:all`, and if Jest runs single files. */
const all = process.env.ROLLGATE_TESTS === 'all';
exports.all = all;

const patience = Number(process.env.ROLLGATE_PATIENCE || 1);
if (!(patience > 0)) throw new Error('ROLLGATE_PATIENCE takes a number above 0');

/** The factor for every bound in real time: above 1 on a busy or sanitized machine. */
exports.patience = patience;

/** A bound in real time, in milliseconds. */
exports.patient = (milliseconds) => milliseconds * patience;

/** How many random cases run of `count`: a tenth in the fast tier. */
exports.casesOf = (count) => (all ? count : Math.ceil(count / 10));

/** Jest's functions for what is tested only if a condition holds. Programs without Jest load this file too. */
exports.where = (holds) => ({
  get test() {
    return holds ? test : test.skip;
  },
  get describe() {
    return holds ? describe : describe.skip;
  },
});

/** For parts of a file that only `npm run test:all` runs. */
exports.slow = exports.where(all);
