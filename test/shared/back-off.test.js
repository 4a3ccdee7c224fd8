// The back-off of shared memory is a real pause on each architecture that the package is built for.
'use strict';

const { spawnSync } = require('node:child_process');
const path = require('node:path');

const ROOT = path.join(__dirname, '..', '..');
const SOURCE = `
  #include "shared/pause.h"
  void BackOff() { for (int i = 0; i < 512; ++i) rollgate::shared::Pause(); }
`;

const ARCHITECTURES = [
  {
    name: 'x64',
    instruction: 'pause|rep nop', // one instruction with two names
    compilers: [['x86_64-linux-gnu-g++'], ['clang++', '--target=x86_64-linux-gnu']],
  },
  {
    name: 'arm64',
    instruction: 'isb',
    compilers: [['aarch64-linux-gnu-g++'], ['clang++', '--target=aarch64-linux-gnu']],
  },
];

/** The assembly of `SOURCE`, by the first of these compilers that is installed; undefined without any. */
function assemblyBy(compilers) {
  const options = ['-std=c++20', '-O3', '-I', 'src', '-S', '-x', 'c++', '-', '-o', '-'];
  for (const [command, ...flags] of compilers) {
    const run = spawnSync(command, [...flags, ...options], {
      cwd: ROOT,
      input: SOURCE,
      encoding: 'utf8',
    });
    if (run.error?.code === 'ENOENT') continue;
    if (run.status !== 0) throw new Error(`${command}: ${run.error ?? run.stderr}`);
    return run.stdout;
  }
  return undefined;
}

describe.each(ARCHITECTURES)('$name', ({ instruction, compilers }) => {
  const isInstalled = ([command]) => spawnSync(command, ['--version']).error === undefined;
  const missing = compilers.some(isInstalled)
    ? ''
    : `: skipped, needs ${compilers.map(([command]) => command).join(' or ')}`;

  (missing ? test.skip : test)(`a loop of pauses keeps its instruction${missing}`, () => {
    const loop = new RegExp(
      `^(\\.L\\w+):(?:.*\\n)*?\\s(?:${instruction})\\n(?:.*\\n)*?.*\\1$`,
      'm',
    );
    expect(assemblyBy(compilers)).toMatch(loop);
  });
});
