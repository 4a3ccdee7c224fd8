// The recipe for a gateway to a language model does what docs/recipes.md promises.
'use strict';

const { once } = require('node:events');
const http = require('node:http');
const { inTurn } = require('../middleware/apps');
const { waitUntil } = require('../support/outcome');
const { blocksByHeading, blocksOf, load, withServer } = require('../support/page-programs');

const PAGE = 'docs/recipes.md';
const [CODE] = blocksByHeading(PAGE).get('A gateway to a language model');
const PRINTED = blocksOf(PAGE, 'text').find((text) => text.includes('streams'));
const NOTHING_HELD = { keys: 0, held: 0, leaked: 0, waiting: 0 };
const times = (count, item) => Array(count).fill(item);

const servers = [];
afterEach(async () => {
  for (const server of servers.splice(0).reverse()) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function listen(server) {
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${server.address().port}`;
}

/** A model whose answers the test writes: `asked` has their responses, `open` says how many are not closed. */
async function startModel() {
  const model = { asked: [], prompts: [], open: 0, write: () => {} };
  const server = http.createServer(async (req, res) => {
    model.open += 1;
    res.once('close', () => (model.open -= 1));
    const chunks = await req.toArray();
    model.prompts.push(JSON.parse(Buffer.concat(chunks)));
    model.asked.push(res);
    model.write(res);
  });
  model.url = await listen(server);
  return model;
}

const codeFor = (model) => CODE.replace('http://127.0.0.1:8080', model.url);
const lines = (count) => 'token\n'.repeat(count);

/** What a client sends. */
const chat = (signal, { key = 'key-of-ada', prompt = 'hi' } = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-api-key': key },
  body: JSON.stringify({ prompt }),
  signal,
});

describe('in this process', () => {
  let model;
  let gateway;
  let log;
  let errors;
  let url;

  async function start(change = (code) => code) {
    model = await startModel();
    const printed = []; // requests of an earlier test may still end
    log = printed;
    errors = [];
    const console = { log: (line) => printed.push(line), error: (line) => errors.push(line) };
    gateway = load(change(codeFor(model)), 'app, streams, tokens', { console });
    url = `${await listen(http.createServer(gateway.app))}/chat`;
  }
  beforeEach(() => start());

  /** A client that has got this many tokens; `leave()` closes its connection. */
  async function startClient(count, options) {
    const leaving = new AbortController();
    const asked = model.asked.length;
    const answer = fetch(url, chat(leaving.signal, options));
    answer.catch(() => {}); // it leaves
    const leave = () => leaving.abort();
    await waitUntil('the model is asked', () => model.asked.length > asked);
    if (count === 0) return { leave };
    model.asked[asked].write(lines(count));
    const reader = (await answer).body.getReader();
    let text = '';
    while (text.length < lines(count).length) {
      text += Buffer.from((await reader.read()).value);
    }
    return { leave, reader, text };
  }

  const used = (customer = 'ada') => gateway.tokens.usage(customer).used;
  const logged = (count) => waitUntil('the request has ended', () => log.length === count);

  test('passes the answer on, and counts its tokens', async () => {
    model.write = (res) => res.end(lines(40));
    const answer = await fetch(url, chat());
    expect([answer.status, await answer.text()]).toEqual([200, lines(40)]);
    await logged(1);
    expect(log).toEqual(['ada: 42 tokens, 0 streams']);
    expect(model.prompts).toEqual([{ prompt: 'hi', maxTokens: 2000 }]);
    expect([used(), used('bob')]).toEqual([42, 0]);
    expect(gateway.streams.stats()).toMatchObject(NOTHING_HELD);
  });

  test('a client that leaves in the middle ends the stream of the model, and nothing is held', async () => {
    const client = await startClient(10);
    expect(client.text).toBe(lines(10));
    expect([used(), gateway.streams.usage('ada').used, model.open]).toEqual([2002, 1, 1]);
    client.leave();
    await logged(1);
    expect(`${log[0]}\n`).toBe(PRINTED);
    expect(errors).toEqual([]);
    expect(used()).toBe(12);
    expect(gateway.streams.stats()).toMatchObject(NOTHING_HELD);
    await waitUntil('the model is stopped', () => model.open === 0);
  });

  test('so does one that leaves before the first token: its prompt counts', async () => {
    const client = await startClient(0);
    client.leave();
    await logged(1);
    expect(log).toEqual(['ada: 2 tokens, 0 streams']);
    expect(gateway.streams.stats()).toMatchObject(NOTHING_HELD);
    await waitUntil('the model is stopped', () => model.open === 0);
  });

  test('a third stream is refused and reserves nothing, until one of the two has ended', async () => {
    const clients = await inTurn([1, 1], startClient);
    const refused = await fetch(url, chat());
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, null]);
    expect(await refused.text()).toBe('Two streams run already.\n');
    expect(used()).toBe(2 * 2002);
    expect((await startClient(1, { key: 'key-of-bob' })).text).toBe(lines(1));
    clients[0].leave();
    await logged(1);
    expect((await startClient(1)).text).toBe(lines(1));
    expect(gateway.streams.usage('ada').used).toBe(2);
  });

  test('without tokens, a request is refused and holds no slot', async () => {
    model.write = (res) => res.end(lines(2000));
    await inTurn(times(4, url), async () => (await fetch(url, chat())).text());
    await logged(4);
    const refused = await fetch(url, chat());
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([
      429,
      expect.stringMatching(/^(5\d|60)$/),
    ]);
    expect(await refused.text()).toBe('No tokens left.\n');
    expect(used()).toBe(4 * 2002);
    expect(gateway.streams.stats()).toMatchObject(NOTHING_HELD);
  });

  test('a model that fails leaves nothing held', async () => {
    model.write = (res) => res.writeHead(503).end('busy');
    expect((await fetch(url, chat())).status).toBe(502);
    model.write = (res) => res.write(lines(3), () => res.destroy());
    await expect(fetch(url, chat()).then((answer) => answer.text())).rejects.toThrow('terminated');
    await logged(2);
    expect(log[0]).toBe('ada: 2 tokens, 0 streams');
    expect(errors).toEqual(['ada: the model answered 503', 'ada: terminated']);
    expect(gateway.streams.stats()).toMatchObject(NOTHING_HELD);
  });

  test('the longest prompt passes, and a longer one gets 413', async () => {
    model.write = (res) => res.end();
    const most = 4096 - JSON.stringify({ prompt: '' }).length;
    const statusOf = async (length) =>
      (await fetch(url, chat(undefined, { prompt: 'x'.repeat(length) }))).status;
    expect(await inTurn([most, most + 1], statusOf)).toEqual([200, 413]);
    expect((await fetch(url, chat(undefined, { key: 'made up' }))).status).toBe(401);
  });

  test('a client that stops reading loses its slot after maxAge', async () => {
    await start((code) => code.replace('maxAge: 300_000', 'maxAge: 300'));
    await startClient(1);
    model.asked[0].write(lines(2_000_000));
    await waitUntil('its slot is lost', () => gateway.streams.stats().held === 0);
    await logged(1);
    expect(log[0]).toMatch(/^ada: \d+ tokens, 0 streams$/);
    expect(gateway.streams.stats()).toMatchObject(NOTHING_HELD);
    await waitUntil('the model is stopped', () => model.open === 0);
  });
});

test('in a process of its own, clients that leave at any time use up no slot', async () => {
  const model = await startModel();
  model.write = (res) => {
    if (model.asked.length % 3 > 0) res.write(lines(1));
  };
  await withServer(codeFor(model), async (ask) => {
    for (let i = 0; i < 12; i++) {
      const leaving = new AbortController();
      const answer = ask('chat', chat(leaving.signal));
      await waitUntil('the model is asked', () => model.asked.length === i + 1);
      if (i % 2 === 0) await new Promise((resolve) => setTimeout(resolve, 20));
      leaving.abort();
      await expect(answer).rejects.toThrow('aborted');
      await waitUntil('the model is stopped', () => model.open === 0);
    }
    model.write = (res) => res.end(lines(2));
    expect(await ask('chat', chat())).toMatchObject({ status: 200, text: lines(2) });
  });
});
