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
function membersIn(source, isChosen = () => true, isHidden = isPrivate) {
  const names = new Set();
  const addMembers = (node) => {
    const isMember =
      ts.isPropertySignature(node) ||
      ts.isPropertyDeclaration(node) ||
      ts.isMethodSignature(node) ||
      ts.isMethodDeclaration(node) ||
      ts.isGetAccessor(node);
    if (isMember && !isHidden(node)) names.add(node.name.text);
    // Not the properties of a property's type.
    else if (!isMember) ts.forEachChild(node, addMembers);
  };
  ts.forEachChild(source, (node) => {
    if (node.name !== undefined && isChosen(node.name.text)) ts.forEachChild(node, addMembers);
  });
  return [...names].filter((name) => name !== '#private');
}

const hasModifier = (node, kinds) =>
  node.modifiers?.some(({ kind }) => kinds.includes(kind)) ?? false;

const { PrivateKeyword, ProtectedKeyword } = ts.SyntaxKind;
const isPrivate = (node) => hasModifier(node, [PrivateKeyword]);
const isInternal = (node) => hasModifier(node, [PrivateKeyword, ProtectedKeyword]);

/** The names of exported functions and constants. */
const valuesIn = (source) =>
  [...source.text.matchAll(/^export declare (?:const|function) (\w+)/gm)].map(([, name]) => name);

/** The names of classes, those in namespaces, too. */
const classesIn = (source) =>
  [...source.text.matchAll(/^ *(?:export )?(?:declare )?class (\w+)/gm)].map(([, name]) => name);

const readPage = (page) => fs.readFileSync(path.join(ROOT, 'docs', page), 'utf8');

/** The sections of a page, or one of them; not those that compare behaviour, where names come again. */
function sectionsOf(page, heading) {
  const sections = readPage(page).split(/^## /m);
  if (heading === undefined) return sections.filter((text) => !/^.*differ/.test(text));
  return sections.filter((text) => text.startsWith(`${heading}\n`));
}

/** The words in the code of the first column of the tables, where the other package's names are. */
function namedIn(page, heading) {
  const text = sectionsOf(page, heading).join('');
  const cells = [...text.matchAll(/^\|(.*?) \|.*$(?!\n\|--)/gm)].map(([, cell]) => cell);
  const code = cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, text]) => text));
  return new Set(
    code.flatMap((text) => [/\w+/g, /[\w-]+/g].flatMap((word) => text.match(word) ?? [])),
  );
}

// Kills: a row of names that is missing, and a name that a new version of a package has.
function expectNamed(page, names, least, heading) {
  expect(new Set(names).size).toBeGreaterThanOrEqual(least);
  const named = namedIn(page, heading);
  expect(names.filter((name) => !named.has(name))).toEqual([]);
}

test('express-rate-limit: every option, member of a store and of req.rateLimit', () => {
  const source = typesOf('express-rate-limit/dist/index.d.ts');
  const chosen = ['Options', 'Store', 'LegacyStore', 'RateLimitInfo', 'RateLimitRequestHandler'];
  const page = 'migration-express-rate-limit.md';
  const names = membersIn(source, (name) => chosen.includes(name));
  expectNamed(page, names, 35);
  expectNamed(page, [...valuesIn(source), ...classesIn(source)], 7, 'Methods and exports');
});

test('@fastify/rate-limit: every option, method, header and hook, and the context of its errors', () => {
  const source = typesOf('@fastify/rate-limit/types/index.d.ts');
  const hooks = source.text.match(/type RateLimitHook =([^\n]*\n +\|.*)+/)[0].match(/\w+(?=')/g);
  expect(hooks).toContain('preParsing');
  const names = [...membersIn(source), ...hooks, 'normalizeIP', 'fastifyRateLimit'];
  expectNamed('migration-fastify-rate-limit.md', names, 40);
});

/** Members of abstract classes that tell only a heir something, and of results that tell nothing more. */
const OF_NO_USER = ['name', 'message', 'extra', 'readCapacityUnits', 'writeCapacityUnits'];
const OF_DUMPS = ['key', 'value', 'expiresAt', 'version', 'dumpedAt', 'storage', 'count', 'keys'];
const OF_RESTORES = ['invalid', 'expired', 'restored'];

test('rate-limiter-flexible: every class, option, method and field of a result', () => {
  const source = typesOf('rate-limiter-flexible/types.d.ts');
  const ignored = [...OF_NO_USER, ...OF_DUMPS, ...OF_RESTORES];
  const members = membersIn(source).filter((name) => !ignored.includes(name));
  expectNamed('migration-rate-limiter-flexible.md', [...classesIn(source), ...members], 90);
});

const QUEUE_PAGE = 'migration-concurrency.md';

test('p-limit: every member and option', () => {
  const names = membersIn(typesOf('p-limit/index.d.ts'));
  expectNamed(QUEUE_PAGE, [...names, 'limitFunction', 'pLimit'], 8, 'p-limit');
});

test.each(['p-queue', 'p-queue-10'])('%s: every option, method and event', (name) => {
  const source = typesOf(`${name}/dist/index.d.ts`);
  const events = source.text.match(/type EventName = (.*);/)[1].match(/(?<=')\w+/g) ?? [];
  const members = ['index', 'options'].flatMap((file) =>
    membersIn(typesOf(`${name}/dist/${file}.d.ts`)),
  );
  const all = [...members, ...events, 'PriorityQueue', 'TimeoutError'];
  const visible = all.filter((name) => name !== 'handleEvent'); // of a listener
  expect(visible).toContain('rateLimitCleared');
  expectNamed(QUEUE_PAGE, visible, 43, 'p-queue');
});

test('Bottleneck: every class, option, method, strategy and event', () => {
  const source = typesOf('bottleneck/bottleneck.d.ts');
  const events = [...source.text.matchAll(/ on\(name: "(\w+)"/g)].map(([, name]) => name);
  const strategies = source.text.match(/readonly ([A-Z_]+): Bottleneck.Strategy/g);
  const names = [...membersIn(source), ...classesIn(source), ...events];
  names.push(...strategies.map((text) => text.match(/[A-Z_]+/)[0]));
  // What a batcher and a created group tell, what events tell of a job, and the numbers that counts() has.
  const ignored = ['args', 'options', 'task', 'promise', 'reachedHWM', 'blocked', 'retryCount'];
  const counts = ['RECEIVED', 'QUEUED', 'RUNNING', 'EXECUTING', 'DONE'];
  const others = [...ignored, ...counts, 'limiter', 'subscriber', 'batch', 'created', 'Bottleneck'];
  const visible = names.filter((name) => !others.includes(name));
  expectNamed(QUEUE_PAGE, visible, 80, 'Bottleneck');
});

test('redis-semaphore: every class, option and method', () => {
  const files = ['index', 'types', 'Lock'].map((name) =>
    typesOf(`redis-semaphore/lib/${name}.d.ts`),
  );
  const members = files.flatMap((source) => membersIn(source, (name) => name !== 'AcquireOptions'));
  const exported = files[0].text.match(/export \{ (Mutex.*) \}/)[1].match(/\w+/g);
  const names = members.filter((name) => !name.startsWith('_'));
  const all = [...names, ...exported, 'abortSignal', 'defaultTimeoutOptions'];
  expectNamed(QUEUE_PAGE, all, 20, 'redis-semaphore');
});

test.each(['RateLimiter', 'TokenBucket'])('limiter: every option and member of %s', (name) => {
  const source = typesOf(`limiter/dist/cjs/${name}.d.ts`);
  const units = source.text.match(/type Interval = (.*);/)?.[1].match(/\w+(?=")/g) ?? [];
  expectNamed('migration-limiter.md', membersIn(source), 8, name);
  expectNamed('migration-limiter.md', units, name === 'TokenBucket' ? 7 : 0);
});

test('@upstash/ratelimit: every class, algorithm, option, method and field of an answer', () => {
  const page = 'migration-upstash-ratelimit.md';
  const source = typesOf('@upstash/ratelimit/dist/index.d.ts');
  const membersOf = (...chosen) => membersIn(source, (name) => chosen.includes(name), isInternal);
  const wordsOf = (pattern) => source.text.match(pattern)[1].match(/\w+/g);
  const configs = ['RegionRatelimitConfig', 'RatelimitConfig', 'MultiRegionRatelimitConfig'];
  const options = membersOf(...configs).filter((name) => name !== 'ctx');
  const lists = ['IpDenyList', 'ThresholdError', 'updateIpDenyList', 'disableIpDenyList'];
  expectNamed(page, [...options, ...lists, 'MultiRegionRatelimit'], 16, 'Options');
  const algorithms = membersOf('RegionRatelimit', 'MultiRegionRatelimit');
  expectNamed(page, [...algorithms, ...wordsOf(/type Unit = ([^;]*)/)], 10, 'Algorithms');
  const results = membersOf('LimitOptions', 'Geo', 'RatelimitResponse');
  const reasons = wordsOf(/type RatelimitResponseType = (.*);/);
  const ofAnalytics = ['Analytics', ...membersOf('Analytics')];
  expectNamed(page, [...results, ...reasons, ...ofAnalytics], 20, 'Methods and results');
  expectNamed(page, membersOf('Ratelimit'), 6);
});

test('hono-rate-limiter: every class, option and member of a store', () => {
  const page = 'migration-hono-rate-limiter.md';
  const source = typesOf('hono-rate-limiter/dist/index.d.ts');
  const membersOf = (pattern) => membersIn(source, (name) => pattern.test(name));
  const exported = source.text.match(/export \{ (.*) \};/)[1].match(/\w+/g);
  expectNamed(page, membersOf(/(Config|Generator)Type$/), 15, 'Options');
  const ofStores = [...membersOf(/^(RateLimitInfo|Options|Store)$/), ...exported, 'storage'];
  expectNamed(page, ofStores, 20, 'Stores and exports');
});

test('@nestjs/throttler: every option, decorator, method and function', () => {
  const folder = '@nestjs/throttler/dist';
  const isInner = (name) =>
    /^(hash|index|throttler.constants|throttler-storage-options)/.test(name);
  const files = fs
    .readdirSync(path.join(ROOT, 'node_modules', folder))
    .filter((name) => name.endsWith('.d.ts') && !isInner(name));
  const names = files
    .map((name) => typesOf(`${folder}/${name}`))
    .flatMap((source) => [...membersIn(source), ...valuesIn(source), ...classesIn(source)]);
  // What the guard keeps and hands to handleRequest(), the tokens of interfaces, and the module's own parts.
  const kept = ['options', 'storageService', 'reflector', 'headerPrefix', 'logger'];
  const passed = ['commonOptions', 'context', 'throttler', 'sweepIntervalMs'];
  const wiring = ['ThrottlerStorage', 'ThrottlerStorageRecord', 'createThrottlerProviders'];
  const others = [...kept, ...passed, ...wiring, 'ThrottlerStorageProvider'];
  const visible = names.filter((name) => !others.includes(name));
  expect(visible).toEqual(expect.arrayContaining(['SkipThrottle', 'blockDuration', 'weeks']));
  expectNamed('migration-nestjs-throttler.md', visible, 55);
  const options = membersIn(typesOf(`${folder}/throttler-module-options.interface.d.ts`));
  expectNamed('migration-nestjs-throttler.md', options, 18, 'Options');
});

test('rolling-rate-limiter 0.1: every option', () => {
  const file = path.join(ROOT, 'node_modules/rolling-rate-limiter-0.1/index.js');
  const options = fs.readFileSync(file, 'utf8').match(/(?<=\boptions\.)(?!options)[a-z]\w+/gi);
  const names = [...new Set(options)].filter((name) => !name.endsWith('_buffers'));
  expectNamed('migration.md', names, 5, 'rolling-rate-limiter 0.1');
});

test('rolling-rate-limiter 0.4: every class, option, method and field of a result', () => {
  const source = typesOf('rolling-rate-limiter/lib/index.d.ts');
  const isOurs = (name) => !/^(Redis|NodeRedis|IORedis)(Client|Multi)/.test(name);
  const exported = source.text.match(/(?<=^export declare (?:class|function) )\w+/gm);
  const names = [...membersIn(source, isOurs), ...exported];
  const visible = names.filter((name) => name !== '__brand');
  expectNamed('migration.md', visible, 29, 'rolling-rate-limiter 0.4');
});

/** The packages that a page of migration is about, and the words of the README's list for others. */
const PACKAGES = ['express-rate-limit', '@fastify/rate-limit', 'rate-limiter-flexible'];
PACKAGES.push('@nestjs/throttler', 'hono-rate-limiter', '@upstash/ratelimit', 'limiter');
PACKAGES.push('Bottleneck', 'p-queue', 'p-limit', 'redis-semaphore', 'rolling-rate-limiter');

// Kills: a name that is missing in a list, or leads to another page.
test.each(PACKAGES)('%s is in the lists of README and migration.md, and in a title', (name) => {
  const inReadme = fs.readFileSync(path.join(ROOT, 'README.md'), 'utf8');
  const row = inReadme.match(/^\| coming from \| (.*) \|$/m)[1].replaceAll('docs/', '');
  for (const text of [row, readPage('migration.md').split(/^## /m)[0]]) {
    const links = [...text.matchAll(/\[([^\]]+)\]\(([^)#]*)/g)];
    const [, , page] = links.find(([, title]) => title.replace(/ \d\S+$/, '') === name);
    const titles = readPage(page || 'migration.md').match(/^##? .*$/gm);
    expect(titles.filter((title) => title.includes(name))).not.toEqual([]);
  }
});
