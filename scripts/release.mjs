// Publishes the package, or shows what would be published: npm run release -- --dry-run
//   --dry-run          publishes nothing; without it, only the release workflow can run this
//   --tarball=FILE     this file of npm pack, or the one in this folder; otherwise the package is packed here
//   --tag=v1.2.3       the tag of the release: then nothing may be missing, also not on this machine
//   --notes --tag=...  prints only the changelog's part
//   --fill             only writes into package.json where the repository lies
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { npm } from './lib/npm-folder.mjs';
import {
  BINARIES,
  changelogPart,
  MODULE,
  problemsOf,
  textProblems,
} from './lib/release-checks.mjs';
import { addressesIn, repositoryOf, withAddresses } from './lib/repository.mjs';
import { readTarball, tarballAt } from './lib/tarball.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const repository = repositoryOf(process.env);
const manifestFile = join(root, 'package.json');
const own = JSON.parse(readFileSync(manifestFile, 'utf8'));

const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`.padStart(10);

function fill() {
  if (repository === undefined)
    throw new Error('GITHUB_SERVER_URL or GITHUB_REPOSITORY is not set');
  const filled = { ...own, ...addressesIn(repository) };
  writeFileSync(manifestFile, `${JSON.stringify(filled, null, 2)}\n`);
  console.log(`release: package.json names ${repository.url}`);
}

function notes(tag = '') {
  const read = (name) => readFileSync(join(root, name), 'utf8');
  const changelog = read('CHANGELOG.md');
  const problems = textProblems({ changelog, readme: read('README.md') }, own.version, tag);
  if (problems.length > 0) throw new Error(problems.join('; '));
  const part = changelogPart(changelog, own.version);
  console.log(repository ? withAddresses(part, repository, tag) : part);
}

/** The commit, and the files that differ from it; undefined where there is no git or no repository of the project. */
function gitState() {
  const git = (...args) => {
    const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
    return status === 0 ? stdout : undefined;
  };
  if (git('rev-parse', '--show-prefix')?.trim() !== '') return undefined; // or the repository of something else
  const status = git('status', '--porcelain', '--no-renames', '--untracked-files=all') ?? '';
  const changed = status.split('\n').map((line) => line.slice(3));
  return { commit: git('rev-parse', 'HEAD')?.trim(), changed };
}

/** Calls `use` with the file of --tarball, or with one that is packed now. */
function withTarball(path, use) {
  if (path !== undefined) return use(tarballAt(resolve(path)), { ...gitState(), changed: [] });
  const folder = mkdtempSync(join(os.tmpdir(), 'rollgate-release-'));
  try {
    const quiet = ['--ignore-scripts', '--loglevel=error'];
    npm(['pack', ...quiet, `--pack-destination=${folder}`], { cwd: root });
    return use(tarballAt(folder), gitState());
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function showFolders(files) {
  const folders = new Map();
  for (const [path, { length }] of files) {
    const folder = path.split('/').slice(0, -1).slice(0, 2).join('/') || '.';
    const [count, bytes] = folders.get(folder) ?? [0, 0];
    folders.set(folder, [count + 1, bytes + length]);
  }
  console.log(`${'files'.padStart(5)}${'size'.padStart(10)}  folder`);
  for (const [folder, [count, bytes]] of [...folders].sort()) {
    console.log(`${String(count).padStart(5)}${kilobytes(bytes)}  ${folder}`);
  }
}

function show({ files, manifest, size, subject }, git) {
  const from = `commit ${git?.commit ?? 'unknown'}`;
  console.log(
    `${manifest.name} ${manifest.version}, ${from}, ${repository?.url ?? 'no address'}\n`,
  );
  showFolders(files);
  const unpacked = [...files.values()].reduce((sum, { length }) => sum + length, 0);
  const sizes = `packed ${kilobytes(size).trim()}, unpacked ${kilobytes(unpacked).trim()}`;
  console.log(`\n${files.size} files, ${sizes}\n`);
  const parts = { ...BINARIES, 'WebAssembly, file': MODULE[0], 'WebAssembly, text': MODULE[1] };
  for (const [name, path] of Object.entries(parts)) {
    const found = files.get(path);
    console.log(`${name.padEnd(18)}${found ? kilobytes(found.length) : '   missing'}  ${path}`);
  }
  console.log(`\nprovenance subject  ${subject.name}\n            sha512  ${subject.sha512}\n`);
  const part = changelogPart(String(files.get('CHANGELOG.md') ?? ''), manifest.version) ?? '';
  console.log(`changelog, ${part ? part.split('\n').length : 0} lines:\n${part}\n`);
}

function list(title, problems) {
  if (problems.length > 0) console.log(`${title}:\n- ${problems.join('\n- ')}\n`);
}

/** What the registry says of a version; undefined where it does not have it, or does not answer. */
function publishedIntegrity(version) {
  try {
    return npm(['view', version, 'dist.integrity']).trim();
  } catch {
    return undefined;
  }
}

/** npm gets its right to publish from the workflow's identity. What is published already is left as it is. */
function publish(file, { manifest: { name, version }, integrity }) {
  const published = publishedIntegrity(`${name}@${version}`);
  if (published === integrity)
    return console.log(`release: ${name}@${version} is published already`);
  if (published) throw new Error(`${name}@${version} is published already, from other bytes`);
  if (!process.env.ACTIONS_ID_TOKEN_REQUEST_URL) throw new Error('only release.yml can publish');
  const tag = version.includes('-') ? 'next' : 'latest';
  const options = ['--provenance', '--access=public', `--tag=${tag}`, '--ignore-scripts'];
  npm(['publish', file, ...options], { stdio: 'inherit' });
}

function release({ tarball: path, tag, 'dry-run': isDry }) {
  if (!isDry && (path === undefined || tag === undefined)) {
    throw new Error('publishing takes --tarball and --tag; --dry-run only shows');
  }
  withTarball(path, (file, git) => {
    const tarball = readTarball(file);
    show(tarball, git);
    const { real, here } = problemsOf(tarball, { own, tag, repository, git });
    list('Only on this machine; the release workflow has it', here);
    list('Problems', real);
    console.log(`release: ${real.length} problems, ${here.length} of this machine`);
    if (real.length > 0) process.exitCode = 1;
    else if (!isDry) publish(file, tarball);
  });
}

const { values } = parseArgs({
  options: {
    'dry-run': { type: 'boolean' },
    tarball: { type: 'string' },
    tag: { type: 'string' },
    notes: { type: 'boolean' },
    fill: { type: 'boolean' },
  },
});
try {
  if (values.fill) fill();
  else if (values.notes) notes(values.tag);
  else release(values);
} catch (error) {
  console.error(`release: ${error.message}`);
  process.exitCode = 1;
}
