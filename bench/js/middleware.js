// Question: how much CPU does the middleware add to a request, beside express-rate-limit with the same headers?
//
// Bias, also printed below the tables (see `bias`): refused requests are answered like the others, nothing
// else is asked of either, and what a request costs without a middleware is taken off.

const { main } = require('./harness');
const { serveAndAsk } = require('./middleware-http');
const { SUBJECTS, createMiddleware, createRequests } = require('./middleware-subjects');
const { failures, figureOf, range, rounds, times } = require('./report');

const HEADERS = {
  legacy: { legacyHeaders: true, standardHeaders: false },
  'draft-6': { legacyHeaders: false, standardHeaders: 'draft-6' },
  'draft-7': { legacyHeaders: false, standardHeaders: 'draft-7' },
  'draft-8': { legacyHeaders: false, standardHeaders: 'draft-8' },
};
const CLIENTS = [1, 10_000];
const WARM_UP_REQUESTS = 20_000;

function jobs({ quick }) {
  const pace = quick
    ? { chunks: 5, requests: 1000, rounds: 1 }
    : { chunks: 41, requests: 4000, rounds: 3 };
  const overHttp = quick
    ? { chunks: 2, requests: 500, rounds: 1 }
    : { chunks: 9, requests: 3500, rounds: 3 };
  const names = Object.keys(HEADERS);
  return [
    ...CLIENTS.flatMap((clients) =>
      names.map((headers) => ({ key: `process/${clients}/${headers}`, headers, clients, ...pace })),
    ),
    ...names.map((headers) => ({ key: `http/1/${headers}`, headers, http: true, ...overHttp })),
  ];
}

/** The subjects in turn within one process, chunk by chunk: a slow moment of the machine meets all. */
async function measure(job) {
  const options = HEADERS[job.headers];
  const run = job.http ? await serveAndAsk(options) : await driveByHand(options, job);
  const least = Object.fromEntries(SUBJECTS.map((subject) => [subject, Infinity]));
  for (let i = 0; i < job.chunks; i++) {
    for (let j = 0; j < SUBJECTS.length; j++) {
      const subject = SUBJECTS[(i + j) % SUBJECTS.length];
      least[subject] = Math.min(least[subject], await run.cpuOf(subject, job.requests));
    }
  }
  await run.close?.();
  return least;
}

async function driveByHand(options, { clients }) {
  const nextRequest = createRequests(clients);
  const middleware = Object.fromEntries(
    await Promise.all(
      SUBJECTS.map(async (subject) => [subject, await createMiddleware(subject, options)]),
    ),
  );

  /** ns of CPU for each request. */
  async function cpuOf(subject, requests) {
    const limit = middleware[subject];
    const before = process.cpuUsage();
    for (let i = 0; i < requests; i++) {
      const { req, res } = nextRequest();
      await new Promise((resolve) => limit(req, res, resolve));
      res.end('passed');
    }
    const { user, system } = process.cpuUsage(before);
    return ((user + system) * 1000) / requests;
  }

  for (const subject of SUBJECTS) await cpuOf(subject, WARM_UP_REQUESTS);
  return { cpuOf };
}

/** What a subject adds to `base`, the requests without it. */
function added(stat, base) {
  if (!stat || !base) return undefined;
  const above = (value) => value - base.figure;
  return { figure: above(stat.figure), min: above(stat.min), max: above(stat.max) };
}

const divided = (one, other) => times(one?.figure / other?.figure);

const TITLES = {
  'process/1': 'In one process, one client: all but the first are refused',
  'process/10000': 'In one process, 10,000 clients in turn: all pass',
  'http/1': 'Over HTTP, Express 5 with one route, one client with 16 connections',
};

function comparisons(results) {
  return Object.entries(results).map(([key, { none, rollgate, expressRateLimit }]) => {
    const [, prefix, headers] = /^(.+)\/(.+?)$/.exec(key);
    return {
      what: `CPU added to a request. ${TITLES[prefix]}`,
      to: `express-rate-limit with ${headers} headers`,
      ours: added(rollgate, none),
      theirs: added(expressRateLimit, none),
    };
  });
}

function tables(results) {
  return Object.entries(TITLES).map(([prefix, title]) => {
    const entries = Object.keys(HEADERS)
      .filter((headers) => results[`${prefix}/${headers}`])
      .map((headers) => [headers, results[`${prefix}/${headers}`]]);
    return {
      title,
      columns: [
        'headers',
        'rollgate adds, CPU ns',
        'min – max',
        'express-rate-limit adds, CPU ns',
        'min – max',
        'rollgate / express-rate-limit',
        'the same beyond the headers',
        'the headers alone, CPU ns',
        'no middleware, CPU ns',
        'rounds',
      ],
      rows: entries.map(([headers, result]) => rowOf(headers, result)),
      notes: failures(entries),
    };
  });
}

function rowOf(headers, result) {
  const { none, headersAlone, rollgate, expressRateLimit } = result;
  const [ours, theirs] = [added(rollgate, none), added(expressRateLimit, none)];
  return [
    headers,
    figureOf(ours),
    range(ours),
    figureOf(theirs),
    range(theirs),
    divided(ours, theirs),
    divided(added(rollgate, headersAlone), added(expressRateLimit, headersAlone)),
    figureOf(added(headersAlone, none)),
    figureOf(none),
    rounds(result),
  ];
}

module.exports = {
  name: 'middleware',
  title: 'The middleware',
  question:
    'How much CPU does the middleware add to a request, compared with express-rate-limit with its MemoryStore and the same headers?',
  bias: [
    'In one process: requests and responses are objects of node:http without a connection. Their cost without a middleware is subtracted. The cost of headers in Node is not: "the headers alone" sets the same headers with constant values, which is the minimum that any middleware adds. All subjects take turns in one process, in chunks, and the least time of all chunks counts. Unlike elsewhere on this page, it is below 1 if rollgate needs less.',
    'The limit is 100 in 15 minutes. So a single client is soon refused, and each of 10,000 clients passes. A handler lets refused requests through, so that they get the same response.',
    'At any moment, nearly all requests of a run get headers with the same numbers, and rollgate reuses the header of draft 7. If all requests got different numbers, rollgate would add about 15 % more with draft 7.',
    'Over HTTP: each subject is a server in its own process, with a client in another process. The CPU is that of the server. The middleware is a small part of it, so the difference of two large figures contains their noise.',
  ],
  budgetMs: 340_000,
  jobs,
  measure,
  tables,
  comparisons,
};

if (require.main === module) main(__filename, module.exports);
