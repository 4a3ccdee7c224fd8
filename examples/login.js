// Protects a log-in: failures are limited by address and by account. Run it: node examples/login.js, then:
// curl -i -d 'name=ada&password=guess' http://127.0.0.1:3000/login
'use strict';

const crypto = require('node:crypto');
const express = require('express');
const RateLimiter = require('rollgate');

const { rateLimit } = RateLimiter;

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

// One address may not try many accounts ...
const byAddress = rateLimit({
  windowMs: HOUR_MS,
  limit: 20,
  skipSuccessfulRequests: true, // failures count
  legacyHeaders: false,
  handler: refuse,
});

// ... and one account may not be tried from many addresses. `blockFor: [15 * MINUTE_MS, HOUR_MS]` would block
// an account for longer each time, but then anybody who knows the name could lock the owner out.
const failuresOf = RateLimiter({ interval: 15 * MINUTE_MS, maxInInterval: 5, countBlocked: false });
const byAccount = rateLimit({
  limiter: failuresOf,
  keyGenerator: (req) => accountOf(req),
  legacyHeaders: false, // headers would show how often others have failed with this account
  requestPropertyName: 'accountLimit',
  handler: refuse,
});

const app = express();
app.use(express.urlencoded({ extended: false }));

app.post('/login', byAddress, byAccount, async (req, res) => {
  if (!isPasswordOf(req.body?.name, req.body?.password)) {
    // The same message whether the account exists or not.
    res.status(401).send('Name or password are wrong.\n');
    return;
  }
  await failuresOf.clear(accountOf(req)); // a correct password resets the count
  res.send('Welcome.\n');
});

/** The same message for both limits, so that clients do not learn which one it was. */
function refuse(_req, res) {
  res.status(429).send('Too many attempts, please try again later.\n');
}

/** One id for an account, however its name is written. A hash, because names may be long. */
function accountOf(req) {
  const name = String(req.body?.name ?? '').normalize('NFKC');
  return crypto.createHash('sha256').update(name.trim().toLowerCase()).digest('base64');
}

/** Instead of a database: one account, and a comparison in constant time. */
function isPasswordOf(name, password) {
  const digest = (text) => crypto.createHash('sha256').update(String(text)).digest();
  const isRight = crypto.timingSafeEqual(digest(password), digest('correct horse'));
  return isRight && name === 'ada';
}

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', (error) => {
  if (error) throw error;
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
