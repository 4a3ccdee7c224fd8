// The diagnostics channels, and whether anybody listens to them.
'use strict';

const diagnostics = require('node:diagnostics_channel');

const FLAG = Symbol.for('rollgate.observed');

/**
 * Keeps a flag of one byte that is not 0 while the channel has subscribers, for native code to look at:
 * channels themselves tell nobody when they are subscribed to. The flag belongs to the channel, which is
 * the same one for all that load this package.
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
  const channel = diagnostics.channel(name);
  return { channel, flag: flagOf(channel) };
};

/** What docs/observability.md tells of: `channel`, and `flag[0]` that is not 0 while somebody listens. */
module.exports = {
  DECISIONS: open('rollgate:decision'),
  EVICTIONS: open('rollgate:evicted'),
  REDIS: open('rollgate:redis'),
  /** The flag of what nobody can listen to. */
  NEVER: new Uint8Array(1),
};
