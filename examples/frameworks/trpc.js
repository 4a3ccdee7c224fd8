// Limits the calls of a tRPC server by user. Run it: node examples/frameworks/trpc.js, then:
// curl -i -H 'x-user: ada' http://127.0.0.1:3000/greet
'use strict';

const { initTRPC, TRPCError } = require('@trpc/server');
const { createHTTPServer } = require('@trpc/server/adapters/standalone');
const { ipKeyGenerator, RateLimiter } = require('rollgate');

const t = initTRPC.context().create();

const calls = RateLimiter({ interval: 60_000, maxInInterval: 10, countBlocked: false });

const limited = t.procedure.use(({ ctx, next }) => {
  const timeLeft = calls(ctx.user);
  if (timeLeft === 0) return next();
  const seconds = Math.ceil(timeLeft / 1000);
  ctx.res.setHeader('Retry-After', seconds);
  throw new TRPCError({ code: 'TOO_MANY_REQUESTS', message: `Try again in ${seconds} s` });
});

const router = t.router({
  greet: limited.query(({ ctx }) => `Welcome, ${ctx.user}.`),
});

/** In place of a session: a real application takes the user from a verified cookie or token. */
function createContext({ req, res }) {
  return { res, user: req.headers['x-user'] ?? ipKeyGenerator(req.socket.remoteAddress) };
}

const server = createHTTPServer({ router, createContext });

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
