// Behaviours: what the diagnostics channels tell.
'use strict';

const diagnostics = require('node:diagnostics_channel');

/** The messages of a channel while `calls` are made. */
async function messagesOf(name, calls) {
  const messages = [];
  const listener = (message) => messages.push(message);
  diagnostics.subscribe(name, listener);
  try {
    await calls();
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    diagnostics.unsubscribe(name, listener);
  }
  return messages;
}

module.exports = {
  async 'each attempt is told, whatever the call, and no peek'({ make }) {
    const limiter = make({ maxInInterval: 3, countBlocked: false });
    await limiter('unheard');
    const messages = await messagesOf('rollgate:decision', async () => {
      await limiter('a');
      await limiter.peek('a');
      await limiter.wouldLimit('a');
      await limiter.attempt('a', { cost: 2 });
      await limiter.limit('a');
      await limiter.attemptMany(['b', 'c']);
      await limiter.wait('d');
      await new Promise((resolve) => limiter('e', resolve));
    });
    await limiter('unheard');
    expect(messages.every((message) => message.limiter === limiter)).toBe(true);
    const told = messages.map(({ id, cost, allowed, timeLeft }) => {
      expect(timeLeft > 0).toBe(!allowed);
      return [id, cost, allowed];
    });
    expect(told).toEqual([
      ['a', 1, true],
      ['a', 2, true],
      ['a', 1, false],
      ['b', 1, true],
      ['c', 1, true],
      ['d', 1, true],
      ['e', 1, true],
    ]);
  },
};
