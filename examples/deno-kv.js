// 50 requests per user in any hour, counted in a file that survives restarts, without a server.
// The file is the first argument, by default one in the system's temporary folder. On Deno, use Deno.openKv()
// instead of openKv. Run it:
//   node examples/deno-kv.js, then: curl -i -H 'x-user: ada' http://127.0.0.1:3000/
'use strict';

const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { openKv } = require('@deno/kv');
const RateLimiter = require('rollgate');

const file = process.argv[2] ?? path.join(os.tmpdir(), 'rollgate-example.db');

async function main() {
  const kv = await openKv(file);
  const limiter = RateLimiter({
    kv,
    namespace: 'requests', // limiters with the same file and namespace share counts
    algorithm: 'sliding-window-counter', // a few bytes per user, whatever the limit
    interval: 60 * 60 * 1000,
    maxInInterval: 50,
    countBlocked: false, // a refused request does not count
  });

  const server = http.createServer(async (req, res) => {
    try {
      // A real application takes the user from a session or a token.
      const decision = await limiter.attempt(req.headers['x-user'] ?? 'nobody');
      if (decision.allowed) {
        res.end(`Welcome. ${decision.actionsLeft} more in this hour.\n`);
        return;
      }
      const seconds = Math.ceil(decision.timeLeft / 1000);
      res.writeHead(429, { 'Retry-After': seconds });
      res.end(`Too many requests, try again in ${seconds} s.\n`);
    } catch (error) {
      console.error(error); // the file could not be read or written: see docs/errors.md
      res.writeHead(503).end();
    }
  });
  server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${server.address().port}/`);
  });
}

main();
