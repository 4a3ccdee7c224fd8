// Debian systems in folders: created with debootstrap, entered with chroot in new namespaces.
import { spawnSync } from 'node:child_process';
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { root as project } from '../build.mjs';
import { cacheOf, kept, removeInterrupted } from '../caches.mjs';
import { must } from './commands.mjs';
import { mirror } from './debian-packages.mjs';
import { npm } from './npm.mjs';

/** The plain user of each system. */
const USER = { name: 'tester', uid: 1000, home: '/home/tester' };

const systems = cacheOf('systems');
const APT_SETTINGS = '/etc/apt/apt.conf.d';

/** Copies what a system needs to reach the same registries: settings of apt and npm, certificates. */
function copyNetworkSettings(folder) {
  for (const name of readdirSync(APT_SETTINGS)) {
    const text = readFileSync(join(APT_SETTINGS, name), 'utf8');
    if (/^Acquire::/m.test(text)) writeFileSync(join(folder, APT_SETTINGS, name), text);
  }
  const files = ['/etc/resolv.conf', '/etc/hosts', process.env.NODE_EXTRA_CA_CERTS];
  for (const file of files.filter((name) => name && existsSync(name))) {
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    writeFileSync(join(folder, file), readFileSync(file));
  }
}

const copySystem = (from, to) => must('cp', ['-a', '--reflink=auto', from, to]);

/** A minimal system with an ordinary user, and with the libraries that Node 26 needs. */
function minimalBase(suite) {
  return kept('systems', suite, (folder) => {
    const script = `/usr/share/debootstrap/scripts/${suite}`;
    const scripts = existsSync(script) ? [] : ['/usr/share/debootstrap/scripts/sid'];
    const include = '--include=ca-certificates,libatomic1';
    // Its mounts end with its namespace, also after an interruption.
    const apart = ['--mount', '--propagation', 'private', 'debootstrap', '--variant=minbase'];
    must('unshare', [...apart, include, suite, folder, mirror(), ...scripts]);
    copyNetworkSettings(folder);
    must('chroot', [folder, 'useradd', '--create-home', '--uid', String(USER.uid), USER.name]);
    mkdirSync(join(folder, 'root/rollgate'));
  });
}

/** The same with Debian's own Node and npm. */
function nodeBase(suite) {
  return kept('systems', `${suite}-node`, (folder) => {
    copySystem(minimalBase(suite), folder);
    const install = 'apt-get install -y --no-install-recommends nodejs npm';
    const system = { folder, home: '/root', user: 'root' };
    const { status, output } = runIn(system, `apt-get update && ${install}`, { minutes: 20 });
    if (status !== 0) throw new Error(`${install} ended with ${status}:\n${output}`);
  });
}

/** The current files of this checkout, without ignored ones. */
function copyProject(folder) {
  mkdirSync(folder, { recursive: true });
  const list = must('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: project,
  });
  const files = list.split('\0').filter((name) => name && existsSync(join(project, name)));
  for (const name of new Set(files)) cpSync(join(project, name), join(folder, name));
}

/** Puts a Node with its npm, from packages of npm, into /opt/node. */
function copyNode(folder, { node, npmPackage }) {
  const target = join(folder, 'opt/node');
  mkdirSync(join(target, 'lib/node_modules'), { recursive: true });
  for (const name of ['bin', 'include']) {
    cpSync(join(node, name), join(target, name), { recursive: true });
  }
  cpSync(npmPackage, join(target, 'lib/node_modules/npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(target, 'bin/npm'));
}

/**
 * A new system in a folder, with this checkout in it.
 *
 * @param {string} suite Debian's name of the release
 * @param {{ node: string, npmPackage: string } | undefined} packages folders of npm's packages
 *   node-linux-* and npm; Debian's own Node and npm if undefined
 * @param {'root' | 'user'} user
 */
export function makeSystem(suite, packages, user) {
  removeInterrupted(systems);
  const folder = join(systems, `running.${process.pid}`);
  removeSystem(folder);
  copySystem(packages ? minimalBase(suite) : nodeBase(suite), folder);
  const home = user === 'root' ? '/root' : USER.home;
  if (packages) copyNode(folder, packages);
  copyProject(join(folder, home, 'rollgate'));
  if (user !== 'root') must('chroot', [folder, 'chown', '-R', `${USER.name}:`, home]);
  return { folder, home, user };
}

export function removeSystem(folder) {
  rmSync(folder, { recursive: true, force: true });
}

/** The command that runs a shell command in a system; all its processes end with it. */
export function enter({ folder, home, user }, command, { as = user, env = {} } = {}) {
  const caches = { apt: join(systems, 'apt') };
  for (const name of ['npm', 'ccache']) caches[name] = join(systems, `${name}-${as}`);
  for (const cache of Object.values(caches)) mkdirSync(cache, { recursive: true });
  if (as !== 'root') {
    for (const cache of [caches.npm, caches.ccache]) chownSync(cache, USER.uid, USER.uid);
  }
  const mounts = [
    'mount -t proc proc "$0/proc"',
    'mkdir -p "$0/dev/shm" "$0/var/cache/npm" "$0/var/cache/ccache"',
    'mount -t tmpfs -o size=64m,mode=1777 tmpfs "$0/dev/shm"', // as in a container
    `mount --bind "${caches.apt}" "$0/var/cache/apt/archives"`,
    `mount --bind "${caches.npm}" "$0/var/cache/npm"`,
    `mount --bind "${caches.ccache}" "$0/var/cache/ccache"`,
    // Without exec, because the change of user would clear the signal that ends the process with unshare.
    'chroot $1 "$0" /bin/sh -c "$2" || exit $?',
  ];
  const names = {
    HOME: home,
    PATH: '/opt/node/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
    LC_ALL: 'C.UTF-8',
    NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS ?? '',
    npm_config_registry: npm(['config', 'get', 'registry']).trim(),
    npm_config_cache: '/var/cache/npm',
    CCACHE_DIR: '/var/cache/ccache',
    npm_config_update_notifier: 'false',
    ...env,
  };
  const namespaces = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
  const userspec = as === 'root' ? '--userspec=0:0' : `--userspec=${USER.name}:${USER.name}`;
  const inside = `cd "$HOME/rollgate" && ${command}`;
  const args = [...namespaces, 'sh', '-ec', mounts.join('\n'), folder, userspec, inside];
  // The system's processes end with unshare, and unshare with this process, however it ends.
  return { command: 'setpriv', args: ['--pdeathsig', 'KILL', 'unshare', ...args], env: names };
}

/** Runs a shell command in the project's folder of a system; never throws. */
export function runIn(system, text, { minutes = 10, ...options } = {}) {
  const { command, args, env } = enter(system, text, options);
  const { status, signal, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    env,
    maxBuffer: 2 ** 28,
    timeout: minutes * 60_000,
    killSignal: 'SIGKILL',
  });
  return { status, signal: signal ?? undefined, output: `${stdout}${stderr}` };
}
