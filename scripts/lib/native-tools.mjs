// The tools that a build of the addon needs, with the names of their packages; ships in the package.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { onPath } from '../build.mjs';

/** Whether a header is in one of the usual folders. */
export const header = (name) => () =>
  ['/usr/include', '/usr/local/include', '/opt/homebrew/include'].some((folder) =>
    existsSync(join(folder, name)),
  );

/** A package that Debian, Alpine and Fedora call by one name. */
export const everywhere = (name) => ({ apt: name, apk: name, dnf: name });

const compiler = {
  what: 'a C++20 compiler (g++ 11, clang 14 or newer)',
  ...everywhere('g++'),
  dnf: 'gcc-c++',
  found: () => process.env.CXX || onPath('c++', 'g++', 'clang++'),
};
const cmake = {
  what: 'CMake 3.18 or newer',
  ...everywhere('cmake'),
  brew: 'cmake',
  found: () => onPath('cmake'),
};
const make = {
  what: 'make or Ninja',
  ...everywhere('make'),
  found: () => onPath('ninja', 'make'),
};
const hiredis = {
  what: 'hiredis',
  ...{ apt: 'libhiredis-dev', apk: 'hiredis-dev', dnf: 'hiredis-devel', brew: 'hiredis' },
  found: header('hiredis/hiredis.h'),
  without: 'the addon is built without its own Redis client',
};
const pkgConfig = {
  what: 'pkg-config',
  ...{ apt: 'pkg-config', apk: 'pkgconf', dnf: 'pkgconf-pkg-config', brew: 'pkgconf' },
  found: () => onPath('pkg-config'),
  without: 'the addon is built without its own Redis client',
};

/** found() must be cheap: it runs before every start. A tool with `without` is optional. */
export const buildTools = [cmake, make];
export const nativeTools = [compiler, ...buildTools, hiredis, pkgConfig];

const managers = [
  ['apt', 'apt-get', 'apt-get update && apt-get install -y --no-install-recommends'],
  ['apk', 'apk', 'apk add'],
  ['dnf', 'dnf', 'dnf install -y'],
  ['brew', 'brew', 'brew install'],
];

/** The commands that install these tools here; empty if no package manager is known. */
export function commandsFor(tools) {
  const [manager, , install] = managers.find(([, command]) => onPath(command)) ?? [];
  const names = tools.flatMap((tool) => tool[manager] ?? []);
  // A Mac has its compiler and make from Apple.
  const apples = manager === 'brew' && tools.some((tool) => !tool.brew);
  return [
    ...(apples ? ['xcode-select --install'] : []),
    ...(names.length > 0 ? [`${install} ${names.join(' ')}`] : []),
  ];
}
