// The cost of GraphQL queries, for import.
import graphql from './graphql.js';

export const { queryCost } = graphql;
