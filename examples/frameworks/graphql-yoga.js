// Limits GraphQL queries by what they may return. Run it: node examples/frameworks/graphql-yoga.js, then open
// http://127.0.0.1:3000/graphql
'use strict';

const http = require('node:http');
const { createGraphQLError, createSchema, createYoga } = require('graphql-yoga');
const { rateLimitFetch } = require('rollgate/fetch');

const limit = rateLimitFetch({ windowMs: 60_000, limit: 1000, cost: (_, info) => info.cost });

const limitByCost = {
  async onExecute({ args: { contextValue, ...query } }) {
    const info = { ip: contextValue.req.socket.remoteAddress, cost: costOf(query) };
    const { allowed, headers } = await limit(contextValue.request, info);
    if (allowed) return;
    const http = { status: 429, headers: Object.fromEntries(headers) };
    throw createGraphQLError('Too complex for now', { extensions: { http } });
  },
};

const LONGEST_LIST = 100;

/** The number of fields; those below friends(first: 50) count 50 times. */
function costOf({ document, variableValues = {} }) {
  const fragments = new Map(); // the cost of each, counted once
  const sumOf = (set) => (set?.selections ?? []).reduce((sum, node) => sum + countOf(node), 0);

  function countOf({ kind, name, selectionSet, arguments: args }) {
    if (kind === 'InlineFragment') return sumOf(selectionSet);
    if (kind === 'FragmentSpread') return costOfFragment(name.value);
    const first = args.find((one) => one.name.value === 'first')?.value;
    return 1 + (first === undefined ? 1 : sizeOf(first)) * sumOf(selectionSet);
  }

  function costOfFragment(wanted) {
    if (!fragments.has(wanted)) {
      const found = document.definitions.find(({ name }) => name?.value === wanted);
      fragments.set(wanted, sumOf(found.selectionSet));
    }
    return fragments.get(wanted);
  }

  function sizeOf({ kind, name, value }) {
    const size = Number(kind === 'Variable' ? variableValues[name.value] : value);
    return size >= 0 ? size : LONGEST_LIST;
  }

  const operations = document.definitions.filter(({ kind }) => kind === 'OperationDefinition');
  const cost = operations.reduce((sum, { selectionSet }) => sum + sumOf(selectionSet), 0);
  return Math.min(cost, Number.MAX_SAFE_INTEGER);
}

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
