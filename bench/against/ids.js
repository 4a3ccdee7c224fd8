// The ids of a cell: each time a new string, in an order without a pattern, each id equally often.
'use strict';

const { freshIds } = require('../js/workload');

const SEED = 2463534242;

/** A permutation of 0..count-1, always the same. */
function permutation(count) {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  let state = SEED;
  for (let i = count - 1; i > 0; i--) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    const j = (state >>> 0) % (i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/** A function that gives the next id. `count` calls give each id once, and so do the next `count` calls. */
function idsInTurn(count) {
  const order = permutation(count);
  const idAt = freshIds(count);
  let next = 0;
  return () => {
    const id = idAt(order[next]);
    next = next + 1 === count ? 0 : next + 1;
    return id;
  };
}

/** A function that gives another id on each of `count` calls. */
function idsThatGo(count) {
  const idAt = freshIds(count);
  let next = 0;
  return () => idAt(next++);
}

module.exports = { idsInTurn, idsThatGo };
