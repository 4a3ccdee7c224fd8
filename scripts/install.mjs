// npm runs this when the package is installed. If no prebuilt binary loads, it builds the addon
// from source, or prints what that needs; without the addon, rollgate runs as WebAssembly.
// `node scripts/install.mjs` does the same by hand. $npm_config_build_from_source forces a build,
// with this machine's hiredis; then, and with $ROLLGATE_BINDING=native, the installation fails
// without the addon.
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build, findNodeHeaders, root, treeOf } from './build.mjs';
import { commandsFor, nativeTools } from './lib/native-tools.mjs';

const sourceIsAsked = ['true', '1', 'rollgate'].includes(process.env.npm_config_build_from_source);
const addonIsWanted = sourceIsAsked || process.env.ROLLGATE_BINDING === 'native';
const isClone = existsSync(join(root, 'scripts/setup.mjs'));

/** Loads the addon in a new process; returns an error message, or what the addon lacks. */
const tryAddon = (env) => tryBinding({ ROLLGATE_BINDING: 'native', ...env });

/** Whether the WebAssembly module can be used. */
const wasmLoads = () => tryBinding({ ROLLGATE_BINDING: 'wasm' }).loads;

function tryBinding(env) {
  const program = `
    let addon;
    try {
      addon = require('./lib/native').loadBinding();
    } catch (error) {
      process.stderr.write(error.message);
      process.exit(1);
    }
    process.stdout.write(addon.createRedisClient ? '' : 'no Redis client');`;
  // These variables are for running applications, not for the installation.
  const ownAddon = { ROLLGATE_ADDON: '', ROLLGATE_PREBUILD: '' };
  const options = { cwd: root, encoding: 'utf8', env: { ...process.env, ...ownAddon, ...env } };
  const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', program], options);
  return { loads: status === 0, lacks: stdout, error: stderr };
}

/** The tools that a build needs and this machine lacks, with the commands that install them. */
function assertToolsAreHere() {
  // On Windows, CMake itself finds the compiler and its build tool.
  const lacking = nativeTools.filter(
    (tool) => !tool.found() && (process.platform !== 'win32' || tool.what.startsWith('CMake')),
  );
  const needed = lacking.filter((tool) => !tool.without);
  const headers = findNodeHeaders();
  if (needed.length === 0 && headers) return;

  const lines = ['the addon cannot be built from source, because this is missing:'];
  lines.push(...needed.map(({ what }) => `  - ${what}`));
  if (!headers) lines.push("  - Node's headers");
  const commands = commandsFor(lacking);
  if (needed.length > 0 && commands.length > 0) {
    lines.push('This installs it (with what the native Redis client takes):');
    lines.push(...commands.map((command) => `  ${command}`));
  }
  if (!headers) {
    lines.push(
      "Node's headers come with this (without those that the native Redis client takes):",
      '  npm install node-api-headers',
      `or all of them in ${process.release.headersUrl};`,
      'unpack it and set npm_config_nodedir to the folder that comes out.',
    );
  }
  lines.push('Then install rollgate again.');
  throw new Error(lines.join('\n'));
}

/** An addon that was built here is loaded before a prebuilt binary. */
function removeBuild() {
  rmSync(join(root, 'build'), { recursive: true, force: true });
}

function buildFromSource() {
  assertToolsAreHere();
  removeBuild(); // it may be for another Node or hiredis
  try {
    build(['addon']);
  } catch (error) {
    const tools = nativeTools.map(({ what, without }) => (without ? `${what} (optional)` : what));
    const commands = commandsFor(nativeTools).map((command) => `\n  ${command}`);
    throw new Error(
      `building from source failed (${error.message}; the reason stands above).\n` +
        `It takes ${tools.join(', ')}${commands.length > 0 ? ':' : ''}${commands.join('')}`,
    );
  }
  const { loads, lacks, error } = tryAddon();
  if (!loads) throw new Error(`what was built does not load:\n${error}`);
  if (!isClone) rmSync(treeOf('release'), { recursive: true });
  console.log(`rollgate: built from source${lacks && `, with ${lacks}: hiredis was not found`}`);
}

function main() {
  // In a clone, npm start, npm test and so on build, not `npm ci`.
  if (isClone && process.env.npm_lifecycle_event === 'install') return;
  if (process.env.ROLLGATE_BINDING === 'wasm' && wasmLoads()) return;
  const prebuilt = !sourceIsAsked && tryAddon({ PREBUILDS_ONLY: '1' });
  if (prebuilt.loads) {
    if (!tryAddon().loads) removeBuild();
    return;
  }
  try {
    buildFromSource();
  } catch (error) {
    const runtime = `${process.platform}-${process.arch}, Node ${process.versions.node}`;
    if (prebuilt) {
      const places = prebuilt.error.split('\n').filter((line) => line.startsWith('- '));
      const tried = places.join('\n') || prebuilt.error;
      console.error(`rollgate: no prebuilt binary loads here (${runtime}):\n${tried}`);
    }
    console.error(`rollgate: ${error.message}`);
    if (!addonIsWanted && wasmLoads()) {
      console.error(
        "rollgate: it runs as WebAssembly here, without 'shared' and the native Redis client",
      );
    } else {
      process.exitCode = 1;
    }
  }
}

main();
