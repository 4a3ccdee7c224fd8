// Runs the README's commands in fresh Debian systems: npm run systems [-- --system=debian-13 --node=debian,24]
//   [--user=root,user] [--skip-tests] [--again] [--list]
// A cell is a system, a Node and a user. A cell that passed with these sources runs again only with --again.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { onPath, root } from './build.mjs';
import { makeSystem, removeSystem, runIn, startIn } from './lib/debian-root.mjs';
import { filesBelow } from './lib/files.mjs';
import { cacheFolder, npmFolder } from './lib/npm-folder.mjs';

const SYSTEMS = { 'debian-12': 'bookworm', 'debian-13': 'trixie', 'debian-testing': 'forky' };
/** Debian's own Node, or a version of Node's npm package, each with an npm that runs on it. */
const NODES = {
  debian: undefined,
  20: { node: '20.20.2', npm: '10.9.9' },
  22: { node: '22.23.3', npm: '11.21.2' },
  24: { node: '24.21.0', npm: '11.21.2' },
  26: { node: '26.10.0', npm: '11.21.2' },
};
const USERS = ['root', 'user'];
/** In this order, because the first one sets up the system. */
const PARTS = ['start', 'check', 'tests'];
const MOST_PACKAGES = 100;
/** An older Node runs npm start and the package, but not the development commands. */
const DEVELOPMENT_NODE = 20;

const ok = (detail = '') => ({ passed: true, detail });
const failed = (detail) => ({ passed: false, detail });
const lastLines = (text) => text.trim().split('\n').slice(-12).join('\n    ');

/** A failure of a command, with the signal that ended it if one did; all of its output goes to a file. */
function failureOf(what, { status, signal, output }) {
  const ending = signal ?? (status > 128 ? `signal ${status - 128}` : `status ${status}`);
  const file = join(cacheFolder, 'systems/failure.log');
  writeFileSync(file, output);
  return failed(`${what} ended with ${ending} (${file})\n    ${lastLines(output)}`);
}

/** Sends requests to the server until it refuses one; returns the statuses. */
async function askUntilRefused(url) {
  const statuses = [];
  while (statuses.length < 20 && statuses.at(-1) !== 429) {
    statuses.push((await fetch(`${url}/api/action`)).status);
  }
  return statuses.join(' ');
}

/** Runs npm start until its server refuses a request or npm ends. */
async function npmStart(system, minutes) {
  const child = startIn(system, 'npm start', { env: { PORT: '0' } });
  const timer = setTimeout(() => child.kill('SIGKILL'), minutes * 60_000);
  const started = Date.now();
  let output = '';
  let asked;
  const listen = (text) => {
    output += text;
    const [, url] = /See the algorithms\s+(http:\S+?)\/\s/.exec(output) ?? [];
    if (url && !asked) {
      asked = askUntilRefused(url).then(
        (statuses) => ({ statuses, seconds: Math.round((Date.now() - started) / 1000) }),
        (error) => ({ statuses: error.message }),
      );
      asked.then(() => child.kill('SIGKILL'));
    }
  };
  child.stdout.setEncoding('utf8').on('data', listen);
  child.stderr.setEncoding('utf8').on('data', listen);
  const [status, signal] = await new Promise((resolve) => {
    child.on('close', (...ending) => resolve(ending));
  });
  clearTimeout(timer);
  return { ...(await asked), status, signal, output };
}

/** Runs a command. If it prints a command for root, runs that as root, and then the first one again. */
function runWithPackages(system, command, options) {
  const result = runIn(system, command, options);
  const [, asRoot] = /run this as root, then try again:\n {2}(.*)/.exec(result.output) ?? [];
  if (!asRoot || system.user === 'root') return result;
  const installed = runIn(system, asRoot, { as: 'root' });
  return installed.status === 0 ? runIn(system, command, options) : installed;
}

/** The names of the npm packages that a command has installed in the project. */
function npmPackagesIn(system) {
  const folders = ['node_modules', 'examples/start/node_modules'];
  return folders.flatMap((folder) => {
    const lock = join(system.folder, system.home, 'rollgate', folder, '.package-lock.json');
    return existsSync(lock) ? Object.keys(JSON.parse(readFileSync(lock, 'utf8')).packages) : [];
  });
}

const run = {
  /** npm start; for an ordinary user, the system packages are installed first, as setup says. */
  async start(system) {
    if (system.user !== 'root') {
      const result = runWithPackages(system, 'node scripts/setup.mjs');
      if (result.status !== 0) return failureOf('setup', result);
    }
    const { statuses, seconds, ...ending } = await npmStart(system, 15);
    if (!statuses) return failureOf('npm start', ending);
    if (statuses !== '200 200 200 200 200 429') return failed(`GET /api/action gave ${statuses}`);
    const packages = npmPackagesIn(system).length;
    if (packages > MOST_PACKAGES) return failed(`npm start installed ${packages} packages`);
    return ok(`${seconds} s, ${packages} npm packages`);
  },

  /** Limiters of each store, by this system's Node. */
  check(system) {
    const install = 'apt-get install -y --no-install-recommends redis-server';
    const installed = runIn(system, install, { as: 'root' });
    if (installed.status !== 0) return failureOf(install, installed);
    const result = runIn(system, 'node test/systems/check.js', { minutes: 5 });
    return result.status === 0 ? ok(result.output.trim()) : failureOf('the check', result);
  },

  /** The cells of a system share the compiled tests; npm start compiles by itself. */
  tests(system) {
    const installed = runIn(system, 'apt-get install -y ccache', { as: 'root' });
    if (installed.status !== 0) return failureOf('apt-get install ccache', installed);
    const { ROLLGATE_PATIENCE = '1' } = process.env;
    const env = { CMAKE_CXX_COMPILER_LAUNCHER: 'ccache', ROLLGATE_PATIENCE };
    const result = runWithPackages(system, 'npm test', { minutes: 25, env });
    const refusal = /development needs Node\.js .*/.exec(result.output)?.[0];
    const [version] = runIn(system, 'node -p process.versions.node').output.split('.');
    if (Number(version) < DEVELOPMENT_NODE) {
      return result.status === 1 && refusal ? ok(refusal) : failureOf('setup', result);
    }
    const sum = /^Suites: .*$/m.exec(result.output)?.[0];
    return result.status === 0 ? ok(sum) : failureOf('the fast tests', result);
  },
};

/** A cell runs again if this changes: the sources, and the versions that it uses. */
function fingerprintOf(cell) {
  const versions = [cell.name, SYSTEMS[cell.system], NODES[cell.node]];
  const hash = createHash('sha256').update(JSON.stringify(versions));
  const folders = ['src', 'lib', 'cmake', 'scripts', 'test', 'examples'];
  const files = folders.flatMap((folder) => filesBelow(folder, /^/));
  for (const file of ['package.json', 'package-lock.json', 'CMakeLists.txt', ...files]) {
    hash.update(file).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex');
}

const resultsFile = join(cacheFolder, 'systems/results.json');
const readResults = () =>
  existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, 'utf8')) : {};

/** Runs the parts of a cell in a new system, and stores their results. */
async function runCell(cell, parts, packages) {
  const results = {};
  const system = makeSystem(SYSTEMS[cell.system], packages, cell.user);
  try {
    for (const part of parts) {
      const isStopped = Object.values(results).some((result) => !result.passed);
      const result = isStopped ? failed('not run') : await run[part](system, cell);
      results[part] = result;
      console.log(`${cell.name}, ${part}: ${result.passed ? 'ok' : 'FAILED'} (${result.detail})`);
    }
  } finally {
    removeSystem(system.folder);
  }
  return results;
}

function packagesOf(node) {
  if (!NODES[node]) return undefined;
  const { node: version, npm } = NODES[node];
  const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
  const folder = npmFolder(`node-${node}`, { [`node-linux-${arch}`]: version, npm });
  const modules = join(folder, 'node_modules');
  return { node: join(modules, `node-linux-${arch}`), npmPackage: join(modules, 'npm') };
}

function chosen(text, all, option) {
  const names = text ? text.split(',') : all;
  const wrong = names.find((name) => !all.includes(name));
  if (wrong) throw new Error(`--${option} takes ${all.join(', ')}, not ${wrong}`);
  return names;
}

function printTable(cells, parts, results) {
  const rows = cells.map(({ name }) => [
    name,
    ...parts.map((part) => {
      const result = results[name]?.results[part];
      return result
        ? `${result.passed ? 'ok' : 'FAILED'}: ${result.detail.split('\n')[0]}`
        : 'not run';
    }),
  ]);
  const table = [['system, Node, user', ...parts], ...rows];
  const widths = table[0].map((_, column) => Math.max(...table.map((row) => row[column].length)));
  for (const row of table) {
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    );
  }
}

async function main() {
  const { values } = parseArgs({
    options: {
      system: { type: 'string' },
      node: { type: 'string' },
      user: { type: 'string' },
      'skip-tests': { type: 'boolean' },
      again: { type: 'boolean' },
      list: { type: 'boolean' },
    },
  });
  const parts = values['skip-tests'] ? PARTS.slice(0, -1) : PARTS;
  const cells = chosen(values.system, Object.keys(SYSTEMS), 'system').flatMap((system) =>
    chosen(values.node, Object.keys(NODES), 'node').flatMap((node) =>
      chosen(values.user, USERS, 'user').map((user) => {
        const name = `${system}, ${node === 'debian' ? "Debian's Node" : `Node ${node}`}, ${user}`;
        return { name, system, node, user };
      }),
    ),
  );
  const results = readResults();
  const isDone = (cell) =>
    results[cell.name]?.fingerprint === fingerprintOf(cell) &&
    parts.every((part) => results[cell.name].results[part]?.passed);
  if (!values.list) {
    if (process.platform !== 'linux' || process.getuid() !== 0 || !onPath('debootstrap')) {
      throw new Error('this takes Linux, root and debootstrap');
    }
    for (const cell of cells.filter((one) => values.again || !isDone(one))) {
      const fingerprint = fingerprintOf(cell);
      const known = results[cell.name]?.fingerprint === fingerprint && results[cell.name].results;
      const found = await runCell(cell, parts, packagesOf(cell.node));
      results[cell.name] = { fingerprint, results: { ...known, ...found } };
      mkdirSync(join(cacheFolder, 'systems'), { recursive: true });
      writeFileSync(resultsFile, JSON.stringify(results, null, 2));
    }
  }
  printTable(cells, parts, results);
  const passed = cells.filter(isDone).length;
  console.log(`Systems: ${passed} passed, ${cells.length - passed} failed`);
  process.exitCode = passed === cells.length ? 0 : 1;
}

try {
  await main();
} catch (error) {
  console.error(`systems: ${error.message}`);
  process.exitCode = 1;
}
