// Debian's packages unpacked in a folder: nothing is installed on this machine. Takes apt, not root.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { kept } from '../caches.mjs';
import { must } from './commands.mjs';

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** The source of this machine's Debian packages. */
export function mirror() {
  const format = '$(ORIGIN) $(REPO_URI) $(CREATED_BY)';
  const uri = /^Debian (\S+) Packages$/m.exec(
    must('apt-get', ['indextargets', '--format', format]),
  )?.[1];
  if (!uri) throw new Error('this machine has no Debian mirror in its apt sources');
  return uri;
}

/**
 * Unpacks what a command of apt-get downloads, with a state of apt's own in which nothing is installed.
 *
 * @param {string} folder which is made
 * @param {string[]} command
 * @param {Record<string, string>} settings of apt
 */
export function unpackPackages(folder, command, settings) {
  const apt = join(folder, 'apt');
  const archives = join(apt, 'archives');
  for (const name of ['lists', 'archives']) {
    mkdirSync(join(apt, name, 'partial'), { recursive: true });
  }
  const all = {
    'Dir::State': apt,
    'Dir::State::Status': '/dev/null',
    'Dir::Cache': apt,
    'Acquire::Languages': 'none',
    'APT::Install-Recommends': 'false',
    'Debug::NoLocking': 'true',
    ...settings,
  };
  const options = Object.entries(all).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  must('apt-get', [...options, 'update']);
  must('apt-get', [...options, ...command], { cwd: archives });
  for (const name of readdirSync(archives).filter((file) => file.endsWith('.deb'))) {
    must('dpkg-deb', ['--extract', join(archives, name), folder]);
  }
  rmSync(apt, { recursive: true });
}

/** The folders of libraries in a folder that packages were unpacked to. */
function libraryFoldersIn(unpacked) {
  return ['lib', 'usr/lib'].flatMap((name) => {
    const folder = join(unpacked, name);
    const names = existsSync(folder) ? readdirSync(folder) : [];
    return names.filter((one) => /-linux-gnu/.test(one)).map((one) => join(folder, one));
  });
}

/** The dynamic linker among the libraries: it starts a program with them, whatever the machine has. */
function linkerIn(folders) {
  for (const folder of folders) {
    const name = readdirSync(folder).find((one) => one.startsWith('ld-linux'));
    if (name) return join(folder, name);
  }
  throw new Error(`no dynamic linker in ${folders}`);
}

/** Writes a script that becomes another program: `command` and the arguments of the script. */
export function writeProgram(file, command) {
  const words = command.map((word) => `'${word}'`).join(' ');
  const unfinished = `${file}.${process.pid}`; // another process may run it
  writeFileSync(unfinished, `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
  renameSync(unfinished, file);
  return file;
}

/**
 * A program of a package, of any release, with its own libraries.
 *
 * @param {string} packageName which is also the name of the program
 * @param {string[]} suites Debian's names of releases: the package is of the last one
 */
export function debianProgram(packageName, suites) {
  const newest = suites.at(-1);
  const folder = kept('programs', `${packageName}-${newest}`, (unfinished) => {
    const sources = join(unfinished, 'sources.list');
    const lines = suites.map((suite) => `deb [signed-by=${KEYRING}] ${mirror()} ${suite} main\n`);
    mkdirSync(unfinished);
    writeFileSync(sources, lines.join(''));
    const install = ['install', '--yes', '--download-only', '--target-release', newest];
    unpackPackages(unfinished, [...install, packageName], {
      'Dir::Etc::SourceList': sources,
      'Dir::Etc::SourceParts': '/dev/null',
      'Dir::Etc::Preferences': '/dev/null',
      'Dir::Etc::PreferencesParts': '/dev/null',
    });
  });
  const libraries = libraryFoldersIn(folder);
  return writeProgram(join(folder, packageName), [
    ...[linkerIn(libraries), '--library-path', libraries.join(':')],
    join(folder, 'usr/bin', packageName),
  ]);
}
