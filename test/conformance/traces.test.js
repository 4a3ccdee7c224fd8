// The committed traces are those that the oracle gives, and there is something in them.
'use strict';

const fs = require('node:fs');
const { ALGORITHM_NAMES } = require('./oracle');
const { readTraces } = require('./traces/format');
const { TRACE_FILE, writeTraces } = require('./write-traces');

const text = fs.readFileSync(TRACE_FILE, 'utf8');

test('the trace file is what the oracle gives: node test/conformance/write-traces.js', () => {
  expect(text === writeTraces()).toBe(true);
});

test.each(ALGORITHM_NAMES)('the traces of %s hold answers of every kind', (algorithm) => {
  const traces = readTraces(text).filter(({ policy }) => policy.algorithm === algorithm);
  const attempts = traces.flatMap(({ operations }) =>
    operations.filter(({ kind }) => kind === 'attempt').map(({ numbers }) => numbers[3]),
  );
  for (const blockedBy of [0, 1, 2, 3, 4]) expect(attempts).toContain(blockedBy);
  expect(attempts.filter((blockedBy) => blockedBy === 0).length).toBeGreaterThan(200);
  const refunds = traces.flatMap(({ operations }) =>
    operations.filter(({ kind }) => kind === 'refund').map(({ numbers }) => numbers[3]),
  );
  expect(refunds).toContain(1);
  expect(refunds).toContain(0);
  expect(traces.some(({ policy }) => policy.limits.length === 3)).toBe(true);
  expect(traces.some(({ policy }) => policy.blockFor.length > 1)).toBe(true);
});
