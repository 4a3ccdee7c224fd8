// Finds what is missing for a release. A problem of this machine is one that the release workflow does not have.
import { addressesIn } from './repository.mjs';

/** The binaries that a release has, by the system: those that prebuilds.yml makes. Windows has none. */
export const BINARIES = {
  'linux-x64 glibc': 'prebuilds/linux-x64/rollgate.glibc.node',
  'linux-x64 musl': 'prebuilds/linux-x64/rollgate.musl.node',
  'linux-arm64 glibc': 'prebuilds/linux-arm64/rollgate.glibc.node',
  'linux-arm64 musl': 'prebuilds/linux-arm64/rollgate.musl.node',
  'darwin-arm64': 'prebuilds/darwin-arm64/rollgate.node',
  'darwin-x64': 'prebuilds/darwin-x64/rollgate.node',
};

/** The WebAssembly module, as a file and as text. */
export const MODULE = ['lib/native/wasm/rollgate.wasm', 'lib/native/wasm/embedded.js'];

const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/;
const FOR_DEVELOPERS =
  /(^|\/)(\.[^/]+|node_modules|tests?|coverage)(\/|$)|\.(js\.map|ts\.map|log|tgz|orig|rej)$/;

/** What CHANGELOG.md says of a version; undefined if it does not have it, or nothing of it. */
export function changelogPart(changelog, version) {
  const parts = changelog.split(/^## /m).slice(1);
  const part = parts.find((text) => text.startsWith(`[${version}]`));
  return part?.slice(part.indexOf('\n')).trim() || undefined;
}

/** Every path that package.json names as an entry. */
function pathsIn(value) {
  if (typeof value === 'string') return value.startsWith('./') ? [value.slice(2)] : [];
  return Object.values(value ?? {}).flatMap(pathsIn);
}

function missingFiles({ files, manifest }) {
  const names = [...files.keys()];
  const { main, types, exports, imports, typesVersions } = manifest;
  const entries = [main, types, exports, imports, typesVersions].flatMap(pathsIn);
  const lost = [...new Set([...entries, 'README.md', 'LICENSE'])].filter(
    (path) => !files.has(path),
  );
  const folders = manifest.files.filter((path) => !path.startsWith('!') && path !== 'prebuilds');
  const empty = folders.filter(
    (path) => !names.some((name) => name === path || name.startsWith(`${path}/`)),
  );
  return [...new Set([...lost, ...empty])].map((path) => `the package has no ${path}`);
}

function wrongFiles({ files }) {
  const wrong = [...files.keys()].filter((path) => FOR_DEVELOPERS.test(path));
  return wrong.map((path) => `${path} is nothing that users need`);
}

/** What changelog and README must say for a version and, if there is one, its tag. */
export function textProblems({ changelog, readme }, version, tag) {
  const problems = [];
  if (changelogPart(changelog, version) === undefined) {
    problems.push(`CHANGELOG.md has no part "## [${version}]"`);
  }
  if (tag === undefined) return problems;
  if (tag !== `v${version}`) problems.push(`the tag ${tag} is not v${version}`);
  if (changelog.includes(`## [${version}] - not yet`)) problems.push('CHANGELOG.md has no date');
  if (readme.includes('not on npm yet')) {
    problems.push('README.md says that the package is not on npm yet');
  }
  return problems;
}

function wrongVersion({ manifest, files }, own, tag) {
  const { version } = manifest;
  const problems = [];
  if (!VERSION.test(version)) problems.push(`the version ${version} is not of the form 1.2.3`);
  if (own.version !== version) {
    problems.push(`the tarball is version ${version}, not ${own.version}`);
  }
  if (manifest.private) problems.push('package.json says "private"');
  const [changelog, readme] = ['CHANGELOG.md', 'README.md'].map((name) => `${files.get(name)}`);
  return [...problems, ...textProblems({ changelog, readme }, version, tag)];
}

/** npm refuses provenance of another repository than the one that the manifest names. */
function wrongAddresses({ manifest }, repository) {
  if (repository === undefined) return [];
  const wrong = Object.entries(addressesIn(repository)).filter(
    ([key, value]) => key in manifest && JSON.stringify(manifest[key]) !== JSON.stringify(value),
  );
  return wrong.map(([key]) => `"${key}" in package.json is not that of ${repository.url}`);
}

/** What the release workflow has, and this machine may lack. */
function missingHere({ files, manifest }, { repository, git }) {
  const binaries = Object.entries(BINARIES).filter(([, path]) => !files.has(path));
  const problems = binaries.map(([system]) => `no binary for ${system}`);
  if (MODULE.some((path) => !files.has(path))) {
    problems.push('no WebAssembly module: npm run build:wasm makes it');
  }
  if (manifest.repository === undefined) {
    const why = repository ? 'not filled in (--fill)' : 'unknown';
    problems.push(`"repository" is missing in package.json: it is ${why} here`);
  }
  if (git?.commit === undefined) problems.push('this is no git repository: the commit is unknown');
  const changed = git?.changed?.filter((path) => files.has(path)) ?? [];
  return [...problems, ...changed.map((path) => `${path} is not as committed`)];
}

/**
 * With a tag, nothing counts as a problem of this machine.
 *
 * @returns {{ real: string[], here: string[] }} problems
 */
export function problemsOf(tarball, { own, tag, repository, git }) {
  const here = missingHere(tarball, { repository, git });
  const real = [
    ...missingFiles(tarball),
    ...wrongFiles(tarball),
    ...wrongVersion(tarball, own, tag),
    ...wrongAddresses(tarball, repository),
  ];
  return tag === undefined ? { real, here } : { real: [...real, ...here], here: [] };
}
