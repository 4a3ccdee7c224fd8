// Sends a request target as it is, which clients proper would not.
'use strict';

const net = require('node:net');

/** Resolves to status and body, of which one without chunks is read. */
function sendTarget(port, target, method = 'GET') {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = net.connect(port, '127.0.0.1');
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

module.exports = { sendTarget };
