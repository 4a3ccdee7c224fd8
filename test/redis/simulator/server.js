// The Redis server of a simulation: a real one, whose scripts see the simulated time.
//
// Each run of a script gets the time as one more argument, which TIME returns. The moments at which keys expire are far
// in the future of the real clock, so the real server removes nothing. What would have expired by the simulated time is
// removed before a script runs, and PTTL is by the simulated time.
'use strict';

const Redis = require('ioredis');
const SCRIPTS = require('../../../lib/stores/redis/scripts');
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

/**
 * One for many simulations, which run at once and share nothing: each has a namespace. Their commands are sent
 * together, once all of them wait for a reply.
 */
class SimulatedServer {
  #server;
  #redis;
  #namespaces = 0;
  #simulations = 0;
  #waiting = [];
  /** The SHA-1 of what runs in place of a script, by that of the script. */
  #inPlaceOf = new Map();

  async start() {
    this.#server = await startRedis({ unixSocket: true });
    this.#redis = new Redis(this.#server.socketPath);
    for (const { sha1, source } of Object.values(SCRIPTS)) {
      this.#inPlaceOf.set(sha1, await this.#redis.script('LOAD', PRELUDE + source));
    }
  }

  stop() {
    this.#redis.disconnect();
  }

  /** Calls `simulate` with a server of its own. Promises what that promises. */
  async forOne(simulate) {
    this.#namespaces += 1;
    this.#simulations += 1;
    try {
      return await simulate({
        namespace: `simulation ${this.#namespaces}`,
        run: (words, now) => this.#run(words, now),
      });
    } finally {
      this.#simulations -= 1;
      this.#sendIfAllWait();
    }
  }

  /** Promises the reply to the words of a command that arrives at the time, in us. */
  #run([name, sha1, ...rest], now) {
    const words = name === 'evalsha' ? [this.#inPlaceOf.get(sha1), ...rest, now] : [sha1, ...rest];
    words.unshift(name);
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

module.exports = { SimulatedServer };
