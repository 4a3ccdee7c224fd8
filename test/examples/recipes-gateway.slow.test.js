// The recipe for a gateway to a language model does what docs/recipes.md promises.
'use strict';

const { json } = require('node:stream/consumers');
const { fetchText, inTurn } = require('../middleware/apps');
const { waitUntil } = require('../support/outcome');
const { load } = require('../support/page-programs');
const { codeOf, listen, printed, times } = require('./recipes');

const lines = (count) => 'token\n'.repeat(count);

let model;
let gateway;
let log;
let errors;
let url;

/** A model whose answers the test writes: `asked` has their responses, `open` says how many are not closed. */
async function startModel() {
  const own = { asked: [], prompts: [], open: 0, write: () => {} };
  model = own; // requests of an earlier test may still end
  return listen(async (req, res) => {
    own.open += 1;
    res.once('close', () => (own.open -= 1));
    own.prompts.push(await json(req));
    own.asked.push(res);
    own.write(res);
  });
}

async function start(...exchanges) {
  const toModel = ['http://127.0.0.1:8080', await startModel()];
  const code = codeOf('A gateway to a language model', toModel, ...exchanges);
  const [told, failed] = [[], []]; // requests of an earlier test may still end
  const console = { log: (line) => told.push(line), error: (line) => failed.push(line) };
  [log, errors] = [told, failed];
  gateway = load(code, 'app, streams, tokens', { console });
  url = `${await listen(gateway.app)}/chat`;
}
beforeEach(() => start());

const chat = ({ signal, key = 'key-of-ada', prompt = 'hi' } = {}) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', 'x-api-key': key },
  body: JSON.stringify({ prompt }),
  signal,
});
const ask = (options) => fetchText(url, chat(options));

/** A client that has got this many tokens; `leave()` closes its connection. */
async function startClient(count, options) {
  const leaving = new AbortController();
  const asked = model.asked.length;
  const answer = fetch(url, chat({ signal: leaving.signal, ...options }));
  answer.catch(() => {}); // it leaves
  await waitUntil('the model is asked', () => model.asked.length > asked);
  let text = '';
  if (count > 0) {
    model.asked[asked].write(lines(count));
    const reader = (await answer).body.getReader();
    while (text.length < lines(count).length) text += Buffer.from((await reader.read()).value);
  }
  return { leave: () => leaving.abort(), text };
}

const used = (customer = 'ada') => gateway.tokens.usage(customer).used;
const logged = (count) => waitUntil('the request has ended', () => log.length === count);
const nothingIsHeld = () =>
  expect(gateway.streams.stats()).toMatchObject({ keys: 0, held: 0, leaked: 0, waiting: 0 });
const modelIsStopped = () => waitUntil('the model is stopped', () => model.open === 0);

test('passes the answer on, and counts its tokens', async () => {
  model.write = (res) => res.end(lines(40));
  expect(await ask()).toMatchObject({ status: 200, text: lines(40) });
  await logged(1);
  expect(log).toEqual(['ada: 42 tokens, 0 streams']);
  expect(model.prompts).toEqual([{ prompt: 'hi', maxTokens: 2000 }]);
  expect([used(), used('bob')]).toEqual([42, 0]);
  nothingIsHeld();
});

test.each([
  ['in the middle', 10, printed('streams')],
  ['before the first token', 0, 'ada: 2 tokens, 0 streams\n'],
])(
  'a client that leaves %s ends the stream of the model, and nothing is held',
  async (_, count, told) => {
    const { leave } = await startClient(count);
    expect([used(), gateway.streams.usage('ada').used, model.open]).toEqual([2002, 1, 1]);
    leave();
    await logged(1);
    expect([`${log[0]}\n`, errors, used()]).toEqual([told, [], 2 + count]);
    nothingIsHeld();
    await modelIsStopped();
  },
);

test('a third stream is refused and reserves nothing, until one of the two has ended', async () => {
  const clients = await inTurn([1, 1], startClient);
  const refused = await ask();
  expect(refused).toMatchObject({ status: 429, text: 'Two streams run already.\n' });
  expect(refused.headers.get('retry-after')).toBe(null);
  expect(used()).toBe(2 * 2002);
  expect((await startClient(1, { key: 'key-of-bob' })).text).toBe(lines(1));
  clients[0].leave();
  await logged(1);
  expect((await startClient(1)).text).toBe(lines(1));
  expect(gateway.streams.usage('ada').used).toBe(2);
});

test('without tokens, a request is refused and holds no slot', async () => {
  model.write = (res) => res.end(lines(2000));
  await inTurn(times(4), ask);
  await logged(4);
  const refused = await ask();
  expect(refused).toMatchObject({ status: 429, text: 'No tokens left.\n' });
  expect(refused.headers.get('retry-after')).toMatch(/^(5\d|60)$/);
  expect(used()).toBe(4 * 2002);
  nothingIsHeld();
});

test('a model that fails leaves nothing held', async () => {
  model.write = (res) => res.writeHead(503).end('busy');
  expect((await ask()).status).toBe(502);
  model.write = (res) => res.write(lines(3), () => res.destroy());
  await expect(ask()).rejects.toThrow('terminated');
  await logged(2);
  expect(log[0]).toBe('ada: 2 tokens, 0 streams');
  expect(errors).toEqual(['ada: the model answered 503', 'ada: terminated']);
  nothingIsHeld();
});

test('the longest prompt passes, a longer one gets 413, a stranger 401', async () => {
  model.write = (res) => res.end();
  const most = 4096 - JSON.stringify({ prompt: '' }).length;
  const asked = [{ prompt: 'x'.repeat(most) }, { prompt: 'x'.repeat(most + 1) }, { key: 'none' }];
  const answers = await inTurn(asked, ask);
  expect(answers.map(({ status }) => status)).toEqual([200, 413, 401]);
});

test('a client that stops reading loses its slot after maxAge', async () => {
  await start(['maxAge: 300_000', 'maxAge: 300']);
  await startClient(1);
  model.asked[0].write(lines(2_000_000));
  await waitUntil('its slot is lost', () => gateway.streams.stats().held === 0);
  await logged(1);
  nothingIsHeld();
  await modelIsStopped();
});
