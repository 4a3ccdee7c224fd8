// The workflows: no more rights than a job needs, no command that nothing tries, versions as the docs have them.
'use strict';

const fs = require('node:fs');
const { readPage: text } = require('../support/page-programs');
const { askProgram } = require('../support/run-program');
const { commandsOf, FOLDER, jobsOf, read } = require('../support/workflows');

const manifest = require('../../package.json');

const NAMES = fs.readdirSync(FOLDER).filter((name) => name.endsWith('.yml'));

/** The rights of each job beyond reading the sources. */
const RIGHTS = {
  'pages.yml build': ['pages: read'],
  'pages.yml deploy': ['pages: write', 'id-token: write'],
  'release.yml npm': ['id-token: write'],
  'release.yml github': ['contents: write'],
};

/** Commands that release.slow.test.js does not run, and what tries them. */
const TRIED_ELSEWHERE = [
  ['npm test', 'the tests themselves'],
  ['sh .github/workflows/test-binary.sh', 'the tests themselves'],
  ['npm run docs', 'test/examples/site.slow.test.js'],
  ['ls build/site', 'test/examples/site.slow.test.js'],
  ['npm run build:wasm', 'scripts/setup.mjs'],
  ['npm run prebuilds', 'test/package/packed.slow.test.js'],
  ['sh .github/workflows/whole-check.sh', 'the check itself; needs Docker'],
  ['bash .github/workflows/test-windows.sh', 'needs Windows'],
  ['brew install', 'needs macOS'],
  ['sudo -E sh .github/workflows/build-hiredis.sh', 'needs the network of GitHub'],
];

const REHEARSED = [
  '--fill',
  '--notes',
  '--tarball=.',
  '--dry-run',
  'npm pack',
  '--binding=',
].concat('github-release.sh');

// Kills: `contents: write` in any other job
test('each job has the rights that it needs, and no other', () => {
  const found = {};
  for (const name of NAMES) {
    const ofAll = read(name).match(/^permissions:(.*\n(?: {2}.+\n)*)/m)[1];
    expect([name, ofAll.trim()]).toEqual([
      name,
      name === 'prebuilds.yml' ? 'contents: read' : '{}',
    ]);
    for (const [job, lines] of Object.entries(jobsOf(name))) {
      const block = /^ {4}permissions:\n((?: {6}.+\n)+)/m.exec(lines)?.[1] ?? '';
      const rights = block.split('\n').map((line) => line.trim());
      const more = rights.filter((right) => right && right !== 'contents: read');
      if (more.length > 0) found[`${name} ${job}`] = more;
    }
  }
  expect(found).toEqual(RIGHTS);
  expect(NAMES.map(read).join('')).not.toMatch(/secrets\.|_TOKEN: (?!\$\{\{ github\.token)/);
});

// Kills: any new `run:` line of one command
test('every command is rehearsed, or tried elsewhere', () => {
  const untried = NAMES.flatMap(commandsOf).filter((command) => {
    const isElsewhere = TRIED_ELSEWHERE.some(([start]) => command.startsWith(start));
    return !isElsewhere && !REHEARSED.some((part) => command.includes(part));
  });
  expect(untried).toEqual([]);
});

// Kills: PIN that wants an @; pinFindings without the comparison with other files
test('the linter finds actions that are not pinned, or pinned twice', async () => {
  const commit = 'a'.repeat(40);
  const lines = ['a/b', 'a/b@v1', `a/b@${commit}`, `a/b@${commit} # v1`, `a/b@${commit} # v2`];
  const workflow = [...lines, './local.yml'].map((line) => `- uses: ${line}`).join('\n');
  const program = `
    import { pinFindings } from './scripts/lib/workflow-lint.mjs';
    console.log(JSON.stringify(pinFindings(${JSON.stringify(workflow)}, 'f')));
  `;
  const findings = await askProgram(program, { type: 'module' });
  expect(findings.map((finding) => finding.split(': ')[0])).toEqual(['f:1', 'f:2', 'f:3', 'f:5']);
});

// Kills: a binary less in prebuilds.yml, or in BINARIES
test('the release wants the binaries that are made', () => {
  const { linux, macos } = jobsOf('prebuilds.yml');
  const list = (lines, key) => new RegExp(`${key}: \\[(.*)\\]`).exec(lines)[1].split(', ');
  const made = list(linux, 'arch').flatMap((arch) =>
    list(linux, 'libc').map((libc) => `prebuilds/linux-${arch}/rollgate.${libc}.node`),
  );
  for (const [, arch] of macos.matchAll(/- arch: (\w+)/g)) {
    made.push(`prebuilds/darwin-${arch}/rollgate.node`);
  }
  const wanted = text('scripts/lib/release-checks.mjs').match(/prebuilds\/[\w./-]+\.node/g);
  expect(made.sort()).toEqual(wanted.sort());
});

// Kills: another version of Node in ci.yml, engines or SECURITY.md; a major of a client that is not tested
test('the support policy says what package.json and the tests say', () => {
  const rows = Object.fromEntries(
    [...text('SECURITY.md').matchAll(/^\| ([^|]+) \| ([^|]+) \| (.+) \|$/gm)].map(
      ([, name, versions, tested]) => [name, { versions, tested }],
    ),
  );
  const runtimes = [...text('scripts/places/runtimes.mjs').matchAll(/title: 'Node (\d+)'/g)];
  const nodes = runtimes.map(([, major]) => major);
  expect(rows['Node.js'].tested).toContain(`${nodes.join(', ')} (`);
  expect(rows['Node.js'].versions).toBe(`${manifest.engines.node.slice(2)} and newer`);
  for (const name of ['ci.yml', 'release.yml']) {
    const [, list] = /node: \[(.*)\]/.exec(read(name));
    expect(nodes.slice(-list.split(', ').length).join(', ')).toBe(list);
  }
  const majors = (name) =>
    [name, `${name}-3`, `${name}-4`, `${name}-5`]
      .map((key) => /(\d+)\.\d+/.exec(manifest.devDependencies[key] ?? '')?.[1])
      .filter(Boolean)
      .sort();
  const saying = (name) => rows[name].tested.match(/\d+/g);
  const [ofIoredis, ofRedis] = rows['ioredis, node-redis'].tested.split(', node-redis');
  expect(ofIoredis.match(/\d/g)).toEqual(majors('ioredis'));
  expect(ofRedis.match(/\d/g)).toEqual(majors('redis'));
  expect(saying('Express').filter((_, i) => i % 2 === 0)).toEqual(majors('express'));
  expect(saying('Fastify')[0]).toBe(majors('fastify')[0]);
  const [wanted] = /Redis \d\.\d or newer/.exec(text('docs/redis.md'));
  expect(rows.Redis.versions).toContain(wanted.replace('Redis ', '').replace('or', 'and'));
});
