// Limits a Koa application. Run it: node examples/frameworks/koa.js, then: curl -i http://127.0.0.1:3000/
'use strict';

const Koa = require('koa');
const { rateLimit } = require('rollgate');

const limit = rateLimit({ windowMs: 60_000, limit: 10, standardHeaders: 'draft-8' });

const app = new Koa();

app.use(async (ctx, next) => {
  ctx.req.ip = ctx.ip; // the address, by app.proxy and app.maxIpsCount
  let isAllowed = false; // refused: the response was sent
  await limit(ctx.req, ctx.res, (error) => {
    if (error) throw error;
    isAllowed = true;
  });
  if (isAllowed) await next();
});

app.use((ctx) => {
  ctx.body = `Welcome. ${ctx.req.rateLimit.remaining} more in this minute.\n`;
});

const server = app.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
