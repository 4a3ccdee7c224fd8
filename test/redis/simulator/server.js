// The Redis server of a simulation: a real one, whose scripts see the simulated time.
//
// Each run of a script gets the time as one more argument, which TIME returns. The moments at which keys expire are far
// in the future of the real clock, so the real server removes nothing. What would have expired by the simulated time is
// removed before a script runs, and PTTL is by the simulated time.
'use strict';

const { createHash } = require('node:crypto');
const Redis = require('ioredis');
const { startRedis } = require('../../support/redis-server');

const PRELUDE = `
local redis = (function(real)
  local now_us = tonumber(table.remove(ARGV))
  local parts = real.call('TIME')
  local ms_ahead = math.floor(now_us / 1000) - (parts[1] * 1000 + math.floor(parts[2] / 1000))
  local function asking(ask)
    return function(name, ...)
      if name == 'TIME' then
        return { string.format('%d', now_us / 1000000), string.format('%d', now_us % 1000000) }
      end
      local answer = ask(name, ...)
      if name == 'PTTL' and type(answer) == 'number' and answer >= 0 then
        return answer - ms_ahead
      end
      return answer
    end
  end
  for _, key in ipairs(KEYS) do
    local left = real.call('PTTL', key)
    if left >= 0 and left <= ms_ahead then real.call('DEL', key) end
  end
  return setmetatable({ call = asking(real.call), pcall = asking(real.pcall) }, { __index = real })
end)(redis)
`;

const sha1Of = (source) => createHash('sha1').update(source).digest('hex');

/**
 * One for many simulations, which run at once and share nothing: each has a namespace, and knows its own scripts. Their
 * commands are sent together, once all of them wait for a reply.
 */
class SimulatedServer {
  #server;
  #redis;
  #namespaces = 0;
  #simulations = 0;
  #waiting = [];

  async start() {
    this.#server = await startRedis({ unixSocket: true });
    this.#redis = new Redis(this.#server.socketPath);
  }

  stop() {
    this.#redis.disconnect();
  }

  /** Calls `simulate` with a server of its own. Promises what that promises. */
  async forOne(simulate) {
    this.#namespaces += 1;
    this.#simulations += 1;
    try {
      return await simulate(new ServerOfOne(this, `simulation ${this.#namespaces}`));
    } finally {
      this.#simulations -= 1;
      this.#sendIfAllWait();
    }
  }

  command(words) {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ words, resolve, reject });
      this.#sendIfAllWait();
    });
  }

  async #sendIfAllWait() {
    if (this.#waiting.length < this.#simulations || this.#simulations === 0) return;
    const waiting = this.#waiting.splice(0);
    const replies = await this.#redis.pipeline(waiting.map(({ words }) => words)).exec();
    for (const [i, [error, reply]] of replies.entries()) {
      if (error) waiting[i].reject(error);
      else waiting[i].resolve(reply);
    }
  }
}

class ServerOfOne {
  namespace;
  #server;
  /** Those that run in place of the scripts that it has, by the SHA-1 of these. */
  #scripts = new Map();

  constructor(server, namespace) {
    this.#server = server;
    this.namespace = namespace;
  }

  forgetScripts() {
    this.#scripts.clear();
  }

  /** Promises the reply to the words of a command that arrives at the time, in us. */
  async run([name, ...words], now) {
    if (name !== 'eval' && name !== 'evalsha') return this.#server.command([name, ...words]);
    const [script, ...rest] = words;
    if (name === 'evalsha') {
      return this.#server.command([name, this.#loaded(script), ...rest, now]);
    }
    const source = PRELUDE + script;
    this.#scripts.set(sha1Of(script), sha1Of(source));
    return this.#server.command([name, source, ...rest, now]);
  }

  #loaded(sha1) {
    const loaded = this.#scripts.get(sha1);
    if (loaded !== undefined) return loaded;
    throw Object.assign(new Error('NOSCRIPT No matching script.'), { name: 'ReplyError' });
  }
}

module.exports = { SimulatedServer };
