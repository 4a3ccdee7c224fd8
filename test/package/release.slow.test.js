// A release, rehearsed: the commands of the workflows in their order, and what must end it.
'use strict';

const { spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const fs = require('node:fs');
const path = require('node:path');
const { emptyFolder, removeFolders } = require('../support/tarball');
const { patient } = require('../support/tiers');
const { commandsOf } = require('../support/workflows');

const ROOT = path.join(__dirname, '../..');
const { version } = require('../../package.json');
const TAG = `v${version}`;
const GITHUB = {
  GITHUB_SERVER_URL: 'https://git.example',
  GITHUB_REPOSITORY: 'owner/repository',
  GITHUB_REF_NAME: TAG,
};
const BINARIES = [
  'linux-x64/rollgate.glibc',
  'linux-x64/rollgate.musl',
  'darwin-x64/rollgate',
].concat(['linux-arm64/rollgate.glibc', 'linux-arm64/rollgate.musl', 'darwin-arm64/rollgate']);

// The binaries of the other systems are empty words here, so this system must be one of glibc.
const isGlibc = process.platform === 'linux' && !fs.existsSync('/etc/alpine-release');
const describeHere = isGlibc ? describe : describe.skip;

jest.setTimeout(patient(300_000));
afterAll(removeFolders);

const edit = (folder, name, change) => {
  const file = path.join(folder, name);
  fs.writeFileSync(file, change(fs.readFileSync(file, 'utf8')));
};

/** What a clone has, as its owner prepares a release. */
function tree() {
  const folder = emptyFolder();
  const folders = [
    '.github',
    'cmake',
    'docs',
    'examples',
    'lib',
    'scripts',
    'src',
    'test/runtimes',
  ];
  const files = fs
    .readdirSync(ROOT)
    .filter((name) => /\.(md|txt|json)$|^LICENSE|^\.git[a-z]/.test(name));
  for (const name of [...folders, ...files]) {
    fs.cpSync(path.join(ROOT, name), path.join(folder, name), { recursive: true });
  }
  edit(folder, 'CHANGELOG.md', (text) => text.replace('- not yet released', '- 2026-11-27'));
  edit(folder, 'README.md', (text) => text.replaceAll('not on npm yet', 'on npm'));
  return folder;
}

/** Runs a shell command in a folder, with these variables in place of those of a workflow or of npm. */
function sh(folder, command, variables = {}) {
  const names = Object.keys(process.env).filter((name) => /^(GITHUB|ACTIONS|npm)_/i.test(name));
  const env = { ...process.env, ...Object.fromEntries(names.map((name) => [name])), ...variables };
  const { status, stdout, stderr } = spawnSync('sh', ['-euc', command], {
    cwd: folder,
    encoding: 'utf8',
    env,
  });
  return { code: status, output: stdout + stderr };
}

const dryRun = (folder, args = '', variables = {}) =>
  sh(folder, `node scripts/release.mjs --dry-run ${args}`, variables);

describeHere('the release of a tag', () => {
  let folder;
  const steps = commandsOf('release.yml');

  beforeAll(() => {
    folder = tree();
    for (const name of BINARIES) {
      const file = path.join(folder, 'prebuilds', `${name}.node`);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, name);
    }
    const own = `${process.platform}-${process.arch}/rollgate.glibc.node`;
    fs.copyFileSync(
      path.join(ROOT, 'build/Release/rollgate.node'),
      path.join(folder, 'prebuilds', own),
    );
    const packing = commandsOf('prebuilds.yml').filter((step) => /--fill|npm pack/.test(step));
    expect(packing).toHaveLength(2);
    for (const step of packing) expect(sh(folder, step, GITHUB)).toMatchObject({ code: 0 });
  });

  // Kills: notes() without withAddresses
  test('passes its check', () => {
    const [notes] = steps.filter((step) => step.includes('--notes'));
    const { code, output } = sh(folder, notes, GITHUB);
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(output).toContain(`(https://git.example/owner/repository/blob/${TAG}/docs/api.md#`);
  });

  /** Runs the command that publishes, with an npm that prints its arguments and knows this integrity of the version. */
  function publish(variables, published = '') {
    const npm = path.join(emptyFolder(), 'npm.js');
    const view = `process.argv[2] === 'view' ? ${JSON.stringify(published)} : process.argv.slice(2)`;
    fs.writeFileSync(npm, `console.log(...[${view}].flat())`);
    const [step] = steps.filter((each) => each.includes('--tarball=.'));
    const command = step.replace('npm run release --', 'node scripts/release.mjs'); // npm would name itself
    return sh(folder, command, { ...GITHUB, npm_execpath: npm, ...variables });
  }
  const IDENTITY = { ACTIONS_ID_TOKEN_REQUEST_URL: 'http://127.0.0.1:9' };

  // Kills: publish() without --provenance, or without the check of ACTIONS_ID_TOKEN_REQUEST_URL
  test('is published with provenance, by the workflow only', () => {
    const { code, output } = publish(IDENTITY);
    expect({ code, output }).toMatchObject({ code: 0 });
    const file = path.join(fs.realpathSync(folder), `rollgate-${version}.tgz`);
    const digest = createHash('sha512').update(fs.readFileSync(file)).digest('hex');
    expect(output).toContain(`pkg:npm/rollgate@${version}\n            sha512  ${digest}\n`);
    expect(output).toContain('release: 0 problems, 0 of this machine');
    expect(output).toContain(`publish ${file} --provenance --access=public --tag=latest`);
    const elsewhere = publish({});
    expect(elsewhere).toMatchObject({ code: 1 });
    expect(elsewhere.output).toContain('only release.yml can publish');
  });

  // Kills: publish() that publishes again, or takes other bytes for the same
  test('is not published again', () => {
    const bytes = fs.readFileSync(path.join(folder, `rollgate-${version}.tgz`));
    const same = publish(IDENTITY, `sha512-${createHash('sha512').update(bytes).digest('base64')}`);
    expect(same).toMatchObject({ code: 0, output: expect.not.stringContaining('--provenance') });
    const other = publish(IDENTITY, 'sha512-AAAA');
    expect(other).toMatchObject({ code: 1, output: expect.stringContaining('from other bytes') });
  });

  test.each(['native', 'wasm'])('is tried as it is packed: %s', (binding) => {
    const [step] = steps.filter((each) => each.includes(`--binding=${binding}`));
    const { code, output } = sh(folder, step);
    expect({ code, output }).toMatchObject({
      code: 0,
      output: expect.stringContaining('0 failed'),
    });
  });

  /** Runs the step of the release on GitHub with a program in place of gh, whose `release view` ends with this code. */
  function releaseOnGitHub(codeOfView) {
    const programs = emptyFolder();
    const view = `[ "$2" = view ] && exit ${codeOfView}`;
    const record = `#!/bin/sh\n${view}\necho "$@"\nfor file; do :; done\ncat "$file"\n`;
    fs.writeFileSync(path.join(programs, 'gh'), record, { mode: 0o755 });
    const [step] = steps.filter((each) => each.includes('github-release'));
    const PATH = `${programs}${path.delimiter}${process.env.PATH}`;
    return sh(folder, step, { ...GITHUB, PATH });
  }

  // Kills: github-release.sh without `gh release view`
  test('is no second release on GitHub', () => {
    expect(releaseOnGitHub(0)).toMatchObject({ code: 0, output: '' });
  });

  // Kills: github-release.sh without `--notes-file "$notes"`
  test('becomes a release on GitHub', () => {
    const { code, output } = releaseOnGitHub(1);
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(output).toMatch(
      new RegExp(
        `^release create ${TAG} rollgate-${version}.tgz --verify-tag --latest --title ${TAG} --notes-file`,
      ),
    );
    expect(output).toContain('### Added');
  });

  // Kills: textProblems without the comparison of the tag
  test('ends with another tag', () => {
    const { code, output } = dryRun(folder, '--tarball=. --tag=v9.9.9', GITHUB);
    expect([code, output]).toEqual([1, expect.stringContaining(`the tag v9.9.9 is not ${TAG}`)]);
  });
});

describeHere('the dry run', () => {
  const saying = (words) => expect.stringContaining(words);

  // Kills: release() with `here` in `real` without a tag, or apart from it with one
  test('names what only this machine lacks; with a tag it is lacking', () => {
    const folder = tree();
    fs.rmSync(path.join(folder, 'lib/native/wasm'), { recursive: true });
    // Six binaries, the module, the repository.
    const summary = saying('release: 0 problems, 8 of this machine');
    expect(dryRun(folder)).toEqual({ code: 0, output: summary });
    expect(fs.readdirSync(folder).filter((name) => name.endsWith('.tgz'))).toEqual([]);
    const tagged = dryRun(folder, `--tag=${TAG}`);
    expect(tagged).toEqual({ code: 1, output: saying('release: 8 problems, 0 of this machine') });
  });

  // Kills: textProblems without README, or without the date; changelogPart that gives an empty part
  test('finds what README and changelog do not know yet', () => {
    const lost = tree();
    edit(lost, 'README.md', (text) => `${text}\nnot on npm yet`);
    edit(lost, 'CHANGELOG.md', (text) =>
      text.replace(/^## \[\d.*$/m, `## [${version}] - not yet released`),
    );
    const { output } = dryRun(lost, `--tag=${TAG}`);
    for (const problem of ['CHANGELOG.md has no date', 'README.md says']) {
      expect(output).toContain(`- ${problem}`);
    }
    edit(lost, 'CHANGELOG.md', (text) => text.replace(/^## \[\d[\s\S]*/m, `## [${version}]\n\n`));
    expect(dryRun(lost)).toEqual({ code: 1, output: saying(`no part "## [${version}]"`) });
  });
});
