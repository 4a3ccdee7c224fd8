// What a GraphQL query may return, as the cost of a request.
'use strict';

const { inAdapter } = require('../base/errors');
const {
  readCount,
  readList,
  readNonEmpty,
  readObject,
  rejectUnknownOptions,
} = require('../options/values');

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

    /** Keeps the sets that it is in by itself: fragments may spread each other deeper than functions can call. */
    function costOf(set) {
      const open = [{ nodes: nodesOf(set), sum: 0 }];
      for (;;) {
        const top = open.at(-1);
        const node = top.nodes.pop();
        if (node !== undefined) {
          const inner = enter(node);
          if (inner === undefined) top.sum += costs.get(node.name.value);
          else open.push(inner);
          continue;
        }
        open.pop();
        const cost = totalOf(top);
        if (open.length === 0) return cost;
        if (top.fragment !== undefined) costs.set(top.fragment, cost);
        open.at(-1).sum += cost;
      }
    }

    /** What is inside of a node, with its `size` if it is a field; undefined for a fragment whose cost is known. */
    function enter({ kind, name, selectionSet, arguments: given = [] }) {
      if (kind === 'InlineFragment') return { nodes: nodesOf(selectionSet), sum: 0 };
      if (kind === 'FragmentSpread') return enterFragment(name.value);
      const sizes = given.filter((one) => sizeArguments.includes(one.name.value)).map(sizeOf);
      const size = sizes.length === 0 ? 1 : sizes.reduce((most, one) => Math.max(most, one));
      return { nodes: nodesOf(selectionSet), sum: 0, size };
    }

    function enterFragment(name) {
      if (costs.has(name)) return undefined;
      costs.set(name, 0); // in a cycle, which is not valid
      return { nodes: nodesOf(fragments.get(name)?.selectionSet), sum: 0, fragment: name };
    }

    /** A scalar of the schema may take a string or a bigint as a number. */
    function sizeOf({ value }) {
      const given = value.kind === 'Variable' ? sizeIn(value.name.value) : valueIn(value);
      if (typeof given === 'number') return given >= 0 ? atMost(given) : longestList;
      const isPlain = typeof given === 'string' || typeof given === 'bigint';
      return isPlain && Number(given) > longestList ? atMost(Number(given)) : longestList;
    }

    /** The value of a variable, of any type. */
    function sizeIn(name) {
      if (Object.hasOwn(variables, name)) return variables[name];
      return valueIn(defaults.get(name));
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

/** The selections, to take from the end. */
function nodesOf(set) {
  return [...(set?.selections ?? [])];
}

/** The cost of what is inside, and of the field around it. */
function totalOf({ sum, size }) {
  const inside = atMost(sum);
  return size === undefined ? inside : atMost(1 + size * inside);
}

/** The value of a literal that is a number or a string; otherwise undefined. */
function valueIn(literal) {
  if (literal?.kind === 'StringValue') return literal.value;
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
