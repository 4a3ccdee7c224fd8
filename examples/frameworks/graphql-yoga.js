// Limits GraphQL queries by what they may return. Run it: node examples/frameworks/graphql-yoga.js, then open
// http://127.0.0.1:3000/graphql
'use strict';

const http = require('node:http');
const { getNullableType, getOperationAST, isIntrospectionType, isListType } = require('graphql');
const { getComplexity } = require('graphql-query-complexity');
const { createGraphQLError, createSchema, createYoga } = require('graphql-yoga');
const { rateLimitFetch } = require('rollgate/fetch');

const LONGEST_LIST = 100; // how long a list may be whose size is not known

/** A field counts 1, and what is below a list as often as the list may be long. */
function estimate({ type, field, args, childComplexity }) {
  const isList = isListType(getNullableType(field.type)) && !isIntrospectionType(type);
  const sizes = [args.first, args.last]
    .filter((size) => size != null)
    .map((size) => (size > 0 ? Number(size) : LONGEST_LIST));
  if (isList && sizes.length === 0) sizes.push(LONGEST_LIST);
  return 1 + Math.max(1, ...sizes) * childComplexity;
}

/** What a valid query costs: an integer from 1 to 2^53 - 1. Throws for what must not be executed. */
function complexityOf({ schema, document, variableValues, operationName }) {
  const complexity = getComplexity({
    schema,
    query: document,
    variables: variableValues,
    operationName: getOperationAST(document, operationName)?.name?.value,
    estimators: [estimate],
    maxQueryNodes: 1000, // fragments that spread each other may have billions
  });
  return Math.min(Math.max(1, Math.ceil(complexity)), Number.MAX_SAFE_INTEGER);
}

const limit = rateLimitFetch({ windowMs: 60_000, limit: 1000, cost: (_, info) => info.cost });

const limitByCost = {
  async onExecute({ args }) {
    const info = { ip: args.contextValue.req.socket.remoteAddress, cost: complexityOf(args) };
    const { allowed, headers } = await limit(args.contextValue.request, info);
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
