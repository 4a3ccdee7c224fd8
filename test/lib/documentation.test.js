// The documentation beside the code: links and images are there, and names of the API, algorithms and errors agree.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const ts = require('typescript');
const RateLimiter = require('../..');
const { ALGORITHMS } = require('../../lib/options/algorithms');
const { LIMITER_NAMES } = require('../../lib/limiter/options');

const ROOT = path.join(__dirname, '../..');
const read = (file) => fs.readFileSync(path.join(ROOT, file), 'utf8');
const isThere = (file) => fs.existsSync(path.join(ROOT, file));

const pages = [
  ...fs.readdirSync(ROOT),
  ...fs.readdirSync(path.join(ROOT, 'docs'), { recursive: true }).map((name) => `docs/${name}`),
  'examples/README.md',
].filter((name) => name.endsWith('.md'));

/** The text of a page without its code, in which brackets are not links. */
const proseOf = (page) =>
  read(page)
    .replace(/^```.*?^```$/gms, '')
    .replace(/`[^`\n]*`/g, (code) => code.replace(/[[\]()]/g, ''));

/** The anchors that GitHub gives to the headings of a page. */
function anchorsOf(page) {
  const headings = [...proseOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

const linksOf = (page) =>
  [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, to]) => to)
    .filter((to) => !/^[a-z]+:/.test(to))
    .map((to) => {
      const [file, anchor] = to.split('#');
      return { to, file: file ? path.join(path.dirname(page), file) : page, anchor };
    });

describe('links', () => {
  test.each(pages)('%s: every link leads to a file and a section', (page) => {
    const broken = linksOf(page).filter(
      ({ file, anchor }) => !isThere(file) || (anchor && !anchorsOf(file).includes(anchor)),
    );
    expect(broken.map(({ to }) => to)).toEqual([]);
  });

  const forMaintainers = pages.filter((page) =>
    /^(ARCHITECTURE|CONTRIBUTING|docs.design.*)\.md$/.test(page),
  );

  test.each(forMaintainers)('%s: every file that it names exists', (page) => {
    const paths = read(page).matchAll(/`((?:src|lib|test|scripts|bench|cmake|docs)\/[\w./-]+)`/g);
    expect([...paths].map(([, file]) => file).filter((file) => !isThere(file))).toEqual([]);
  });

  test('lead from the README to every page of docs', () => {
    const reached = new Set(['README.md']);
    for (const page of reached) {
      for (const { file } of linksOf(page)) if (pages.includes(file)) reached.add(file);
    }
    expect(pages.filter((page) => page.startsWith('docs/') && !reached.has(page))).toEqual([]);
  });
});

describe('docs/api.md', () => {
  const page = read('docs/api.md');
  const declared = declarations('limiter', 'redis', 'kv', 'middleware', 'index');

  /** The interfaces and type aliases of these files of types by their names; of two the first. */
  function declarations(...files) {
    const found = new Map();
    const visit = (node) => {
      if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) {
        if (!found.has(node.name.text)) found.set(node.name.text, node);
      } else {
        ts.forEachChild(node, visit);
      }
    };
    for (const file of files) {
      const source = read(`lib/types/${file}.d.ts`);
      visit(ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true));
    }
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
    ['Options of limits', ['Limit', 'WindowLimit', 'CalendarWindow']],
    ['Options of shared', ['SharedOptions']],
    ['Options of redis', ['RedisConnectionOptions', 'RedisClientOptions', 'RedisCallOptions']],
    ['Functions of kv', ['PlainKv']],
    ['Methods', ['RateLimiter']],
    ['Options of attempt, peek and wait', ['TermsOptions', 'AttemptOptions', 'WaitOptions']],
    ['Decision', ['Decision']],
    ['Windows of a Decision', ['WindowState', 'WindowNumbers']],
    ['LimitInfo', ['LimitInfo']],
    ['Stats', ['Stats', 'RemoteStats']],
  ])('%s: has an entry for every name of the types, and no other', (heading, types) => {
    expect(entriesOf(heading)).toEqual(membersOf(...types));
  });

  test('names every type', () => {
    const named = [...page.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    expect([...declared.keys()].filter((name) => !named.includes(name))).toEqual([]);
  });

  test('the entries are those of the code, too', () => {
    const methods = Object.getOwnPropertyNames(RateLimiter.prototype);
    expect(entriesOf('Exports')).toEqual(Object.keys(RateLimiter).sort());
    expect(entriesOf('Methods')).toEqual(methods.filter((name) => name !== 'constructor').sort());
    expect(entriesOf('Options')).toEqual([...LIMITER_NAMES].sort());
  });
});

test('the types and docs/algorithms.md name every algorithm', () => {
  const namesIn = (text) => [...text.matchAll(/'([a-z-]+)'/g)].map(([, name]) => name);
  const [, union] = /type Algorithm =([^;]+);/.exec(read('lib/types/limiter.d.ts'));
  expect(namesIn(union)).toEqual(ALGORITHMS);
  const rows = read('docs/algorithms.md').match(/^\| `'.+?'`/gm);
  expect(rows.flatMap(namesIn)).toEqual(ALGORITHMS);
});

test('docs/errors.md has a section for every code, and for no other', () => {
  const documented = [...read('docs/errors.md').matchAll(/^## (\w+)$/gm)].map(([, code]) => code);
  const files = fs.readdirSync(path.join(ROOT, 'lib'), { recursive: true });
  const used = new Set();
  for (const file of files.filter((name) => name.endsWith('.js'))) {
    for (const [, name] of read(`lib/${file}`).matchAll(/'((?:ERR_)?ROLLGATE_[A-Z0-9_]+)'/g)) {
      used.add(name);
    }
  }
  for (const variable of ['ROLLGATE_ADDON', 'ROLLGATE_PREBUILD']) used.delete(variable);
  expect(documented.sort()).toEqual([...used].sort());
});
