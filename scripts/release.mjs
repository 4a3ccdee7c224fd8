// Publishes the package, or shows what would be published: npm run release -- --dry-run
//   --dry-run          publishes nothing; without it, only the release workflow can run this
//   --tarball=FILE     this file of npm pack, or the one in this folder; otherwise the package is packed here
//   --tag=v1.2.3       the tag of the release: then nothing may be missing, also not on this machine
//   --notes --tag=...  prints only the changelog's part
//   --fill             only writes into package.json where the repository lies
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './build.mjs';
import { main } from './lib/commands.mjs';
import { npm } from './lib/npm.mjs';
import {
  BINARIES,
  changelogPart,
  MODULE,
  missingHere,
  textProblems,
} from './lib/release-checks.mjs';
import { addressesIn, repositoryOf, withAddresses } from './lib/repository.mjs';
import { inTemporaryFolder, readTarball, tarballAt } from './lib/tarball.mjs';

const repository = repositoryOf(process.env);
const read = (name) => readFileSync(join(root, name), 'utf8');
const texts = { changelog: read('CHANGELOG.md'), readme: read('README.md') };
const own = JSON.parse(read('package.json'));

function fill() {
  if (repository === undefined)
    throw new Error('GITHUB_SERVER_URL or GITHUB_REPOSITORY is not set');
  const filled = { ...own, ...addressesIn(repository) };
  writeFileSync(join(root, 'package.json'), `${JSON.stringify(filled, null, 2)}\n`);
  console.log(`release: package.json names ${repository.url}`);
}

function notes(tag = '') {
  const problems = textProblems(texts, own.version, tag);
  if (problems.length > 0) throw new Error(problems.join('; '));
  const part = changelogPart(texts.changelog, own.version);
  console.log(repository ? withAddresses(part, repository, tag) : part);
}

/** Calls `use` with the file of --tarball, or with one that is packed now. */
function withTarball(path, use) {
  if (path !== undefined) return use(tarballAt(resolve(path)));
  return inTemporaryFolder((folder) => {
    const quiet = ['--ignore-scripts', '--loglevel=error'];
    npm(['pack', ...quiet, `--pack-destination=${folder}`], { cwd: root });
    return use(tarballAt(folder));
  });
}

function show({ files, manifest: { name, version }, size, sha512 }) {
  const unpacked = [...files.values()].reduce((sum, { length }) => sum + length, 0);
  const kilobytes = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
  console.log(`${files.size} files, packed ${kilobytes(size)}, unpacked ${kilobytes(unpacked)}\n`);
  for (const path of [...Object.values(BINARIES), ...MODULE].filter((one) => files.has(one))) {
    console.log(`${kilobytes(files.get(path).length).padStart(10)}  ${path}`);
  }
  console.log(`\nprovenance subject  pkg:npm/${name}@${version}`);
  console.log(`            sha512  ${sha512.toString('hex')}\n`);
  console.log(`${changelogPart(texts.changelog, version)}\n`);
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
function publish(file, { manifest: { name, version }, sha512 }) {
  const published = publishedIntegrity(`${name}@${version}`);
  if (published === `sha512-${sha512.toString('base64')}`)
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
  withTarball(path, (file) => {
    const tarball = readTarball(file);
    show(tarball);
    const missing = missingHere(tarball);
    const here = tag === undefined ? missing : [];
    const real = textProblems(texts, tarball.manifest.version, tag);
    if (tag !== undefined) real.push(...missing);
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
await main('release', () => {
  if (values.fill) fill();
  else if (values.notes) notes(values.tag);
  else release(values);
});
