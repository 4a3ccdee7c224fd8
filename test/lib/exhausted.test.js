// A log that memory has no room for is an error with a code; the process and the limiter live on.
'use strict';

const path = require('node:path');
const { spawnSync } = require('node:child_process');

const PROGRAM = `
  const RateLimiter = require('rollgate');
  const limiter = RateLimiter({ interval: 1000, maxInInterval: 2 ** 31 });
  const codes = [];
  const attempt = (id) => {
    try {
      limiter.attempt(id, { cost: 2 ** 31 - 1 });
    } catch (error) {
      codes.push(error.code);
    }
  };
  attempt('new');
  const afterNew = limiter.stats().keys;
  limiter('known');
  attempt('known');
  console.log(JSON.stringify({ codes, afterNew, used: 2 ** 31 - limiter.peek('known').actionsLeft }));
`;

const canLimitMemory = process.platform === 'linux' && !process.env.ROLLGATE_SANITIZED;

(canLimitMemory ? test : test.skip)('an attempt beyond all memory records nothing', () => {
  // Six gigabytes of address space, of which Node itself takes one: the log would need eight.
  const { stdout, stderr } = spawnSync(
    'sh',
    ['-c', 'ulimit -v 6000000 && exec "$0" -e "$1"', process.execPath, PROGRAM],
    { cwd: path.join(__dirname, '../..'), encoding: 'utf8' },
  );
  expect(stderr).toBe('');
  // The peek would be the second action of 'known': the attempt that failed is not among them.
  expect(JSON.parse(stdout)).toEqual({
    codes: ['ERR_ROLLGATE_MEMORY', 'ERR_ROLLGATE_MEMORY'],
    afterNew: 0,
    used: 2,
  });
});
