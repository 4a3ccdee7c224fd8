// Cross-builds for Windows with Debian's MinGW, and runs the tests under Wine.
import { join } from 'node:path';
import { prebuildOf, root, treeOf } from '../../build.mjs';
import { crossBuild, nodeFor, runFor } from './build.mjs';

/** Debian's package wine64 has no link to it in a folder of PATH. */
export const WINE = '/usr/lib/wine/wine64';

/** Node's standard streams must be files there; pipes fail. */
function wine(log, command, env) {
  runFor(log, [WINE, ...command], {
    WINEPREFIX: join(root, 'build/wine'),
    WINEDEBUG: '-all',
    WINEDLLOVERRIDES: 'mscoree,mshtml,winemenubuilder.exe=', // no browser, no .NET, no menus
    ...env,
  });
}

function buildParts(log) {
  const headers = `-DNODE_INCLUDE_DIR=${join(root, 'node_modules/node-api-headers/include')}`;
  const settings = [headers, '-DROLLGATE_HIREDIS=OFF'];
  crossBuild('windows', ['addon', 'tests'], { settings, output: log });
}

const cpp = (layer) => (log) => wine(log, [join(treeOf('windows'), `${layer}_test.exe`)]);

/** A program of test/runtimes on Node for Windows, with the addon. */
function program(file, ...args) {
  return (log) => {
    const node = join(nodeFor('win-x64'), 'bin/node.exe');
    wine(log, [node, '--expose-gc', `test/runtimes/${file}.mjs`, ...args], {
      NODE_SKIP_PLATFORM_CHECK: '1', // Wine says that it is Windows 7
      RUNTIME: JSON.stringify([node]),
      REDIS_URL: 'redis://127.0.0.1:1', // no server is asked
      ROLLGATE_BINDING: 'native',
      ROLLGATE_PREBUILD: prebuildOf('windows'),
    });
  };
}

export const steps = {
  build: buildParts,
  core: cpp('core'),
  memory: cpp('memory'),
  'node-loading': program('alone', 'loading'),
  'node-memory': program('alone', 'memory'),
  'node-dropped': program('alone', 'dropped'),
  'node-wait': program('alone', 'wait'),
  'node-threads': program('together', 'worker-threads'),
  'node-exit': program('together', 'exit'),
  'node-kv': program('together', 'kv', 'plain'),
  'node-express': program('together', 'middleware', 'express'),
  'node-shared': program('together', 'shared'), // refused
  'node-redis': program('together', 'redis', 'native'), // refused
};
