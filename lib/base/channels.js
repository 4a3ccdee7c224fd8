// The diagnostics channels, and whether they have subscribers.
'use strict';

const platform = require('#platform');

const FLAG = Symbol.for('rollgate.observed');

/**
 * A byte that is not 0 while the channel has subscribers, for native code to read: channels have no event for
 * subscriptions. The flag is a property of the channel, which all copies of this package share.
 */
function flagOf(channel) {
  if (channel[FLAG] !== undefined) return channel[FLAG];
  const flag = new Uint8Array([channel.hasSubscribers]);
  Object.defineProperty(channel, FLAG, { value: flag });
  for (const name of ['subscribe', 'unsubscribe']) {
    const value = (subscription) => {
      // A channel changes its prototype with its first subscriber and its last.
      const result = Object.getPrototypeOf(channel)[name].call(channel, subscription);
      flag[0] = channel.hasSubscribers ? 1 : 0;
      return result;
    };
    Object.defineProperty(channel, name, { value, writable: true, configurable: true });
  }
  return flag;
}

const open = (name) => {
  const channel = platform.channel(name);
  return { channel, flag: flagOf(channel) };
};

/** The channels of docs/observability.md; `flag[0]` is not 0 while a channel has subscribers. */
module.exports = {
  DECISIONS: open('rollgate:decision'),
  EVICTIONS: open('rollgate:evicted'),
  REDIS: open('rollgate:redis'),
  SHADOW: open('rollgate:shadow'),
  SLOTS: open('rollgate:slot'),
  /** The flag of inner limiters, which publish nothing. */
  NEVER: new Uint8Array(1),
};
