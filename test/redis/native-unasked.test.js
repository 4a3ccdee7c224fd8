// Servers that say what nobody has asked for: the native client leaves them, and the process lives on.
'use strict';

const { askProgram } = require('../support/run-program');
const peers = require('../support/tcp-peers');

/** Tries a limiter again and again, and then tells how it went. */
const programAt = (url) => `
  const { setTimeout: pause } = require('node:timers/promises');
  const limiter = require('rollgate')({ redis: '${url}', interval: 1000, maxInInterval: 2 });
  (async () => {
    const outcomes = [];
    for (let i = 0; i < 3; i++) {
      outcomes.push(await limiter('a').catch(({ code }) => code));
      await pause(100);
    }
    console.log(JSON.stringify(outcomes));
  })();
`;

const UNASKED = [
  '+OK\r\n',
  ':1\r\n',
  '$2\r\nhi\r\n',
  '$-1\r\n',
  '*1\r\n+a\r\n',
  '*-1\r\n',
  '-ERR\r\n',
];

test.each(UNASKED.map((unasked) => [JSON.stringify(unasked), unasked]))(
  '%s behind an answer, or some time later',
  async (_name, unasked) => {
    const [atOnce, later] = await Promise.all([
      peers.scriptedPeer(() => `*1\r\n:0\r\n${unasked}`),
      peers.scriptedPeer((_words, socket) => {
        setTimeout(() => socket.write(unasked), 20);
        return '*1\r\n:0\r\n';
      }),
    ]);
    expect(await askProgram(programAt(atOnce.url))).toEqual([0, 0, 0]);
    expect(await askProgram(programAt(later.url))).toEqual([0, 0, 0]);
    expect(atOnce.connections).toBeGreaterThan(2);
    expect(later.connections).toBeGreaterThan(2);
  },
);
