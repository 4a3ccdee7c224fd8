// The pages of migration name every option, method and class of the packages that they are about.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const ts = require('typescript');

const ROOT = path.join(__dirname, '../..');

/** The types that a package ships. */
function typesOf(file) {
  const source = fs.readFileSync(path.join(ROOT, 'node_modules', file), 'utf8');
  return ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
}

/** The names of members, in the declarations that `isChosen` takes by their names. */
function membersIn(source, isChosen) {
  const names = new Set();
  const addMembers = (node) => {
    const isMember =
      ts.isPropertySignature(node) ||
      ts.isPropertyDeclaration(node) ||
      ts.isMethodSignature(node) ||
      ts.isMethodDeclaration(node) ||
      ts.isGetAccessor(node);
    if (isMember && !isPrivate(node)) names.add(node.name.text);
    // Not the properties of a property's type.
    else if (!isMember) ts.forEachChild(node, addMembers);
  };
  ts.forEachChild(source, (node) => {
    if (node.name !== undefined && isChosen(node.name.text)) ts.forEachChild(node, addMembers);
  });
  return [...names];
}

const isPrivate = (node) =>
  node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword) ?? false;

/** The names of exported classes. */
function classesIn(source) {
  const names = [];
  ts.forEachChild(source, (node) => {
    if (ts.isClassDeclaration(node)) names.push(node.name.text);
  });
  return names;
}

/** The names of classes in namespaces, too. */
function classesOf(source) {
  return [...source.text.matchAll(/^ *(?:export )?(?:declare )?class (\w+)/gm)].map(
    ([, name]) => name,
  );
}

/** The words in the code of the tables of a page. */
function namedIn(page) {
  const rows = fs.readFileSync(path.join(ROOT, 'docs', page), 'utf8').match(/^\|.*\|$/gm);
  const code = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, text]) => text));
  return new Set(
    code.flatMap((text) => [/\w+/g, /[\w-]+/g].flatMap((word) => text.match(word) ?? [])),
  );
}

function expectNamed(page, names, least) {
  expect(names.length).toBeGreaterThanOrEqual(least);
  const named = namedIn(page);
  expect(names.filter((name) => !named.has(name))).toEqual([]);
}

test('express-rate-limit: every option, member of a store and of req.rateLimit', () => {
  const source = typesOf('express-rate-limit/dist/index.d.ts');
  const chosen = ['Options', 'Store', 'LegacyStore', 'RateLimitInfo', 'RateLimitRequestHandler'];
  const names = membersIn(source, (name) => chosen.includes(name));
  expectNamed('migration-express-rate-limit.md', names, 35);
});

test('@fastify/rate-limit: every option, method, header and hook, and the context of its errors', () => {
  const source = typesOf('@fastify/rate-limit/types/index.d.ts');
  const hooks = source.text.match(/type RateLimitHook =([^\n]*\n +\|.*)+/)[0].match(/\w+(?=')/g);
  expect(hooks).toContain('preParsing');
  const names = [...membersIn(source, () => true), ...hooks, 'normalizeIP', 'fastifyRateLimit'];
  expectNamed('migration-fastify-rate-limit.md', names, 40);
});

/** Members of abstract classes that tell only a heir something, and of results that tell nothing more. */
const OF_NO_USER = ['name', 'message', 'extra', 'readCapacityUnits', 'writeCapacityUnits'];
const OF_DUMPS = ['key', 'value', 'expiresAt', 'version', 'dumpedAt', 'storage', 'count', 'keys'];
const OF_RESTORES = ['invalid', 'expired', 'restored'];

test('rate-limiter-flexible: every class, option, method and field of a result', () => {
  const source = typesOf('rate-limiter-flexible/types.d.ts');
  const ignored = [...OF_NO_USER, ...OF_DUMPS, ...OF_RESTORES];
  const members = membersIn(source, () => true).filter((name) => !ignored.includes(name));
  expectNamed('migration-rate-limiter-flexible.md', [...classesIn(source), ...members], 90);
});

const QUEUE_PAGE = 'migration-concurrency.md';

test('p-limit: every member and option', () => {
  const source = typesOf('p-limit/index.d.ts');
  const names = membersIn(source, () => true);
  expectNamed(QUEUE_PAGE, [...names, 'limitFunction', 'pLimit'], 8);
});

test('p-queue: every option, method and event', () => {
  const events = typesOf('p-queue/dist/index.d.ts').text.match(/type EventName = (.*);/)[1];
  const names = ['index', 'options'].flatMap((name) =>
    membersIn(typesOf(`p-queue/dist/${name}.d.ts`), () => true),
  );
  const visible = names.filter((name) => name !== '#private');
  expectNamed(QUEUE_PAGE, [...visible, ...events.match(/\w+/g)], 40);
});

test('Bottleneck: every class, option, method, strategy and event', () => {
  const source = typesOf('bottleneck/bottleneck.d.ts');
  const events = [...source.text.matchAll(/ on\(name: "(\w+)"/g)].map(([, name]) => name);
  const strategies = source.text.match(/readonly ([A-Z_]+): Bottleneck.Strategy/g);
  const names = [...membersIn(source, () => true), ...classesOf(source), ...events];
  names.push(...strategies.map((text) => text.match(/[A-Z_]+/)[0]));
  // What a batcher and a created group tell, what events tell of a job, and the numbers that counts() has.
  const ignored = ['args', 'options', 'task', 'promise', 'reachedHWM', 'blocked', 'retryCount'];
  const counts = ['RECEIVED', 'QUEUED', 'RUNNING', 'EXECUTING', 'DONE'];
  const others = [...ignored, ...counts, 'limiter', 'subscriber', 'batch', 'created', 'Bottleneck'];
  expectNamed(
    QUEUE_PAGE,
    names.filter((name) => !others.includes(name)),
    80,
  );
});

test('redis-semaphore: every class, option and method', () => {
  const files = ['index', 'types', 'Lock'].map((name) =>
    typesOf(`redis-semaphore/lib/${name}.d.ts`),
  );
  const members = files.flatMap((source) => membersIn(source, (name) => name !== 'AcquireOptions'));
  const exported = files[0].text.match(/export \{ (Mutex.*) \}/)[1].match(/\w+/g);
  const names = members.filter((name) => !name.startsWith('_'));
  expectNamed(QUEUE_PAGE, [...names, ...exported, 'abortSignal', 'defaultTimeoutOptions'], 20);
});
