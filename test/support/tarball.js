// The package as it is published, and empty folders to install it in, without the network.
'use strict';

const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const ROOT = path.join(__dirname, '..', '..');
const MANIFEST = require('../../package.json');

const folders = [];

/** A promise of the tarballs that `install` needs besides. */
let dependencies;

/** An empty folder that goes with `removeFolders`, with a space in its name, as many a user's have. */
function emptyFolder() {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'rollgate package-'));
  folders.push(folder);
  return folder;
}

function removeFolders() {
  for (const folder of folders.splice(0)) fs.rmSync(folder, { recursive: true, force: true });
  dependencies = undefined;
}

/** Runs Node on a file; `env` is the whole environment. */
async function runNode(args, { cwd, env = process.env }) {
  const child = spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8');
    child[name].on('data', (text) => {
      output[name] += text;
    });
  }
  const [code] = await once(child, 'close');
  return { code, ...output };
}

async function mustRun(args, options) {
  const { code, stdout, stderr } = await runNode(args, options);
  if (code !== 0) throw new Error(`node ${args.join(' ')} ended with ${code}: ${stderr}${stdout}`);
  return stdout;
}

function onPath(name) {
  const places = process.env.PATH.split(path.delimiter).map((folder) => path.join(folder, name));
  return places.find((place) => fs.existsSync(place));
}

/** The program behind the command npm. */
function npmProgram() {
  const given = process.env.npm_execpath; // set where npm runs the tests
  if (given?.endsWith('npm-cli.js')) return given;
  const beside = path.join(path.dirname(process.execPath), 'node_modules/npm/bin/npm-cli.js');
  return fs.existsSync(beside) ? beside : fs.realpathSync(onPath('npm'));
}

/** A folder for PATH with a shell, Node and nothing that could build; apt-get is there by name. */
function pathWithoutTools() {
  const folder = emptyFolder();
  fs.symlinkSync('/bin/sh', path.join(folder, 'sh'));
  for (const name of ['node', 'apt-get']) fs.symlinkSync(process.execPath, path.join(folder, name));
  return folder;
}

/** An environment in which npm finds no settings, no cache and no registry. */
function isolated(PATH, env) {
  const home = emptyFolder();
  return {
    PATH,
    HOME: home,
    npm_config_cache: path.join(home, 'cache'),
    npm_config_offline: 'true',
    npm_config_audit: 'false',
    npm_config_fund: 'false',
    npm_config_update_notifier: 'false',
    ...env,
  };
}

async function pack(from, to) {
  const args = [npmProgram(), 'pack', '--json', '--ignore-scripts', `--pack-destination=${to}`];
  const [{ filename, files }] = JSON.parse(await mustRun(args, { cwd: from }));
  return { file: path.join(to, filename), contents: files.map((file) => file.path) };
}

/**
 * Packs what a fresh clone would; `prebuilt` with the binary for this machine.
 *
 * @returns {Promise<{ file: string, contents: string[] }>}
 */
async function packRollgate({ prebuilt }) {
  const clone = emptyFolder();
  const included = MANIFEST.files.filter((pattern) => !pattern.startsWith('!'));
  const named = included.map((pattern) => pattern.split('/')[0]);
  const wanted = new Set(['.gitignore', 'package.json', 'README.md', 'LICENSE', ...named]);
  wanted.delete('prebuilds');
  for (const name of wanted) {
    fs.cpSync(path.join(ROOT, name), path.join(clone, name), { recursive: true });
  }
  if (prebuilt) {
    const program = path.join(ROOT, 'scripts/prebuild.mjs');
    const into = `--into=${path.join(clone, 'prebuilds')}`;
    await mustRun([program, into, '--unchecked'], { cwd: ROOT });
  }
  return pack(clone, emptyFolder());
}

/** The names of the packages that these need, and their own. */
function withDependencies(names) {
  const all = new Set(names);
  for (const name of all) {
    const { dependencies: own = {} } = require(`${name}/package.json`);
    for (const dependency of Object.keys(own)) all.add(dependency);
  }
  return [...all];
}

/** The packages that are installed with this one. */
const DEPENDENCIES = withDependencies(Object.keys(MANIFEST.dependencies));

/** Their tarballs. */
async function packDependencies() {
  const to = emptyFolder();
  const packed = DEPENDENCIES.map((name) => pack(path.join(ROOT, 'node_modules', name), to));
  return (await Promise.all(packed)).map(({ file }) => file);
}

/**
 * Installs a tarball in an empty folder. npm gets its dependencies as tarballs too, for there is no
 * registry.
 *
 * @returns {Promise<{ code: number, stdout: string, stderr: string, app: string }>}
 */
async function install(tarball, { PATH, env, flags = [] }) {
  const app = emptyFolder();
  fs.writeFileSync(path.join(app, 'package.json'), '{}');
  dependencies ??= packDependencies();
  const args = [npmProgram(), 'install', ...flags, ...(await dependencies), tarball.file];
  return { ...(await runNode(args, { cwd: app, env: isolated(PATH, env) })), app };
}

module.exports = {
  DEPENDENCIES,
  emptyFolder,
  install,
  packRollgate,
  pathWithoutTools,
  removeFolders,
  runNode,
};
