// The metrics that are read from stats() when they are collected: a line for each.
'use strict';

const ofAll = () => true;
const isLocal = ({ keys }) => keys !== null;
const isRemote = ({ connection }) => connection !== undefined;

/** Only what is on Redis says this, and some clients do not know. */
const knowsState = ({ connection }) => typeof connection?.isUp === 'boolean';

/**
 * `kind` as prom-client has it; `appliesTo(stats)`; `samplesOf(stats)`: pairs of further labels and a value.
 */
const DEFINITIONS = [
  {
    name: 'decisions_total',
    help: 'Attempts that were decided, by outcome',
    kind: 'Counter',
    labels: ['outcome'],
    appliesTo: ofAll,
    samplesOf: ({ allowed, blocked }) => [
      [{ outcome: 'allowed' }, allowed],
      [{ outcome: 'blocked' }, blocked],
    ],
  },
  {
    name: 'errors_total',
    help: 'Calls that failed because of the clock or the store, softened by onError or not',
    kind: 'Counter',
    appliesTo: ofAll,
    samplesOf: ({ errors }) => [[{}, errors]],
  },
  {
    name: 'evictions_total',
    help: 'Ids dropped before they expired, for want of room (maxKeys)',
    kind: 'Counter',
    appliesTo: ofAll,
    samplesOf: ({ evicted }) => [[{}, evicted]],
  },
  {
    name: 'fallbacks_total',
    help: 'Decisions that onError made in place of the store',
    kind: 'Counter',
    appliesTo: isRemote,
    samplesOf: ({ fallbacks }) => [[{}, fallbacks]],
  },
  {
    name: 'keys',
    help: 'Ids held',
    kind: 'Gauge',
    appliesTo: isLocal,
    samplesOf: ({ keys }) => [[{}, keys]],
  },
  {
    name: 'memory_bytes',
    help: 'Memory held for ids, in bytes',
    kind: 'Gauge',
    appliesTo: isLocal,
    samplesOf: ({ bytes }) => [[{}, bytes]],
  },
  {
    name: 'pending_calls',
    help: 'Calls that wait for an answer of Redis or the key-value store',
    kind: 'Gauge',
    appliesTo: isRemote,
    samplesOf: ({ connection }) => [[{}, connection.pending]],
  },
  {
    name: 'redis_up',
    help: 'Whether there is a connection to Redis: 1 or 0',
    kind: 'Gauge',
    appliesTo: knowsState,
    samplesOf: ({ connection }) => [[{}, connection.isUp ? 1 : 0]],
  },
];

module.exports = { DEFINITIONS };
