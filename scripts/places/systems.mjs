// The README's commands in fresh Debian systems: npm run systems [-- --system=debian-13 --node=debian,24]
//   [--user=root,user] [--skip-tests]
// A case is a system, a Node and a user.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onPath } from '../build.mjs';
import { cacheOf, npmFolder } from '../caches.mjs';
import { chosen } from '../lib/chosen.mjs';
import { enter, makeSystem, removeSystem, runIn } from '../lib/debian-root.mjs';
import { runGroup } from '../lib/process-group.mjs';

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
const MOST_PACKAGES = 100;
/** An older Node runs npm start and the package, but not the development commands. */
const DEVELOPMENT_NODE = 20;

/** Throws if a command failed, with how it ended and its last lines; all of its output goes to a file. */
function assertPassed(what, { status, signal, output }) {
  if (status === 0) return;
  const file = join(cacheOf('systems'), 'failure.log');
  writeFileSync(file, output);
  const last = output.trim().split('\n').slice(-12).join('\n    ');
  throw new Error(`${what} ended with ${signal ?? `status ${status}`} (${file})\n    ${last}`);
}

function mustRunIn(system, what, command, options) {
  const result = runIn(system, command, options);
  assertPassed(what, result);
  return result;
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
  const { command, args, env } = enter(system, 'npm start', { env: { PORT: '0' } });
  const started = Date.now();
  const result = await runGroup([command, ...args], {
    env,
    timeoutMs: minutes * 60_000,
    async until(_signal, child, output) {
      const url = await new Promise((resolve) => {
        child.stdout.on('data', () => {
          const [, found] = /See the algorithms\s+(http:\S+?)\/\s/.exec(output.text) ?? [];
          if (found) resolve(found);
        });
      });
      const statuses = await askUntilRefused(url);
      return { statuses, seconds: Math.round((Date.now() - started) / 1000) };
    },
  });
  const { answer, code, signal, text: output } = result;
  if (!answer) assertPassed('npm start', { status: code || 'no answer', signal, output });
  return answer;
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

const parts = {
  /** npm start; for an ordinary user, the system packages are installed first, as setup says. */
  async start(system) {
    if (system.user !== 'root') {
      assertPassed('setup', runWithPackages(system, 'node scripts/setup.mjs'));
    }
    const { statuses, seconds } = await npmStart(system, 15);
    if (statuses !== '200 200 200 200 200 429') {
      throw new Error(`GET /api/action gave ${statuses}`);
    }
    const packages = npmPackagesIn(system).length;
    if (packages > MOST_PACKAGES) throw new Error(`npm start installed ${packages} packages`);
    return `${seconds} s, ${packages} npm packages`;
  },

  /** Limiters of each store, by this system's Node. */
  check(system) {
    const install = 'apt-get install -y --no-install-recommends redis-server';
    mustRunIn(system, install, install, { as: 'root' });
    const { output } = mustRunIn(system, 'the check', 'node test/systems/check.js', { minutes: 5 });
    return output.trim();
  },

  /** The cases of a system share the compiled tests; npm start compiles by itself. */
  tests(system) {
    const install = 'apt-get install -y ccache';
    mustRunIn(system, install, install, { as: 'root' });
    const { ROLLGATE_PATIENCE = '1' } = process.env;
    const env = { CMAKE_CXX_COMPILER_LAUNCHER: 'ccache', ROLLGATE_PATIENCE };
    const result = runWithPackages(system, 'npm test', { minutes: 25, env });
    const refusal = /development needs Node\.js .*/.exec(result.output)?.[0];
    const [version] = runIn(system, 'node -p process.versions.node').output.split('.');
    const isOld = Number(version) < DEVELOPMENT_NODE;
    if (isOld && result.status === 1 && refusal) return refusal;
    assertPassed('the fast tests', isOld ? { ...result, status: 'no refusal' } : result);
    return /^Suites: .*$/m.exec(result.output)?.[0];
  },
};

/** In this order, because the first one sets up the system. */
const PARTS = Object.keys(parts);

function packagesOf(node) {
  if (!NODES[node]) return undefined;
  const { node: version, npm } = NODES[node];
  const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
  const folder = npmFolder(`node-${node}`, { [`node-linux-${arch}`]: version, npm });
  const modules = join(folder, 'node_modules');
  return { node: join(modules, `node-linux-${arch}`), npmPackage: join(modules, 'npm') };
}

export const options = {
  system: { type: 'string' },
  node: { type: 'string' },
  user: { type: 'string' },
  'skip-tests': { type: 'boolean' },
};

export function casesOf(values, names) {
  if (names.length > 0) throw new Error('systems takes --system, --node and --user');
  const of = (option, all) => chosen(values[option]?.split(','), all, `--${option}`);
  return of('system', Object.keys(SYSTEMS)).flatMap((system) =>
    of('node', Object.keys(NODES)).flatMap((node) =>
      of('user', USERS).map((user) => {
        const name = `${system}, ${node === 'debian' ? "Debian's Node" : `Node ${node}`}, ${user}`;
        return { name, system, node, user };
      }),
    ),
  );
}

export function setUp(_cases, values) {
  if (process.platform !== 'linux' || process.getuid() !== 0 || !onPath('debootstrap')) {
    throw new Error('this takes Linux, root and debootstrap');
  }
  return values['skip-tests'] ? PARTS.slice(0, -1) : PARTS;
}

/** Runs the parts of a case in a new system; gives what they say. */
export async function run(one, partNames) {
  const system = makeSystem(SYSTEMS[one.system], packagesOf(one.node), one.user);
  const lines = [];
  try {
    for (const name of partNames) lines.push(`${name}: ${await parts[name](system)}`);
  } finally {
    removeSystem(system.folder);
  }
  return lines.join('; ');
}
