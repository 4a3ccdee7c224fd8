// A logger that fails harms no request and ends no process: the process's warnings are told instead.
'use strict';

const { EventEmitter } = require('node:events');
const { rateLimit } = require('../..');

const fails = () => {
  throw new Error('the log is closed');
};

describe.each([
  ['throws', { warn: fails, error: fails }],
  ['rejects', { warn: async () => fails(), error: async () => fails() }],
])('a logger that %s', (_what, logger) => {
  /** The codes that the process was told while `play` ran. */
  async function toldBy(play) {
    const warn = jest.spyOn(process, 'emitWarning').mockImplementation(() => {});
    try {
      play();
      await new Promise(setImmediate);
      return warn.mock.calls.map(([, { code }]) => code);
    } finally {
      warn.mockRestore();
    }
  }

  test('lets a request pass that it was told of', async () => {
    const next = jest.fn();
    const codes = await toldBy(() => {
      rateLimit({ logger })({ ip: 'no address' }, { headersSent: true }, next);
    });
    expect(codes).toEqual(['ROLLGATE_INVALID_IP']);
    expect(next.mock.calls).toEqual([[]]);
  });

  test('does no harm once the response is finished', async () => {
    const options = { skipFailedRequests: true, requestWasSuccessful: fails, logger };
    const middleware = rateLimit({ ...options, keyGenerator: () => 'key' });
    const codes = await toldBy(() => {
      for (let i = 0; i < 2; i++) {
        const res = Object.assign(new EventEmitter(), { headersSent: true });
        middleware({}, res, () => {});
        res.emit('finish');
      }
    });
    expect(codes).toEqual(['ROLLGATE_OUTCOME_UNKNOWN']);
  });
});
