// Simulations of many seeds, a few at once: the program as it is, and broken variants of it.
'use strict';

/** While one waits for the server, the others go on. */
const AT_ONCE = 32;

/** From 1 on; or the one in the environment variable ROLLGATE_SEED, to repeat what has failed. */
function seedsOf(count) {
  const { ROLLGATE_SEED } = process.env;
  if (ROLLGATE_SEED) return [Number(ROLLGATE_SEED)];
  return Array.from({ length: count }, (_, i) => i + 1);
}

/** Calls `simulate` for each seed that is left, until isOver(). */
async function ofEach(seeds, isOver, server, simulate) {
  const left = seeds.values();
  const simulateLeft = async () => {
    for (const seed of left) {
      if (isOver()) return;
      await server.forOne((ofOne) => simulate(seed, ofOne));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, simulateLeft));
}

/** Promises how much was simulated, and the violations: { seeds, uses, messages, violations }. */
async function simulateAll(simulate, server, seeds) {
  const sums = { seeds: seeds.length, violations: [] };
  const isOver = () => false;
  await ofEach(seeds, isOver, server, async (seed, ofOne) => {
    const { violation, ...counts } = await simulate({ seed, server: ofOne });
    if (violation !== undefined) sums.violations.push(violation);
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  });
  return sums;
}

/** Promises the first seed that finds the variant, and the violation: { seed, violation }; undefined if none does. */
async function findVariant(simulate, server, seeds, variant) {
  let found;
  const isOver = () => found !== undefined;
  await ofEach(seeds, isOver, server, async (seed, ofOne) => {
    const { violation } = await simulate({ seed, server: ofOne, variant, isOver });
    if (violation !== undefined) found ??= { seed, violation };
  });
  return found;
}

module.exports = { findVariant, seedsOf, simulateAll };
