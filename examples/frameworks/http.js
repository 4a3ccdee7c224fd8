// Limits a server of node:http. Run it: node examples/frameworks/http.js, then: curl -i http://127.0.0.1:3000/
'use strict';

const http = require('node:http');
const { rateLimit } = require('rollgate');

const limit = rateLimit({ windowMs: 60_000, limit: 10, standardHeaders: 'draft-8' });

const server = http.createServer((req, res) => {
  limit(req, res, (error) => {
    if (error) res.writeHead(500).end();
    else res.end(`Welcome. ${req.rateLimit.remaining} more in this minute.\n`);
  });
});

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
