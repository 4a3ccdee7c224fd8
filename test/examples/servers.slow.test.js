// The servers in examples, README and docs, run as their readers run them: what clients get, row by row.
'use strict';

const path = require('node:path');
const { getIntrospectionQuery } = require('graphql');
const ts = require('typescript');
const { unlinkShared } = require('../..');
const { blocksOf, readPage, ROOT, serveBlock } = require('../support/page-programs');
const { serve, serveExample, stop } = require('../support/run-program');
const { askAt, converse, from, having, post } = require('./conversation');

const FRAMEWORKS = 'examples/frameworks';

const running = [];
afterEach(() => Promise.all(running.splice(0).map((server) => stop(server))));
afterAll(() => unlinkShared('example-cluster'));

const DECORATED = {
  target: ts.ScriptTarget.ES2022,
  experimentalDecorators: true,
  emitDecoratorMetadata: true,
};

/** As the compiler of a NestJS project emits it. */
const compiled = (source) =>
  ts.transpileModule(source, { compilerOptions: { ...DECORATED, module: ts.ModuleKind.CommonJS } })
    .outputText;

const serveSource = (source) =>
  serve(['--input-type=commonjs', '--eval', source], { PORT: '0' }, /http:\/\/\S+?(?=\/\s)/);

function begin(name) {
  const [file, block] = name.split(', block ');
  if (block) return serveBlock(blocksOf(file)[block - 1]);
  if (file.endsWith('.ts')) return serveSource(compiled(readPage(file)));
  // What users of Express 4 have under the name of the package.
  const [ofExpress, version] = name.split(' on Express ');
  if (version) return serveSource(readPage(ofExpress).replace("'express'", `'express-${version}'`));
  return serveExample(file.replace('examples/', ''));
}

/** Starts an example, or a block of a page; gives `ask`. */
async function start(name) {
  const server = await begin(name);
  running.push(server);
  return askAt(server.found);
}

/** Linux has more than one address on the loopback. */
const OTHER_CLIENT =
  process.platform === 'linux' ? [[1, ['', { localAddress: '127.0.0.2' }], 200]] : [];
const SECONDS = /^([1-5]?\d|60)$/;

const byKey = (page, key = 'key-of-ada', method = 'GET') => [
  page,
  { method, headers: { 'x-api-key': key } },
];
const attempt = (name, password) => post('login', new URLSearchParams({ name, password }));
const LOGGED_IN = attempt('ada', 'correct horse');
const REFUSED = { text: 'Too many attempts, please try again later.\n' };
const WRONG = { text: 'Name or password are wrong.\n' };

const chat = (maxTokens, user = 'ada') =>
  post('chat', { prompt: 'hi', maxTokens }, { 'x-user': user });
const ofAcme = (user) => post('chat', {}, { 'x-user': user, 'x-organisation': 'acme' });
const query = (text, more) => post('graphql', { query: text, ...more });
const greet = (user) => having({ 'x-user': user }, 'greet');
const visitor = (page, more) => {
  const [to, init] = from('192.0.2.1', page);
  return [to, { ...init, ...more }];
};

const FRIENDS = '{ me { friends(first: 30) { name friends(first: 10) { name } } } }';
const VARIABLE = 'query($n: Int) { me { friends(first: $n) { name } } }';
const CYCLE = 'fragment f on User { ...g } fragment g on User { friends { ...f } }';
/** Fragments that spread each other twice: billions of fields. */
const HUGE = Array.from({ length: 60 }, (_, i) => {
  const next = i < 59 ? `...f${i + 1} a: me { ...p } ...f${i + 1}` : 'me { name }';
  return `fragment f${i} on Query { ${next} }`;
});

const CONVERSATIONS = {
  'README.md, block 1': [
    [1, '', 200, { text: '99 more in this minute\n' }],
    [1, '', 200, { ratelimit: '"100-in-1min"; r=98; t=60' }],
  ],
  'docs/getting-started.md, block 1': [
    ...[2, 1, 0].map((left) => [1, 'api', 200, { text: `${left} left\n` }]),
    [1, 'api', 429, { 'retry-after': /^(59|60)$/ }],
    [1, '', 200, { text: 'As often as you like.\n' }],
  ],
  'docs/getting-started.md, block 2': [
    ...[4, 3, 2, 1, 0].map((left) => [1, visitor(), 200, { text: `${left} left\n` }]),
    [
      1,
      visitor(),
      429,
      { text: '{"error":"too many requests"}', ratelimit: /"100-in-1day"; r=95/ },
    ],
    [1, byKey(''), 200, { text: '4 left\n' }],
    [1, from('192.0.2.2'), 200, { text: '4 left\n' }],
    [1, visitor('health'), 200],
    [5, visitor('login', { method: 'POST' }), 401],
    [1, visitor('login', { method: 'POST' }), 429],
  ],
  'docs/budgets.md, block 1': [
    [
      ...[1, chat(9000), 200],
      {
        text: 'You said: hi',
        ratelimit: /"requests"; r=19; t=60, "tokens"; r=998; t=60/,
        'ratelimit-policy': /"tokens"; q=10000; w=60; pk=/,
      },
    ],
    [1, chat(9800), 200], // the tokens that a request did not use have come back
    [1, chat(9900), 429, { 'retry-after': SECONDS }],
    [1, chat(10_000), 429, { 'retry-after': null }],
    [1, chat(9900, 'bob'), 200],
    [1, chat('many'), 500],
  ],
  'docs/budgets.md, block 3': [
    [3, ofAcme('ada'), 200],
    [2, ofAcme('bob'), 200],
    [1, ofAcme('bob'), 429],
  ],
  'docs/budgets.md, block 4': [
    [1, query('{ me { friends(first: 30) { name posts(first: 10) { title } } } }'), 200],
    [1, query('query($n: Int) { me { friends(first: 30) { posts(first: $n) { title } } } }'), 429],
    [1, query('{ me { name } }'), 200, { text: '{"data":{"me":{"name":"Ada"}}}' }],
    // What must not be executed is answered with its error.
    [1, query(), 200, { text: /^\{"errors":.*Syntax Error/ }],
    [1, query(`{ me { ...f } } ${CYCLE}`), 200, { text: /^\{"errors":.*within itself/ }],
    [1, query(`{ me ${'{ a '.repeat(1000)}`), 200, { text: /^\{"errors":.*2000 tokens/ }],
    [
      1,
      query(VARIABLE, { variables: { n: 'many' } }),
      200,
      { text: /^\{"errors":.*invalid value/ },
    ],
    [
      1,
      query('{ me { name } }', { operationName: 'unknown' }),
      200,
      { text: /^\{"errors":.*unknown/ },
    ],
  ],
  'examples/cluster.js': [
    async (ask) => {
      const texts = [];
      for (let i = 0; i < 10; i++) texts.push((await ask()).text.split(':')[0]);
      expect(new Set(texts).size).toBe(3);
    },
    [10, '', 429],
  ],
  'examples/rules.js': [
    [1, byKey('search', 'nobody'), 401],
    [10, byKey('search'), 200],
    [5, byKey('search', 'key-of-bob'), 200],
    async (ask) => {
      const asked = Array.from({ length: 5 }, () => ask(...byKey('search', 'key-of-bob')));
      expect((await Promise.all(asked)).map(({ status }) => status)).toContain(429);
    },
    [3, byKey('login', 'key-of-bob', 'POST'), 403],
    [1, byKey('login', 'key-of-bob', 'POST'), 429],
    [1, byKey('admin'), 429], // a trap
    [1, byKey('search'), 429],
  ],
  'examples/express-by-hand.js': [
    async (ask) => {
      const answers = await Promise.all(Array.from({ length: 20 }, () => ask()));
      expect(answers.map(({ status }) => status)).toEqual(expect.arrayContaining([200, 429]));
      const refused = answers.find(({ status }) => status === 429);
      expect(refused.text).toMatch(/^You must wait \d+ ms before you can make requests\.$/);
    },
  ],
  'examples/login.js': [
    ...Array(2).fill([
      [4, attempt('ada', 'guess'), 401, WRONG],
      [9, LOGGED_IN, 200], // resets the account, and does not count
    ]),
    [
      [3, attempt('ada', 'guess'), 401],
      [2, attempt(' ADA', 'guess'), 401],
      [1, LOGGED_IN, 429, REFUSED],
      // That were 13 of 20 failures of this address, and a refusal, which is one as well.
      [5, attempt('bob', 'guess'), 401, WRONG],
      [1, attempt('cleo', 'guess'), 401, WRONG],
      [1, attempt('eve', 'guess'), 429, REFUSED],
    ],
  ].flat(),
  'examples/frameworks/fastify.js': [
    [1, '', 200, { text: 'Welcome. 9 more in this minute.\n' }],
    [9, '', 200],
    [1, '', 429],
    [2, 'dear', 200],
    [1, 'dear', 429],
    [12, 'health', 200],
  ],
  'examples/frameworks/nest-throttler.ts': [
    [10, '', 200],
    [1, '', 429, { text: /"statusCode":429/ }],
    [1, 'dear', 200, { 'x-ratelimit-remaining': '1' }],
    [1, 'dear', 200],
    [1, 'dear', 429, { 'retry-after': SECONDS }],
    ...OTHER_CLIENT,
  ],
  'examples/frameworks/trpc.js': [
    [10, greet('ada'), 200, { text: /"data":"Welcome, ada\."/ }],
    [1, greet('ada'), 429, { text: /"code":"TOO_MANY_REQUESTS"/, 'retry-after': SECONDS }],
    [1, greet('bob'), 200],
  ],
  'examples/frameworks/graphql-yoga.js': [
    // 1 for me, 1 for its friends, 30 names, 30 lists of 10 names: 362.
    [2, query(FRIENDS), 200, { text: /"name":"Bob"/ }],
    [1, query(FRIENDS), 429, { text: /Too complex for now/, 'retry-after': SECONDS }],
    [1, query(VARIABLE, { variables: { n: 300 } }), 429],
    [1, query(VARIABLE, { variables: { n: 10 } }), 200],
    [1, query('{ me { friends(first: 2000) { name } } }'), 429, { 'retry-after': null }],
    [1, query('{ me { name } }'), 200],
    [
      ...[1, query(`{ ...f0 } ${HUGE.join(' ')} fragment p on Person { name }`), 200],
      { text: '{"errors":[{"message":"Query exceeds the maximum allowed number of nodes."}]}' },
    ],
    [1, query(getIntrospectionQuery()), 200], // as by GraphiQL
  ],
};

test.each(Object.entries(CONVERSATIONS))('%s answers as it says', async (name, rows) => {
  await converse(await start(name), rows);
});

const DRAFT_8 = {
  'ratelimit-policy': /^"10-in-1min"; q=10; w=60; pk=.+:$/,
  ratelimit: /^"10-in-1min"; r=9; t=60$/,
};
const DRAFT_6 = { 'ratelimit-policy': '10;w=60' };

test.each([
  ['express.js', DRAFT_6],
  ['express.js on Express 4', DRAFT_6],
  ['http.js', DRAFT_8],
  ['koa.js', DRAFT_8],
  ['hono.mjs', DRAFT_8],
  ['fastify.js', DRAFT_8],
  ['nest-guard.ts', DRAFT_6],
])('%s lets ten requests of a client pass, and says so in headers', async (name, sent) => {
  const { 'ratelimit-policy': policy } = sent;
  await converse(await start(`${FRAMEWORKS}/${name}`), [
    [1, '', 200, { text: /^Welcome\./, ...sent }],
    [9, '', 200],
    [
      ...[1, '', 429],
      { text: /Too many requests/, 'retry-after': SECONDS, 'ratelimit-policy': policy },
    ],
    ...OTHER_CLIENT,
  ]);
});

test('the TypeScript examples compile with strict settings', () => {
  const options = {
    ...DECORATED,
    module: ts.ModuleKind.Node16,
    moduleResolution: ts.ModuleResolutionKind.Node16,
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: ['node'],
  };
  const files = ['nest-guard.ts', 'nest-throttler.ts'];
  const program = ts.createProgram(
    files.map((name) => path.join(ROOT, FRAMEWORKS, name)),
    options,
  );
  const found = ts.getPreEmitDiagnostics(program);
  expect(
    found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')),
  ).toEqual([]);
});
