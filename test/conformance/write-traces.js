// Writes the trace file from the oracle alone: node test/conformance/write-traces.js
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const { randomFrom } = require('../support/traces');
const { ALGORITHM_NAMES } = require('./oracle');
const {
  CORE_KINDS,
  LONG_UNITS,
  Oracles,
  SHORT_UNITS,
  largePolicy,
  randomPolicy,
  randomTrace,
} = require('./random-operations');
const { operationLine, policyLine } = require('./traces/format');

const TRACE_FILE = path.join(__dirname, 'traces', 'traces.txt');
const TRACES = 36;
const LARGE_TRACES = 6; // of them
const STEPS = 45;
const IDS = [0, 1];

function linesOf({ policy, operations }) {
  const oracles = new Oracles(policy);
  const lines = operations.map((operation, place) =>
    operationLine(operation, oracles.perform(operation, place)),
  );
  return [policyLine(policy), ...lines];
}

/** The whole file; the same at every run. */
function writeTraces() {
  const lines = [
    '# What the oracle of test/conformance answers; format.js tells how to read it.',
    '# Written by test/conformance/write-traces.js.',
  ];
  for (const algorithm of ALGORITHM_NAMES) {
    for (let seed = 1; seed <= TRACES; seed++) {
      const random = randomFrom(1_000_000 + seed);
      const units = seed % 2 === 0 ? LONG_UNITS : SHORT_UNITS;
      const drawPolicy = seed <= LARGE_TRACES ? largePolicy : randomPolicy;
      const policy = drawPolicy(random, { algorithm, units });
      lines.push(
        ...linesOf(randomTrace(random, { policy, steps: STEPS, ids: IDS, kinds: CORE_KINDS })),
      );
    }
  }
  return `${lines.join('\n')}\n`;
}

if (require.main === module) fs.writeFileSync(TRACE_FILE, writeTraces());

module.exports = { TRACE_FILE, writeTraces };
