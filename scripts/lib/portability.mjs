// Finds what an addon needs of the system, and whether common systems have that.
import { must } from './commands.mjs';

/** The newest glibc that may be needed, as by Node's own binaries for old systems. */
const NEWEST_GLIBC = '2.17';
const NODE_API = 8;
const EXPORTS = ['napi_register_module_v1', 'node_api_module_get_api_version_v1'];
/** The libraries that every machine with Node has: the C library, and libgcc, which Node itself needs. */
const LIBRARIES =
  /^(lib(c|m|dl|rt|pthread|gcc_s)\.so\.\d+|libc\.musl-.*|ld-linux-.*|\/usr\/lib\/libSystem\..*|\/usr\/lib\/libc\+\+\..*)$/;

const linesOf = (command, ...args) =>
  must(command, args)
    .split('\n')
    .map((line) => line.trim());

const byVersion = (a, b) => a.localeCompare(b, 'en', { numeric: true });

function needsOnLinux(file, toolPrefix) {
  const objdump = `${toolPrefix}objdump`;
  const symbols = linesOf(objdump, '-T', file) // none that are local: on arm64 two sections are listed
    .map((line) => /^[0-9a-f]{16} ([^l].{6}) (\S+)\s+[0-9a-f]{16}\s+(.*?)\s*(\S+)$/.exec(line))
    .filter(Boolean)
    .map(([, , section, version, name]) => ({ name, version, here: section !== '*UND*' }));
  const versions = symbols.map(({ version }) => /\bGLIBC_([\d.]+)/.exec(version)?.[1]);
  return {
    exports: symbols.filter(({ here }) => here).map(({ name }) => name),
    imports: symbols.filter(({ here }) => !here).map(({ name }) => name),
    libraries: linesOf(objdump, '-p', file)
      .map((line) => /^NEEDED\s+(\S+)$/.exec(line)?.[1])
      .filter(Boolean),
    glibc: versions.filter(Boolean).sort(byVersion).at(-1),
  };
}

function needsOnMac(file) {
  const names = (lines) =>
    lines.filter((line) => line.startsWith('_')).map((name) => name.slice(1));
  return {
    exports: names(linesOf('nm', '-gUj', file)),
    imports: names(linesOf('nm', '-guj', file)),
    libraries: linesOf('otool', '-L', file)
      .slice(1)
      .map((line) => line.split(' (')[0])
      .filter((name) => name && !name.endsWith('.node')),
  };
}

/**
 * @param {string} file an addon of this platform
 * @param {string} [toolPrefix] of objdump, for another architecture
 * @returns {{ exports: string[], imports: string[], libraries: string[], glibc?: string } | undefined}
 *   nothing on Windows, where no tool for it comes with the compiler's command line
 */
export function needsOf(file, toolPrefix = '') {
  if (process.platform === 'linux') return needsOnLinux(file, toolPrefix);
  if (process.platform === 'darwin') return needsOnMac(file);
}

/**
 * The problems of an addon with these needs, as sentences.
 *
 * @param {ReturnType<typeof needsOf>} needs
 * @param {object} nodeApi node-api-headers' lists of functions by version
 */
export function findingsIn(needs, nodeApi) {
  if (!needs) return [];
  const { exports, imports, libraries, glibc } = needs;
  const { node_api_symbols: node, js_native_api_symbols: js } = nodeApi[`v${NODE_API}`];
  const known = new Set([...node, ...js]);
  const findings = [
    ...exports.filter((name) => !EXPORTS.includes(name)).map((name) => `it exports ${name}`),
    ...imports
      .filter((name) => /^(napi|node_api)_/.test(name) && !known.has(name))
      .map((name) => `it calls ${name}, which Node-API ${NODE_API} has not got`),
    ...libraries.filter((name) => !LIBRARIES.test(name)).map((name) => `it needs ${name}`),
  ];
  if (!exports.includes(EXPORTS[0])) findings.push(`it does not export ${EXPORTS[0]}`);
  if (glibc && byVersion(glibc, NEWEST_GLIBC) > 0) {
    findings.push(`it needs glibc ${glibc}, not ${NEWEST_GLIBC}`);
  }
  return findings;
}
