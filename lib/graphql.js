// What a GraphQL query may return, as the cost of a request.
'use strict';

const { inAdapter } = require('./errors');
const {
  readCount,
  readList,
  readNonEmpty,
  readObject,
  rejectUnknownOptions,
} = require('./option-values');

const NAME = 'queryCost';
const KNOWN_OPTIONS = ['sizeArguments', 'longestList'];
const DEFAULT_SIZE_ARGUMENTS = ['first', 'last'];
const DEFAULT_LONGEST_LIST = 100;

/**
 * The number of fields that a query may return: those below `friends(first: 50)` count 50 times. graphql.d.ts
 * documents arguments and options. The document is one of the package graphql, which is not needed here.
 */
function queryCost(query, options = {}) {
  const { sizeArguments, longestList } = inAdapter(NAME, () => readOptions(options));
  const definitions = inAdapter(NAME, () => readDefinitions(query));
  const fragments = new Map(
    definitions
      .filter(({ kind }) => kind === 'FragmentDefinition')
      .map((fragment) => [fragment.name.value, fragment]),
  );
  const variables = query.variableValues ?? {};
  const costs = new Map(); // of fragments, each counted once, because they may spread each other often

  function costOfOperation({ selectionSet, variableDefinitions = [] }) {
    const defaults = new Map(
      variableDefinitions.map(({ variable, defaultValue }) => [variable.name.value, defaultValue]),
    );
    return costOf(selectionSet);

    function costOf(set) {
      return atMost((set?.selections ?? []).reduce((sum, node) => sum + costOfNode(node), 0));
    }

    function costOfNode({ kind, name, selectionSet, arguments: given = [] }) {
      if (kind === 'InlineFragment') return costOf(selectionSet);
      if (kind === 'FragmentSpread') return costOfFragment(name.value);
      const sizes = given.filter((one) => sizeArguments.includes(one.name.value)).map(sizeOf);
      return atMost(1 + (sizes.length === 0 ? 1 : Math.max(...sizes)) * costOf(selectionSet));
    }

    function costOfFragment(name) {
      if (!costs.has(name)) {
        costs.set(name, 0); // in a cycle, which is not valid
        costs.set(name, costOf(fragments.get(name)?.selectionSet));
      }
      return costs.get(name);
    }

    function sizeOf({ value }) {
      const size = value.kind === 'Variable' ? sizeIn(value.name.value) : numberOf(value);
      return typeof size === 'number' && size >= 0 ? atMost(size) : longestList;
    }

    /** The value of a variable, of any type. */
    function sizeIn(name) {
      if (Object.hasOwn(variables, name)) return variables[name];
      return numberOf(defaults.get(name));
    }
  }

  const isAsked = ({ kind, name }) =>
    kind === 'OperationDefinition' &&
    (query.operationName == null || name?.value === query.operationName);

  // Without a name, only one operation is valid.
  const sum = definitions
    .filter(isAsked)
    .reduce((sum, operation) => sum + costOfOperation(operation), 0);
  return atMost(Math.max(1, sum));
}

/** The value of a literal that is a number; otherwise undefined. */
function numberOf(literal) {
  const isNumber = literal?.kind === 'IntValue' || literal?.kind === 'FloatValue';
  return isNumber ? Number(literal.value) : undefined;
}

/** Costs are safe integers; a product with Infinity could be NaN. */
function atMost(cost) {
  return Math.min(Math.ceil(cost), Number.MAX_SAFE_INTEGER);
}

function readDefinitions(query) {
  const expected = 'what parse of the package graphql returns';
  const { definitions } = readObject('document', query?.document, expected);
  return readList('document.definitions', definitions, 'a list of at least one definition');
}

function readOptions(options) {
  rejectUnknownOptions(readObject('options', options), KNOWN_OPTIONS);
  const { sizeArguments = DEFAULT_SIZE_ARGUMENTS, longestList = DEFAULT_LONGEST_LIST } = options;
  const names = readList('sizeArguments', sizeArguments, 'a list of at least one name');
  return {
    sizeArguments: names.map((name, i) => readNonEmpty(`sizeArguments[${i}]`, name)),
    longestList: readCount('longestList', longestList),
  };
}

module.exports = { queryCost };
