// docs/api.md beside the types: every public name has an entry there, and no entry is of a name that is gone.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const ts = require('typescript');
const RateLimiter = require('../../lib');
const { LIMITER_NAMES } = require('../../lib/options');

const root = path.join(__dirname, '../..');
const page = fs.readFileSync(path.join(root, 'docs/api.md'), 'utf8');
const declared = declarations('lib/index.d.ts');

/** The interfaces and type aliases of a file by their names, its namespace's included; of two the first. */
function declarations(file) {
  const text = fs.readFileSync(path.join(root, file), 'utf8');
  const found = new Map();
  const visit = (node) => {
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) {
      if (!found.has(node.name.text)) found.set(node.name.text, node);
    } else {
      ts.forEachChild(node, visit);
    }
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true));
  return found;
}

/** The members that a user may give or have: those of type undefined only rule another combination out. */
function membersOf(...types) {
  const names = new Set();
  const visit = (node) => {
    const isMember = ts.isPropertySignature(node) || ts.isMethodSignature(node);
    if (!isMember) return ts.forEachChild(node, visit);
    if (node.type?.kind !== ts.SyntaxKind.UndefinedKeyword) names.add(node.name.text);
  };
  for (const type of types) {
    expect(declared.has(type)).toBe(true);
    ts.forEachChild(declared.get(type), visit);
  }
  names.delete('prototype');
  return [...names].sort();
}

/** The names that begin the rows of a section. */
function entriesOf(heading) {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  expect(section).toBeDefined();
  const cells = [...section.matchAll(/^\| (`.*?) \|/gm)].map(([, cell]) => cell);
  return cells.flatMap((cell) => [...cell.matchAll(/`(\w+)/g)].map(([, name]) => name)).sort();
}

test.each([
  ['Exports', ['RateLimiterConstructor']],
  [
    'Options',
    [
      'Limit',
      'CommonOptions',
      'SeveralLimitsOptions',
      'SharedStoreOptions',
      'RedisStoreOptions',
      'WithRedis',
      'KvStoreOptions',
    ],
  ],
  ['Options of shared', ['SharedOptions']],
  ['Options of redis', ['RedisConnectionOptions', 'RedisClientOptions', 'RedisCallOptions']],
  ['Functions of kv', ['PlainKv']],
  ['Methods', ['RateLimiter']],
  ['Options of attempt, peek and wait', ['AttemptOptions', 'WaitOptions']],
  ['Decision', ['Decision']],
  ['Windows of a Decision', ['WindowState']],
  ['LimitInfo', ['LimitInfo']],
  ['Stats', ['Stats', 'RemoteStats']],
])('docs/api.md, %s: has an entry for every name of the types, and no other', (heading, types) => {
  expect(entriesOf(heading)).toEqual(membersOf(...types));
});

test('docs/api.md names every type', () => {
  const named = [...page.matchAll(/`(\w+)`/g)].map(([, name]) => name);
  expect([...declared.keys()].filter((name) => !named.includes(name))).toEqual([]);
});

test('the entries are those of the code, too', () => {
  const methods = Object.getOwnPropertyNames(RateLimiter.prototype);
  expect(entriesOf('Exports')).toEqual(Object.keys(RateLimiter).sort());
  expect(entriesOf('Methods')).toEqual(methods.filter((name) => name !== 'constructor').sort());
  expect(entriesOf('Options')).toEqual([...LIMITER_NAMES].sort());
});
