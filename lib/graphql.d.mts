// The types of rollgate/graphql for import.

export type { GraphQLQuery, QueryCostOptions } from './graphql.js';
export { queryCost } from './graphql.js';
