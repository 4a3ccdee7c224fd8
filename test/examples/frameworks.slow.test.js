// The HTTP servers in examples/frameworks, run as their readers run them.
'use strict';

const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');
const ts = require('typescript');
const { inTurn } = require('../middleware/apps');
const { serve, stop } = require('../support/run-program');

const FOLDER = path.join(__dirname, '../../examples/frameworks');
const read = (name) => fs.readFileSync(path.join(FOLDER, name), 'utf8');

const running = [];
afterEach(() => Promise.all(running.splice(0).map((server) => stop(server))));

/** The address that a program prints once it serves. */
async function start(...args) {
  const server = await serve(args, { PORT: '0' }, /http:\/\/\S+?(?=\/\s)/);
  running.push(server);
  return server.found;
}

const startFile = (name) => start(path.join(FOLDER, name));
const startSource = (source) => start('--input-type=commonjs', '--eval', source);

/** What users of Express 4 have under the name of the package. */
function startOnExpress4() {
  const source = read('express.js');
  expect(source).toContain("require('express')");
  return startSource(source.replace("require('express')", "require('express-4')"));
}

/** As the compiler of a NestJS project emits it. */
function startTypeScript(name) {
  const compilerOptions = {
    module: ts.ModuleKind.CommonJS,
    target: ts.ScriptTarget.ES2022,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
  };
  return startSource(ts.transpileModule(read(name), { compilerOptions }).outputText);
}

/** Linux has more than one address on the loopback. */
const OTHER_CLIENT = process.platform === 'linux' ? '127.0.0.2' : undefined;

async function get(url, localAddress = '127.0.0.1') {
  const request = http.get(url, { agent: false, localAddress });
  const [response] = await once(request, 'response');
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  return { status: response.statusCode, headers: response.headers, text };
}

const getOften = (url, times) => inTurn(Array(times).fill(url), (each) => get(each));
const statusesOf = (answers) => answers.map(({ status }) => status);

const DRAFT_8 = {
  policy: /^"10-in-1min"; q=10; w=60; pk=:.+:$/,
  left: /^"10-in-1min"; r=9; t=60$/,
};

test.each([
  ['express.js', startFile, { policy: /^10;w=60$/ }],
  ['express.js with Express 4', startOnExpress4, { policy: /^10;w=60$/ }],
  ['http.js', startFile, DRAFT_8],
  ['koa.js', startFile, DRAFT_8],
  ['hono.mjs', startFile, DRAFT_8],
  ['fastify.js', startFile, DRAFT_8],
  ['nest-guard.ts', startTypeScript, { policy: /^10;w=60$/ }],
])('%s lets ten requests of a client pass, and says so in headers', async (name, begin, sent) => {
  const url = await begin(name);
  const answers = await getOften(url, 11);
  expect(statusesOf(answers)).toEqual([...Array(10).fill(200), 429]);

  const [first] = answers;
  expect(first.text).toMatch(/^Welcome\./);
  expect(first.headers['ratelimit-policy']).toMatch(sent.policy);
  if (sent.left) expect(first.headers.ratelimit).toMatch(sent.left);
  const refused = answers[10];
  expect(refused.text).toMatch(/Too many requests/);
  expect(refused.headers['retry-after']).toMatch(/^([1-5]?\d|60)$/);
  expect(refused.headers['ratelimit-policy']).toMatch(sent.policy);

  if (OTHER_CLIENT) expect((await get(url, OTHER_CLIENT)).status).toBe(200);
});

test('nest-throttler.ts limits each route by the limit of its decorator', async () => {
  const url = await startTypeScript('nest-throttler.ts');
  expect(statusesOf(await getOften(url, 11))).toEqual([...Array(10).fill(200), 429]);
  const dear = await getOften(`${url}/dear`, 3);
  expect(statusesOf(dear)).toEqual([200, 200, 429]);
  expect(dear[0].headers['x-ratelimit-remaining']).toBe('1');
  expect(dear[2].headers['retry-after']).toMatch(/^([1-5]?\d|60)$/);
  expect(JSON.parse(dear[2].text).statusCode).toBe(429);
  if (OTHER_CLIENT) expect((await get(url, OTHER_CLIENT)).status).toBe(200);
});

test('the TypeScript examples compile with strict settings', () => {
  const options = {
    module: ts.ModuleKind.Node16,
    moduleResolution: ts.ModuleResolutionKind.Node16,
    target: ts.ScriptTarget.ES2022,
    experimentalDecorators: true,
    emitDecoratorMetadata: true,
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: ['node'],
  };
  const files = fs.readdirSync(FOLDER).filter((name) => name.endsWith('.ts'));
  expect(files).toHaveLength(2);
  const program = ts.createProgram(
    files.map((name) => path.join(FOLDER, name)),
    options,
  );
  const found = ts.getPreEmitDiagnostics(program);
  expect(
    found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')),
  ).toEqual([]);
});
