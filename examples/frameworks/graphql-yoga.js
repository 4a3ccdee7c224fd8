// Limits GraphQL queries by what they may return. Run it: node examples/frameworks/graphql-yoga.js, then open
// http://127.0.0.1:3000/graphql
'use strict';

const http = require('node:http');
const { createGraphQLError, createSchema, createYoga } = require('graphql-yoga');
const { rateLimitFetch } = require('rollgate/fetch');
const { queryCost } = require('rollgate/graphql');

const limit = rateLimitFetch({ windowMs: 60_000, limit: 1000, cost: (_, info) => info.cost });

const limitByCost = {
  async onExecute({ args: { contextValue, ...query } }) {
    const info = { ip: contextValue.req.socket.remoteAddress, cost: queryCost(query) };
    const { allowed, headers } = await limit(contextValue.request, info);
    if (allowed) return;
    const http = { status: 429, headers: Object.fromEntries(headers) };
    throw createGraphQLError('Too complex for now', { extensions: { http } });
  },
};

const schema = createSchema({
  typeDefs: 'type Query { me: Person } type Person { name: String, friends(first: Int): [Person] }',
  resolvers: {
    Query: { me: () => ({ name: 'Ada' }) },
    Person: { friends: () => [{ name: 'Bob' }] },
  },
});

const server = http.createServer(createYoga({ schema, plugins: [limitByCost], logging: false }));

server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}/`);
});
