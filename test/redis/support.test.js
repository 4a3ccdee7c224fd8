// The servers and peers that the tests of Redis stand on do what they promise, and leave nothing behind.
'use strict';

const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const { startCluster } = require('../support/redis-cluster');
const { startRedis, stopRedis } = require('../support/redis-server');
const { runProgram } = require('../support/run-program');
const peers = require('../support/tcp-peers');
const { waitUntil } = require('../support/wait-until');

/** Sends text to a port and collects what comes back: whole text so far, and how it ended. */
function talkTo(port, text = '') {
  const socket = net.connect(port, '127.0.0.1');
  const heard = { socket, text: '', chunks: 0, ended: false, error: undefined };
  socket.on('data', (chunk) => {
    heard.text += chunk.toString('latin1');
    heard.chunks += 1;
  });
  socket.on('error', (error) => {
    heard.error = error.code;
  });
  socket.on('close', () => {
    heard.ended = true;
  });
  if (text) socket.write(text);
  return heard;
}

async function isRefused(port) {
  const heard = talkTo(port);
  await waitUntil('the connection has ended', () => heard.ended || heard.text);
  return heard.error === 'ECONNREFUSED';
}

/** Whether a process has ended, even if nobody took note yet (which leaves a zombie). */
function hasEnded(pid) {
  const status = `/proc/${pid}/stat`;
  if (fs.existsSync(status)) return / Z /.test(fs.readFileSync(status, 'utf8'));
  try {
    return !process.kill(pid, 0);
  } catch {
    return true;
  }
}

describe('a server', () => {
  test('answers commands, and rejects with what the server calls an error', async () => {
    const server = await startRedis({ args: ['--maxmemory', '8mb'] });
    expect(server.url).toBe(`redis://127.0.0.1:${server.port}`);
    expect(await server.command('SET', 'name', 'ü')).toBe('OK');
    expect(await server.command('GET', 'name')).toBe('ü');
    expect(await server.command('MGET', 'name', 'none')).toEqual(['ü', null]);
    expect(await server.command('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', '8388608']);
    expect(await server.command('INFO', 'server')).toContain(`process_id:${server.pid}`);
    await expect(server.command('INCR', 'name')).rejects.toMatchObject({
      name: 'ReplyError',
      message: expect.stringContaining('not an integer'),
    });
  });

  test('restarts on its port with nothing in it, running or stopped', async () => {
    const server = await startRedis();
    const { pid, port } = server;
    await server.command('SET', 'a', 1);
    await server.restart();
    expect(server.port).toBe(port);
    expect(server.pid).not.toBe(pid);
    expect(await server.command('GET', 'a')).toBeNull();
    await server.stop();
    expect(server.pid).toBeUndefined();
    await expect(server.command('PING')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    await server.restart();
    expect(await server.command('PING')).toBe('PONG');
  });

  test('answers nothing while it is frozen, and everything once it is thawed', async () => {
    const server = await startRedis();
    const socket = net.connect(server.port, '127.0.0.1');
    await once(socket, 'connect');
    await server.freeze();
    const reply = once(socket, 'data');
    socket.write('PING\r\n');
    const second = net.connect(server.port, '127.0.0.1');
    await once(second, 'connect'); // the system accepts on its behalf
    expect(socket.bytesRead).toBe(0);
    server.thaw();
    expect(String(await reply)).toBe('+PONG\r\n');
    socket.destroy();
    second.destroy();
  });

  test('frozen, it can still be stopped', async () => {
    const server = await startRedis();
    await server.freeze();
    await server.stop();
    expect(await isRefused(server.port)).toBe(true);
  });

  test('on a unix socket it has no port', async () => {
    const server = await startRedis({ unixSocket: true });
    expect(server.port).toBeUndefined();
    expect(server.url).toBe(`unix://${server.socketPath}`);
    expect(await server.command('CONFIG', 'GET', 'port')).toEqual(['port', '0']);
  });

  test('with a password it asks for it', async () => {
    const server = await startRedis({ password: 'a b' });
    expect(server.url).toBe(`redis://:a%20b@127.0.0.1:${server.port}`);
    expect(await server.command('PING')).toBe('PONG');
    const heard = talkTo(server.port, 'PING\r\n');
    await waitUntil('it answers', () => heard.text);
    expect(heard.text).toMatch(/^-NOAUTH/);
    heard.socket.destroy();
  });

  test('a port that is taken is an error if it was asked for', async () => {
    const { port } = await startRedis();
    await expect(startRedis({ port })).rejects.toThrow(`port ${port} is taken`);
  });

  test('what it does not understand is told', async () => {
    await expect(startRedis({ args: ['--nonsense', '1'] })).rejects.toThrow(/nonsense/);
  });

  test('many find a port at the same time', async () => {
    const servers = await Promise.all(Array.from({ length: 8 }, () => startRedis()));
    expect(new Set(servers.map(({ port }) => port)).size).toBe(8);
    await stopRedis(servers);
  });
});

describe('what is left behind', () => {
  test('after stopRedis, neither server nor folder', async () => {
    const server = await startRedis();
    const [, folder] = await server.command('CONFIG', 'GET', 'dir');
    expect(fs.existsSync(folder)).toBe(true);
    await stopRedis([server]);
    expect(fs.existsSync(folder)).toBe(false);
    expect(await isRefused(server.port)).toBe(true);
  });

  test.each([
    ['that comes to its end', ''],
    ['that exits', 'process.exit(0);'],
    ['that fails', 'throw new Error("on purpose");'],
    ['that is killed', 'process.kill(process.pid, "SIGKILL");'],
    [
      'that is killed with the server frozen',
      'await server.freeze(); process.kill(process.pid, 9);',
    ],
  ])('nothing of a program %s', async (_, end) => {
    const { stdout, stderr } = await runProgram(`
      const { startRedis } = require('./test/support/redis-server');
      (async () => {
        const server = await startRedis();
        const [, folder] = await server.command('CONFIG', 'GET', 'dir');
        require('node:fs').writeSync(1, JSON.stringify({ pid: server.pid, folder }));
        ${end}
      })();
    `);
    expect(stderr.replace(/.*on purpose[\s\S]*/, '')).not.toMatch(/Error/);
    const { pid, folder } = JSON.parse(stdout);
    await waitUntil(
      'its server and folder are gone',
      () => hasEnded(pid) && !fs.existsSync(folder),
    );
  });
});

describe('a cluster', () => {
  test('shares the slots among three, and a slot moves with its keys', async () => {
    const cluster = await startCluster();
    const [first, second, third] = cluster.nodes;
    expect(cluster.urls).toEqual(cluster.nodes.map(({ port }) => `redis://127.0.0.1:${port}`));
    expect(await cluster.ownerOf(0)).toBe(first);
    expect(await cluster.ownerOf(8191)).toBe(second);
    expect(await cluster.ownerOf(16_383)).toBe(third);

    const slot = await first.command('CLUSTER', 'KEYSLOT', '{b}');
    expect(await cluster.ownerOf(slot)).toBe(first);
    const keys = Array.from({ length: 250 }, (_, i) => `{b}${i}`);
    await first.command('MSET', ...keys.flatMap((key) => [key, key]));

    await cluster.beginMove(slot, first, third);
    await expect(first.command('GET', '{b}none')).rejects.toThrow(`ASK ${slot}`);
    expect(await cluster.moveKeys(slot, first, third)).toBe(250);
    await expect(first.command('GET', keys[0])).rejects.toThrow(`ASK ${slot}`);
    await cluster.endMove(slot, first, third);
    await expect(first.command('GET', keys[0])).rejects.toThrow(`MOVED ${slot}`);
    expect(await third.command('MGET', ...keys)).toEqual(keys);

    await cluster.moveSlot(slot, third, second);
    expect(await second.command('CLUSTER', 'COUNTKEYSINSLOT', slot)).toBe(250);
    await cluster.stop();
    expect(await Promise.all(cluster.nodes.map(({ port }) => isRefused(port)))).toEqual([
      true,
      true,
      true,
    ]);
  });

  test('with replicas it outlives the loss of a primary', async () => {
    const cluster = await startCluster({ replicas: 1 });
    const [first, second, , replicaOfFirst, replicaOfSecond] = cluster.nodes;
    expect(await cluster.failOver(first)).toBe(replicaOfFirst);
    expect(await cluster.ownerOf(0)).toBe(replicaOfFirst);
    expect((await first.command('ROLE'))[0]).toBe('slave');

    expect(await cluster.failOver(second, { kill: true })).toBe(replicaOfSecond);
    expect(await cluster.ownerOf(8191)).toBe(replicaOfSecond);
    await second.restart();
    await waitUntil('it is a replica', async () => (await second.command('ROLE'))[0] === 'slave');
    await cluster.settled();
    expect(await cluster.ownerOf(8191)).toBe(replicaOfSecond);
  });
});

describe('a peer', () => {
  test('that is silent takes what it is sent and says nothing', async () => {
    const peer = await peers.silentPeer();
    const heard = talkTo(peer.port);
    await new Promise((resolve) => heard.socket.write('PING\r\n'.repeat(1e5), resolve));
    expect(heard).toMatchObject({ text: '', ended: false });
    expect(peer).toMatchObject({ connections: 1, openConnections: 1 });
    await peer.close();
    await waitUntil('the connection has ended', () => heard.ended);
    expect(await isRefused(peer.port)).toBe(true);
  });

  test('that speaks something else answers no RESP', async () => {
    const peer = await peers.garbagePeer();
    const heard = talkTo(peer.port, 'PING\r\n');
    await waitUntil('it answers', () => heard.text);
    expect(heard.text).toMatch(/^HTTP/);
  });

  test.each([
    ['at once', {}, ''],
    ['after some bytes', { afterBytes: 12 }, 'PING\r\nPING\r\n'],
  ])('closes %s', async (_, options, text) => {
    const peer = await peers.closingPeer(options);
    const heard = talkTo(peer.port, text);
    await waitUntil('the connection has ended', () => heard.ended);
    expect(heard).toMatchObject({ text: '', error: undefined });
    expect(peer).toMatchObject({ connections: 1, openConnections: 0 });
  });

  test('closes with a reset if it is told to', async () => {
    const peer = await peers.closingPeer({ afterBytes: 6, reset: true });
    const heard = talkTo(peer.port, 'PING\r');
    await waitUntil('it has accepted', () => peer.openConnections === 1);
    expect(heard.ended).toBe(false);
    heard.socket.write('\n');
    await waitUntil('the connection has ended', () => heard.ended);
    expect(heard.error).toBe('ECONNRESET');
  });

  test('that trickles passes everything on, bit by bit', async () => {
    const server = await startRedis();
    const peer = await peers.tricklingPeer(server.port, { delayMs: 2 });
    const heard = talkTo(peer.port, 'SET a hello\r\nGET a\r\n');
    const expected = '+OK\r\n$5\r\nhello\r\n';
    await waitUntil('all has come', () => heard.text.length >= expected.length);
    expect(heard.text).toBe(expected);
    expect(heard.chunks).toBeGreaterThan(1);
    await server.stop();
    await waitUntil('the connection has ended', () => heard.ended);
  });

  test('that follows a script sees commands as words', async () => {
    const commands = [];
    const peer = await peers.scriptedPeer((words, socket) => {
      commands.push(words);
      if (words[0] === 'QUIT') socket.end('+OK\r\n');
      return { PING: '+ODD\r\n', GET: Buffer.from('$-1\r\n') }[words[0]];
    });
    const heard = talkTo(peer.port);
    const split = '*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$2\r\n\u00fc\r\n*1\r\n$4\r\nQUIT\r\n';
    for (const byte of Buffer.from(split)) heard.socket.write(Buffer.of(byte));
    await waitUntil('the connection has ended', () => heard.ended);
    expect(commands).toEqual([['PING'], ['GET', 'ü'], ['QUIT']]);
    expect(heard.text).toBe('+ODD\r\n$-1\r\n+OK\r\n');
  });
});
