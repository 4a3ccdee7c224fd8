// Finds the first rule for a request: hundreds of paths cost no more than a few, RegExps are tried in order.
'use strict';

const { matchesGroup, matchesMethod } = require('./pattern');

const NONE = -1;

/** One segment of paths: `indexes` are of the rules whose path ends here, in their order. */
function createNode() {
  return { children: new Map(), indexes: [] };
}

function createTree(patterns) {
  const root = createNode();
  for (const [i, { prefix }] of patterns.entries()) {
    if (prefix === undefined) continue;
    let node = root;
    for (const segment of prefix.split('/').slice(1)) {
      if (!node.children.has(segment)) node.children.set(segment, createNode());
      node = node.children.get(segment);
    }
    node.indexes.push(i);
  }
  return root;
}

/** The node of the path's next segment, which begins with the slash at `start`. */
function childOf(node, path, start, end) {
  return node.children.get(path.slice(start + 1, end));
}

/** @param {object[]} patterns as of pattern.js */
function createFinder(patterns) {
  const tree = createTree(patterns);
  const regExps = patterns.flatMap(({ regExp }, i) => (regExp === undefined ? [] : [i]));

  function isFor(pattern, { method }, group) {
    return matchesMethod(pattern, method) && (group === undefined || matchesGroup(pattern, group));
  }

  function firstOf(indexes, from, target, group) {
    for (let k = 0; k < indexes.length; k++) {
      const i = indexes[k];
      if (i >= from && isFor(patterns[i], target, group)) return i;
    }
    return Infinity;
  }

  function findPrefix(from, target, group) {
    const path = target.normal;
    let least = firstOf(tree.indexes, from, target, group);
    let node = tree;
    let start = path.startsWith('/') ? 0 : path.length;
    while (start < path.length && node.children.size > 0) {
      const slash = path.indexOf('/', start + 1);
      const end = slash === -1 ? path.length : slash;
      node = childOf(node, path, start, end);
      if (node === undefined) break;
      least = Math.min(least, firstOf(node.indexes, from, target, group));
      start = end;
    }
    return least;
  }

  /**
   * The index of the first rule, `from` on, that matches the target, and the group if one is given; -1
   * where there is none.
   *
   * @param {{ path: string, normal: string, method: string }} target `normal` is the path in normal form
   */
  return function find(from, target, group) {
    const least = findPrefix(from, target, group);
    for (let k = 0; k < regExps.length && regExps[k] < least; k++) {
      const i = regExps[k];
      if (i < from || !isFor(patterns[i], target, group)) continue;
      const { regExp } = patterns[i];
      regExp.lastIndex = 0; // of a RegExp with the flag g or y
      if (regExp.test(target.path)) return i;
    }
    return least === Infinity ? NONE : least;
  };
}

module.exports = { NONE, createFinder };
