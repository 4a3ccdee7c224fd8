// Programs of Debian's packages, of any release, each with its own libraries in a folder. Takes apt, not root.
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeOnce, mirror, must } from './debian-root.mjs';
import { cacheFolder } from './npm-folder.mjs';

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Downloads a package and all that it depends on, as if nothing were installed; gives the files. */
function download(folder, packageName, suites) {
  const inFolder = (name) => join(folder, 'apt', name);
  for (const name of ['lists/partial', 'archives/partial']) {
    mkdirSync(inFolder(name), { recursive: true });
  }
  const sources = suites.map((suite) => `deb [signed-by=${KEYRING}] ${mirror()} ${suite} main\n`);
  writeFileSync(inFolder('sources.list'), sources.join(''));
  writeFileSync(inFolder('status'), '');
  const settings = {
    'Dir::Etc::SourceList': inFolder('sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    'Dir::Etc::Preferences': '/dev/null',
    'Dir::Etc::PreferencesParts': '/dev/null',
    'Dir::State::Lists': inFolder('lists'),
    'Dir::State::Status': inFolder('status'),
    'Dir::Cache::Archives': inFolder('archives'),
    'Dir::Cache::PkgCache': '',
    'Dir::Cache::SrcPkgCache': '',
    'APT::Install-Recommends': 'false',
    'Debug::NoLocking': 'true',
  };
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
  must('apt-get', [...options, 'update']);
  const newest = ['--target-release', suites.at(-1)];
  must('apt-get', [...options, 'install', '--yes', '--download-only', ...newest, packageName]);
  const names = readdirSync(inFolder('archives')).filter((name) => name.endsWith('.deb'));
  return names.map((name) => join(inFolder('archives'), name));
}

/** The folders of libraries, in a folder that packages were unpacked to. */
function libraryFoldersOf(unpacked) {
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

/**
 * The path of a script that becomes the program. It is downloaded once and kept with what the scripts keep.
 *
 * @param {string} packageName which is also the name of the program
 * @param {string[]} suites Debian's names of releases: the package is of the last one
 */
export function debianProgram(packageName, suites) {
  const name = `${packageName}-${suites.at(-1)}`;
  const folder = makeOnce(join(cacheFolder, 'programs', name), (unfinished) => {
    for (const file of download(unfinished, packageName, suites)) {
      must('dpkg-deb', ['--extract', file, join(unfinished, 'unpacked')]);
    }
    rmSync(join(unfinished, 'apt'), { recursive: true });
  });
  const unpacked = join(folder, 'unpacked');
  const folders = libraryFoldersOf(unpacked);
  const command = [
    ...[linkerIn(folders), '--library-path', folders.join(':')],
    join(unpacked, 'usr/bin', packageName),
  ];
  const script = join(folder, packageName);
  const words = command.map((word) => `'${word}'`).join(' ');
  writeFileSync(script, `#!/bin/sh\nexec ${words} "$@"\n`);
  chmodSync(script, 0o755);
  return script;
}
