// Installs system packages with apt if that is allowed; else prints the command.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { onPath } from '../build.mjs';
import { commandsFor } from './native-tools.mjs';
import { run, step } from './step.mjs';

/** The prefix of a command that must run as root; undefined if that is not allowed. */
function rootPrefix() {
  if (process.getuid() === 0) return [];
  const allowed = onPath('sudo') && spawnSync('sudo', ['-n', 'true']).status === 0;
  return allowed ? ['sudo', '-n'] : undefined;
}

function aptInstall(tools, prefix) {
  const apt = ['env', 'DEBIAN_FRONTEND=noninteractive', 'LC_ALL=C', 'apt-get'];
  const commandOf = (...args) => [...prefix, ...apt, '-o', 'DPkg::Lock::Timeout=300', ...args];
  const names = tools.flatMap((tool) => tool.apt);
  const install = ['install', '-y', '--no-install-recommends', ...names];
  const asRoot = (log, [command, ...args]) => run(command, args, log);

  /** Fails if one of many sources fails; the installation then shows whether that one was needed. */
  const update = (log) => {
    try {
      asRoot(log, commandOf('update'));
    } catch {}
  };

  /** apt's summary of what it would install; undefined if its lists of packages are missing or old. */
  const sizes = () => {
    const [command, ...args] = commandOf(...install, '--print-uris');
    const { status, stdout } = spawnSync(command, args, { encoding: 'utf8' });
    if (status !== 0) return undefined;
    const [, count] = /(\d+) newly installed/.exec(stdout) ?? [];
    const [, download] = /Need to get (.*) of archives/.exec(stdout) ?? [];
    const [, disk] = /After this operation, (.*) of additional disk space/.exec(stdout) ?? [];
    return `${count} packages, ${download} to download, ${disk ?? 'nothing'} on disk`;
  };

  const lists = '/var/lib/apt/lists';
  const isListed =
    existsSync(lists) && readdirSync(lists).some((name) => name.includes('_Packages'));
  let size = isListed && sizes();
  if (!size) {
    step('updating the list of system packages with apt-get', 'apt-update', update);
    size = sizes() ?? 'of unknown size';
  }
  step(`installing ${names.join(', ')} with apt-get (${size})`, 'apt', (log) => {
    try {
      asRoot(log, commandOf(...install));
    } catch {
      update(log); // the lists may name packages that are gone
      asRoot(log, commandOf(...install));
    }
    for (const { service } of tools.filter((tool) => tool.service)) {
      asRoot(log, [...prefix, 'update-rc.d', service, 'disable']);
      asRoot(log, [...prefix, 'invoke-rc.d', service, 'stop']);
    }
  });
}

/**
 * Installs the missing ones of these tools. A tool with `without` is optional: if it cannot be
 * installed, one line says what is lost.
 *
 * @param {object[]} tools as in native-tools.mjs; those with `cmakeFetches` are needed for apt only
 */
export function installSystemPackages(tools) {
  const apt = onPath('apt-get');
  const missing = tools.filter((tool) => !tool.found() && (apt || !tool.cmakeFetches));
  if (missing.length === 0) return;
  const needed = missing.filter((tool) => !tool.without);
  const optional = missing.filter((tool) => tool.without);
  const prefix = apt && rootPrefix();
  if (prefix) {
    try {
      aptInstall(missing, prefix);
    } catch (error) {
      if (optional.length === 0) throw error;
      console.warn(`setup: ${error.message}`);
      if (needed.length > 0) aptInstall(needed, prefix);
    }
  } else if (needed.length > 0) {
    const commands = commandsFor(missing);
    const names = missing.map((tool) => `  - ${tool.what}`).join('\n');
    throw new Error(
      commands.length > 0
        ? `system packages are missing. Please run this as root, then try again:\n  ${commands.join('\n  ')}`
        : `please install this, then try again:\n${names}`,
    );
  }
  const lost = optional.filter((tool) => !tool.found());
  for (const without of new Set(lost.map((tool) => tool.without))) {
    const names = lost.filter((tool) => tool.without === without).map((tool) => tool.what);
    const commands = commandsFor(lost).map((command) => ` (as root: ${command})`);
    console.log(`setup: ${names.join(' and ')} not found, so ${without}${commands.join('')}`);
  }
}
