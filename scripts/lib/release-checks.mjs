// Finds what is missing for a release. test/package checks that the package has its entries and nothing else, and npm the
// version and the repository.

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

/** What CHANGELOG.md says of a version; undefined if it does not have it, or nothing of it. */
export function changelogPart(changelog, version) {
  const parts = changelog.split(/^## /m).slice(1);
  const part = parts.find((text) => text.startsWith(`[${version}]`));
  return part?.slice(part.indexOf('\n')).trim() || undefined;
}

/** The messages whose conditions hold. */
const messagesOf = (problems) => problems.filter(([isThere]) => isThere).map(([, text]) => text);

/** What changelog and README must say for a version and, if there is one, its tag. */
export function textProblems({ changelog, readme }, version, tag) {
  const isUndated = changelog.includes(`## [${version}] - not yet`);
  const isNotOnNpm = readme.includes('not on npm yet');
  const ofVersion = [
    [!changelogPart(changelog, version), `CHANGELOG.md has no part "## [${version}]"`],
  ];
  const ofTag = [
    [tag !== `v${version}`, `the tag ${tag} is not v${version}`],
    [isUndated, 'CHANGELOG.md has no date'],
    [isNotOnNpm, 'README.md says that the package is not on npm yet'],
  ];
  return messagesOf(tag === undefined ? ofVersion : [...ofVersion, ...ofTag]);
}

/** What the release workflow has, and this machine may lack. */
export function missingHere({ files, manifest }) {
  const lacksModule = MODULE.some((path) => !files.has(path));
  return messagesOf([
    ...Object.entries(BINARIES).map(([name, path]) => [!files.has(path), `no binary for ${name}`]),
    [lacksModule, 'no WebAssembly module: npm run build:wasm makes it'],
    [!manifest.repository, '"repository" is missing in package.json: --fill writes it'],
  ]);
}
