// Express servers behind each middleware, in processes of their own, and a client that keeps them busy.

const { fork } = require('node:child_process');
const { once } = require('node:events');
const http = require('node:http');
const express = require('express');
const { SUBJECTS, createMiddleware } = require('./middleware-subjects');

const CONNECTIONS = 16;
const WARM_UP_REQUESTS = 5000;

/** Starts a server for each subject; `cpuOf` gives the ns of CPU it needs for each request. */
async function serveAndAsk(options) {
  const servers = {};
  for (const subject of SUBJECTS) {
    const child = fork(__filename, [subject, JSON.stringify(options)]);
    const [port] = await once(child, 'message');
    const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    servers[subject] = { child, port, agent };
  }

  async function cpuOf(subject, requests) {
    const { child, port, agent } = servers[subject];
    const before = await cpuUsageOf(child);
    let left = requests;
    const askOnAndOn = async () => {
      while (left-- > 0) await ask(port, agent);
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, askOnAndOn));
    return ((await cpuUsageOf(child)) - before) / requests;
  }

  async function close() {
    for (const { child, agent } of Object.values(servers)) {
      agent.destroy();
      child.disconnect();
      await once(child, 'exit');
    }
  }

  for (const subject of SUBJECTS) await cpuOf(subject, WARM_UP_REQUESTS);
  return { cpuOf, close };
}

function ask(port, agent) {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, agent }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`answered ${response.statusCode}`));
      response.resume();
      response.on('end', resolve);
    });
    request.on('error', reject);
  });
}

async function cpuUsageOf(child) {
  child.send('cpuUsage');
  const [{ user, system }] = await once(child, 'message');
  return (user + system) * 1000;
}

/** The server's side. */
function serve(subject, options) {
  const app = express();
  app.use(createMiddleware(subject, options));
  app.get('/', (_req, res) => res.send('passed'));
  const server = app.listen(0, '127.0.0.1', () => process.send(server.address().port));
  process.on('message', () => process.send(process.cpuUsage()));
  process.on('disconnect', () => process.exit(0));
}

if (require.main === module) serve(process.argv[2], JSON.parse(process.argv[3]));

module.exports = { serveAndAsk };
