// The types of rollgate/graphql, with meaning, units, defaults and errors.

/**
 * What a query may return, as the `cost` of a request: the number of its fields, where those below
 * `friends(first: 50)` count 50 times. Lists without such an argument count once. An integer from 1 to 2^53 - 1.
 *
 * ```ts
 * queryCost({ document: parse('{ me { friends(first: 50) { name } } }') }); // 52
 * ```
 *
 * @throws TypeError or RangeError `ERR_ROLLGATE_OPTION`: an option is wrong, or there is no `document`
 */
export function queryCost(query: GraphQLQuery, options?: QueryCostOptions): number;

/** What GraphQL servers pass to `execute`. */
export interface GraphQLQuery {
  /** The query as `parse` of the package graphql returns it; validated, so that its fragments form no cycle. */
  document: { readonly definitions: readonly object[] };
  /** The values of its variables. */
  variableValues?: Readonly<Record<string, unknown>> | null | undefined;
  /** Which of its operations counts. By default all do, of which there is then one. */
  operationName?: string | null | undefined;
}

export interface QueryCostOptions {
  /** Arguments that say how long a list may be; of several, the largest counts. Default `['first', 'last']`. */
  sizeArguments?: readonly string[] | undefined;
  /** How long a list is taken to be if such an argument has no value, or none >= 0. Default 100. */
  longestList?: number | undefined;
}
