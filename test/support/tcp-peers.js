// Peers on loopback that misbehave as no Redis server does at will: for tests of what clients bear.
// In Jest all of them are closed when the test file ends.
'use strict';

const { once } = require('node:events');
const net = require('node:net');
const { valueReader } = require('./resp');

const HOST = '127.0.0.1';
const open = new Set();

/**
 * A server that does what `serve` does with each connection, on a free port of 127.0.0.1 or at another `place`.
 * `connections` counts those it ever accepted, `openConnections` those that are open.
 */
async function listen(serve, { host = HOST, port: wanted = 0 } = {}) {
  const sockets = new Set();
  let accepted = 0;
  const server = net.createServer({ noDelay: true }, (socket) => {
    accepted += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {}); // a client that goes away is no failure of the test
    serve(socket);
  });
  server.listen(wanted, host);
  await once(server, 'listening');
  const { port } = server.address();
  const peer = {
    port,
    url: `redis://${host}:${port}`,
    get connections() {
      return accepted;
    },
    get openConnections() {
      return sockets.size;
    },
    async close() {
      if (!open.delete(peer)) return;
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  open.add(peer);
  return peer;
}

/** Accepts, reads, and never answers. */
const silentPeer = (place) => listen((socket) => socket.resume(), place);

/** Listens no more. */
async function gonePeer() {
  const peer = await silentPeer();
  await peer.close();
  return peer;
}

/** Answers whatever it is sent with `bytes`. */
const garbagePeer = (bytes = 'HTTP/1.1 400 Bad Request\r\n\r\n\0\xff') =>
  listen((socket) => socket.on('data', () => socket.write(bytes)));

/**
 * Closes at once, or after it was sent `afterBytes`; with `reset` the client sees the connection
 * reset, not ended.
 */
const closingPeer = ({ afterBytes = 0, reset = false } = {}) =>
  listen((socket) => {
    let received = 0;
    const closeWhenDue = (chunk) => {
      received += chunk.length;
      if (received < afterBytes) return;
      if (reset) socket.resetAndDestroy();
      else socket.end();
    };
    socket.on('data', closeWhenDue);
    closeWhenDue('');
  });

/** Passes on what it is sent at once, and what `upstreamPort` replies byte by byte. */
const tricklingPeer = (upstreamPort) =>
  listen(async (socket) => {
    const upstream = net.connect(upstreamPort, HOST);
    socket.on('close', () => upstream.destroy());
    socket.pipe(upstream);
    try {
      for await (const chunk of upstream) {
        for (const byte of chunk) {
          socket.write(Buffer.of(byte));
          await new Promise(setImmediate);
        }
      }
      socket.end();
    } catch {
      socket.destroy(); // as the server behind it did
    }
  });

/**
 * Passes everything on to `upstreamPort` and back, except that what `from` ('server' or 'client') sends has
 * a fault in its byte number `at` of each connection: 'flip' changes one bit of it, 'close' closes the
 * connection instead of passing it on, 'stall' passes on nothing from there. heal() is for connections
 * after it. `passed` counts the bytes of all connections by sender.
 */
async function faultyPeer(upstreamPort, fault = {}) {
  let current = fault;
  const passed = { server: 0, client: 0 };
  const pass = (from, source, target, { kind, at }) => {
    let offset = 0;
    source.on('data', (chunk) => {
      const place = at - offset;
      const isHere = place >= 0 && place < chunk.length;
      offset += chunk.length;
      passed[from] += chunk.length;
      if (isHere && kind === 'flip') chunk[place] ^= 1 << (at % 8);
      if (kind === 'flip' || !(offset > at)) target.write(chunk);
      else if (isHere) target.write(chunk.subarray(0, place));
      if (isHere && kind === 'close') target.end();
    });
    source.on('error', () => {});
    source.on('close', () => target.end());
  };
  const peer = await listen((socket) => {
    const upstream = net.connect(upstreamPort, HOST);
    const faultOf = (from) => (current.from === from ? current : {});
    pass('server', upstream, socket, faultOf('server'));
    pass('client', socket, upstream, faultOf('client'));
  });
  const heal = () => {
    current = {};
  };
  return Object.assign(peer, { heal, passed });
}

/**
 * Answers each command with the bytes that `replyTo(words, socket)` gives, such as '+OK\r\n', or with
 * nothing if that is undefined. What is no command closes the connection.
 *
 * @param {(words: string[], socket: net.Socket) => string | Buffer | undefined} replyTo
 * @param {{ host?: string, port?: number }} [place]
 */
const scriptedPeer = (replyTo, place) =>
  listen((socket) => {
    const read = valueReader((words) => {
      const reply = replyTo(words, socket);
      if (reply !== undefined) socket.write(reply);
    });
    socket.on('data', (chunk) => {
      try {
        read(chunk);
      } catch (error) {
        socket.destroy(error);
      }
    });
  }, place);

globalThis.afterAll?.(() => Promise.all([...open].map((peer) => peer.close())));

/**
 * Sends a request target as it is, which HTTP clients would not. Resolves to the status and the body, of
 * which one without chunks is read.
 */
function sendTarget(port, target, method = 'GET') {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = net.connect(port, HOST);
    socket.setEncoding('latin1');
    socket.on('data', (part) => {
      text += part;
    });
    socket.on('error', reject);
    socket.on('close', () => {
      const [head, body] = text.split('\r\n\r\n');
      resolve({ status: Number(head.split(' ')[1]), body });
    });
    const lines = [`${method} ${target} HTTP/1.1`, 'Host: h', 'Connection: close', '', ''];
    socket.write(lines.join('\r\n'), 'latin1');
  });
}

module.exports = {
  closingPeer,
  faultyPeer,
  garbagePeer,
  gonePeer,
  listen,
  scriptedPeer,
  sendTarget,
  silentPeer,
  tricklingPeer,
};
