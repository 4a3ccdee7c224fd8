// The recipes for web servers do what docs/recipes.md promises.
'use strict';

const { once } = require('node:events');
const http = require('node:http');
const { waitUntil } = require('../support/outcome');
const { load } = require('../support/page-programs');
const { askAt, converse, from, having, post } = require('./conversation');
const { codeOf, listen } = require('./recipes');

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

let now;
const at = (time) => () => {
  now = time;
};

/** Serves a recipe in this process, by the clock of the test; gives `ask` and what the program calls `names`. */
async function serve(name, names = 'app') {
  const program = load(codeOf(name), names, { clock: () => now });
  program.app.set('env', 'test'); // Express prints no error of a client that leaves
  const url = await listen(program.app);
  return { ...program, url, ask: askAt(url) };
}

const byKey = (key) => having({ 'x-api-key': key });
const PROXY_SAW = { client: '198.51.100.7', cdn: '203.0.113.9', cdn6: '2001:db8:cd::9' };
const ADA = byKey('key-of-ada');
const BOB = byKey('key-of-bob');

const tokenOfAda = (address) =>
  having({ authorization: 'Bearer token-of-ada', 'x-forwarded-for': address });

/** A request through a proxy that appended an address to what the client sent. */
const through = (by, sent, header) =>
  having({ 'x-forwarded-for': [...sent, by].join(', '), 'cf-connecting-ip': header });
const ofCdn = (client, by = PROXY_SAW.cdn) => through(by, ['192.0.2.99'], client);

const attempt = (name, password, address = '192.0.2.1') =>
  post('login', new URLSearchParams({ name, password }), { 'x-forwarded-for': address });
const guess = (name, address) => attempt(name, 'guess', address);
const logIn = (address) => attempt('ada', 'correct horse', address);
const FAILED = { text: 'Name or password are wrong.\n', 'retry-after': null };
const TOO_MANY = { text: 'Too many attempts, please try again later.\n', 'retry-after': null };
const twenty = Array.from({ length: 20 }, (_, i) => guess(`user ${i}`));
const spellings = ['ada', 'ADA', ' ada', 'ada ', 'ａｄａ'];

const TOKYO_17TH = Date.parse('2026-12-16T15:00:00Z');
const DECEMBER = Date.parse('2026-12-01T00:00:00Z');
const NOVEMBER = Date.parse('2026-11-17T10:00:00Z');
const secondsTo = (time, since) => String((time - since) / 1000);

const reported = (events, authorization = 'Bearer of-the-provider') =>
  post('events', { events }, { authorization });
const failures = (count) => Array(count).fill({ type: 'login_failed', account: 'Ada' });
const account = (name) => post('login', { account: name });

const put = (body, more) => ['file', { method: 'PUT', body, ...more }];
const bytes = (length) => put('x'.repeat(length));

/** By recipe: what a conversation shows, and its rows. */
const CONVERSATIONS = {
  'Users and visitors': {
    'users count by id from every address, others by the address that the proxy saw': [
      [
        ...[1, from('203.0.113.9, 192.0.2.1'), 200],
        { text: '192.0.2.1\n', ratelimit: '"10-in-1min"; r=9; t=60' },
      ],
      [9, from('198.51.100.9, 192.0.2.1'), 200],
      [1, from('192.0.2.1'), 429],
      [1, from('192.0.2.2'), 200],
      [100, tokenOfAda('192.0.2.1'), 200, { text: 'user:ada\n' }],
      [1, tokenOfAda('192.0.2.3'), 429],
    ],
    'an unknown token is a visitor': [
      [
        ...[1, having({ authorization: 'Bearer guess', 'x-forwarded-for': '2001:db8::1' }), 200],
        { text: '2001:db8::/56\n' },
      ],
    ],
  },
  'A login': {
    'the sixth attempt on an account is refused from any address, also with its password': [
      [1, guess('nobody'), 401, FAILED],
      ...spellings.map((name) => [1, guess(name), 401, FAILED]),
      [1, guess('ada'), 429, TOO_MANY],
      [1, logIn('198.51.100.7'), 429, TOO_MANY],
      [1, guess('bob'), 401, FAILED],
      at(15 * MINUTE_MS - 1),
      [1, logIn(), 429],
      at(15 * MINUTE_MS),
      ...Array(4).fill([
        [1, logIn(), 200],
        [3, guess('ada'), 401],
      ]),
    ].flatMap((row) => (Array.isArray(row[0]) ? row : [row])),
    'five of fifty simultaneous passwords are checked': [
      async (ask) => {
        const asked = Array.from({ length: 50 }, (_, i) => ask(...guess('ada', `198.51.100.${i}`)));
        const statuses = (await Promise.all(asked)).map(({ status }) => status);
        expect(statuses.filter((status) => status === 401)).toHaveLength(5);
      },
    ],
    'an address may fail 20 times, and then can neither log in nor hurt an account': [
      ...twenty.flatMap((failing) => [
        [1, logIn(), 200],
        [1, failing, 401],
      ]),
      [6, guess('ada'), 429, TOO_MANY],
      [1, logIn(), 429, TOO_MANY],
      [1, logIn('198.51.100.7'), 200],
    ],
  },
  Plans: {
    'a plan keeps its limits of a second and of a day': [
      ...Array.from({ length: 33 }, (_, i) => [
        at(i * 1000),
        [3, ADA, 200],
        [1, ADA, 429, { 'retry-after': '1' }],
      ]).flat(),
      at(33_000),
      [1, ADA, 200],
      [1, ADA, 429, { 'retry-after': secondsTo(DAY_MS, 33_000) }],
      at(DAY_MS - 1),
      [1, ADA, 429],
      at(DAY_MS),
      [1, ADA, 200],
    ],
    'customers have their own counts, and see both windows; strangers get nothing': [
      [1, ADA, 200],
      [...[1, BOB, 200], { text: '9 left\n', 'ratelimit-policy': /q=10; w=1;.*q=1000; w=86400;/ }],
      [1, byKey('made up'), 401],
      [1, '', 401],
    ],
  },
  'A proxy and a CDN': {
    'a client cannot escape its count with headers that it sends': [
      ...[1, 2, 3, 4, 5, 6].map((i) => {
        const spoofed = `192.0.2.${i}`;
        const request = through(PROXY_SAW.client, [spoofed, '203.0.113.1'], spoofed);
        return i < 6 ? [1, request, 200, { text: `${PROXY_SAW.client}\n` }] : [1, request, 429];
      }),
    ],
    'a client of the CDN has its own count, the node of the CDN one where its header is missing': [
      [4, ofCdn('192.0.2.1'), 200, { text: '192.0.2.1\n' }],
      [1, ofCdn('192.0.2.1', PROXY_SAW.cdn6), 200],
      [1, ofCdn('192.0.2.1'), 429],
      [1, ofCdn('192.0.2.2'), 200, { text: '192.0.2.2\n' }],
      [1, ofCdn('2001:db8:1::1'), 200, { text: '2001:db8:1::/56\n' }],
      [1, from(PROXY_SAW.cdn), 200, { text: `${PROXY_SAW.cdn}\n` }],
    ],
  },
  Uploads: {
    'cost their bytes, and what they may have at most where that is unknown': [
      [1, bytes(200_001), 413],
      [2, bytes(200_000), 200],
      [1, bytes(199_899), 200],
      (ask) => {
        const body = new Blob(['x'.repeat(100)]).stream();
        const row = [1, put(body, { duplex: 'half' }), 200, { text: '100 bytes\n' }];
        return converse(ask, [row]);
      },
      [1, bytes(200_000), 200],
      [1, bytes(1), 429],
    ],
    'a client may send 30 in a minute': [
      [30, bytes(1), 200],
      [1, bytes(1), 429],
      at(MINUTE_MS),
      [1, bytes(1), 200],
    ],
  },
  'Plans from a database': {
    'the quota of the month comes back with the next month': [
      at(NOVEMBER),
      [3, ADA, 200],
      [1, ADA, 429],
      at(NOVEMBER + 1000),
      [2, ADA, 200],
      [1, ADA, 429, { 'retry-after': secondsTo(DECEMBER, NOVEMBER + 1000) }],
      at(DECEMBER),
      [1, ADA, 200],
      [1, BOB, 200, { text: '99 left\n' }],
      [1, byKey('unknown'), 401],
    ],
  },
  'A quota and a burst limit': {
    'are decided together, in the billing month of the organisation': [
      at(NOVEMBER),
      ...['3', '2', '1'].map((left) => [1, ADA, 200, { 'x-quota-remaining': left }]),
      [1, ADA, 429, { text: 'too many calls at once\n', 'retry-after': '20' }],
      [1, BOB, 200, { 'x-quota-remaining': '0' }],
      [
        ...[60, BOB, 429],
        {
          text: 'the quota of this month is used up\n',
          'retry-after': secondsTo(TOKYO_17TH, NOVEMBER),
        },
      ],
      at(TOKYO_17TH),
      [1, BOB, 200, { 'x-quota-remaining': '3' }],
      [1, byKey('nobody'), 401],
    ],
  },
  'Failed logins that are reported later': {
    'five failures close the account, a success opens it': [
      [1, reported(failures(9), 'Bearer guess'), 401],
      [1, reported(failures(4)), 204],
      [1, account('ada'), 200],
      at(1000),
      [1, reported(failures(3)), 204],
      [1, account('ada'), 429, { 'retry-after': '899' }],
      [1, account('bob'), 200],
      at(899_999),
      [1, account('ada'), 429],
      at(900_000),
      [1, account('ada'), 200],
      [1, reported([...failures(9), { type: 'login_succeeded', account: 'ada' }]), 204],
      [1, account('ada'), 200],
    ],
  },
};

beforeEach(at(0));

const uploads = [];
afterEach(() => {
  for (const upload of uploads.splice(0)) upload.destroy(); // or it would keep Jest from ending
});

describe.each(Object.entries(CONVERSATIONS))('%s', (name, conversations) => {
  test.each(Object.entries(conversations))('%s', async (_what, rows) => {
    const { app, ask } = await serve(name);
    if (name === 'A login') app.set('trust proxy', 1); // so that the test has several addresses
    await converse(ask, rows);
  });
});

describe('plans from a database', () => {
  test('a customer who changes the plan keeps what was counted', async () => {
    const { ask, CUSTOMERS, cache } = await serve('Plans from a database', 'app, CUSTOMERS, cache');
    await converse(ask, [
      [3, ADA, 200],
      at(1000),
      [1, ADA, 200, { text: '1 left\n' }],
      () => {
        CUSTOMERS.set('key-of-ada', { burst: 3, calls: 7 });
        cache.delete('key-of-ada');
      },
      [
        ...[1, ADA, 200],
        { text: '1 left\n', 'ratelimit-policy': /"burst"; q=3; w=1; .*"calls"; q=7; pk=/ },
      ],
    ]);
  });

  test('requests that come at once share one query, and a failed one is not remembered', async () => {
    const query = jest.fn(async () => ({ burst: 9, calls: 9 }));
    query.mockRejectedValueOnce(new Error('no connection'));
    const asked = ['async (apiKey) => CUSTOMERS.get(apiKey)', 'query'];
    const { limitsOf } = load(codeOf('Plans from a database', asked), 'limitsOf', { query });
    const failed = await Promise.allSettled([limitsOf('a'), limitsOf('a')]);
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await Promise.all([limitsOf('a'), limitsOf('a')]);
    expect(limitsOf('a')).toEqual({ burst: 9, calls: 9 });
    expect(query).toHaveBeenCalledTimes(2);
  });
});

test('of three uploads at once, one is refused and uses up no bytes, until another has ended or left', async () => {
  const { ask, url, twoAtOnce } = await serve('Uploads', 'app, twoAtOnce');
  const held = (count) =>
    waitUntil(`${count} are held`, () => twoAtOnce.limiter.stats().held === count);
  const begin = async (count) => {
    const options = { method: 'PUT', agent: false };
    const upload = http.request(`${url}/file`, options).on('error', () => {});
    uploads.push(upload);
    upload.write('x'.repeat(50_000));
    await held(count);
    return upload;
  };
  const [leaving, ending] = [await begin(1), await begin(2)];
  const text = 'Two of your uploads run already.\n';
  await converse(ask, [
    [5, bytes(200_000), 429, { text }],
    [23, bytes(1), 429, { text }],
    [1, bytes(1), 429, { text: /^Too many requests/ }], // those were 30 in a minute
    at(MINUTE_MS),
  ]);
  leaving.destroy();
  await held(1);
  await converse(ask, [[1, bytes(100_000), 200]]);
  const [{ statusCode }] = await once(ending.end(), 'response');
  expect(statusCode).toBe(200);
  await held(0);
  // 200,000 bytes are used.
  await converse(ask, [
    [4, bytes(200_000), 200],
    [1, bytes(1), 429],
    () => held(0),
    at(60 * MINUTE_MS),
    [1, bytes(1), 200],
  ]);
});
