// An Express application in three processes, with one exact limit for all of them. Run it:
// node examples/cluster.js, then a few times: curl -i http://127.0.0.1:3000/
'use strict';

const cluster = require('node:cluster');
const express = require('express');
const RateLimiter = require('rollgate');

const PROCESSES = 3;
const SHARED = { name: 'example-cluster', maxKeys: 10_000 };

function serve() {
  const app = express();
  app.use(
    RateLimiter.rateLimit({ shared: SHARED, windowMs: 60_000, limit: 10, standardHeaders: true }),
  );
  app.get('/', (req, res) => {
    res.set('Connection', 'close'); // so that another process may get the next request
    res.send(`Process ${process.pid}: ${req.rateLimit.remaining} more in this minute.\n`);
  });
  const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
    if (error) throw error;
    process.send(`http://127.0.0.1:${server.address().port}/`);
  });
}

if (cluster.isPrimary) {
  // Counts remain after the processes end; this application starts without any. In a rolling deploy, leave this out:
  // processes of the old release would go on in a region of their own.
  RateLimiter.unlinkShared(SHARED.name);
  let listening = 0;
  for (let i = 0; i < PROCESSES; i++) {
    cluster.fork().on('message', (url) => {
      listening += 1;
      if (listening === PROCESSES) console.log(url);
    });
  }
} else {
  serve();
}
