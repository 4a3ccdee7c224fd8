// Installs system packages with apt if that is allowed; else prints the command.
import { spawnSync } from 'node:child_process';
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
  const settings = ['DEBIAN_FRONTEND=noninteractive', 'LC_ALL=C'];
  const apt = ['env', ...settings, 'apt-get', '-o', 'DPkg::Lock::Timeout=300'];
  const names = tools.flatMap((tool) => tool.apt);
  step(`installing ${names.join(', ')} with apt-get`, 'apt', (log) => {
    const asRoot = (...words) => {
      const [command, ...args] = [...prefix, ...words];
      run(command, args, log);
    };
    try {
      asRoot(...apt, 'update');
    } catch {} // fails if one of many sources does; the installation shows whether it was needed
    asRoot(...apt, 'install', '-y', '--no-install-recommends', ...names);
    for (const { service } of tools.filter((tool) => tool.service)) {
      asRoot('update-rc.d', service, 'disable');
      asRoot('invoke-rc.d', service, 'stop');
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
