// The recipes for web servers do what docs/recipes.md promises.
'use strict';

const { once } = require('node:events');
const http = require('node:http');
const request = require('supertest');
const { inTurn, listen } = require('../middleware/apps');
const { waitUntil } = require('../support/outcome');
const { startRedis } = require('../support/redis-server');
const { blocksByHeading, load, withServer } = require('../support/page-programs');

const RECIPES = blocksByHeading('docs/recipes.md');
const codeOf = (name) => RECIPES.get(name)[0];

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

let now;
beforeEach(() => {
  now = 0;
});

/** The application of a recipe, with a clock that the test moves. */
const appOf = (name) => load(codeOf(name), 'app', { clock: () => now }).app;
const times = (count, item) => Array(count).fill(item);

describe('users and visitors', () => {
  let app;
  beforeEach(() => {
    app = appOf('Users and visitors');
  });

  const ask = (headers) => request(app).get('/').set(headers);
  const statuses = async (count, headers) =>
    (await inTurn(times(count, headers), ask)).map(({ status }) => status);
  const ADA = { authorization: 'Bearer token-of-ada' };

  test('counts users by id from every address, and others by the address that the proxy saw', async () => {
    const spoofed = { 'X-Forwarded-For': '203.0.113.9, 192.0.2.1' };
    const visitor = await ask(spoofed);
    expect(visitor.text).toBe('192.0.2.1\n');
    expect(visitor.headers.ratelimit).toBe('"10-in-1min"; r=9; t=60');
    expect(await statuses(10, spoofed)).toEqual([...times(9, 200), 429]);
    expect(await statuses(1, { 'X-Forwarded-For': '192.0.2.2' })).toEqual([200]);
    expect((await ask({ ...ADA, 'X-Forwarded-For': '192.0.2.1' })).text).toBe('user:ada\n');
    expect(await statuses(99, ADA)).toEqual(times(99, 200));
    expect(await statuses(1, { ...ADA, 'X-Forwarded-For': '192.0.2.3' })).toEqual([429]);
  });

  test('an unknown token is a visitor', async () => {
    const { text } = await ask({ authorization: 'Bearer guess', 'X-Forwarded-For': '2001:db8::1' });
    expect(text).toBe('2001:db8::/56\n');
  });
});

describe('a login', () => {
  let app;
  beforeEach(() => {
    app = appOf('A login');
    app.set('trust proxy', 1); // so that the test has several addresses
  });

  const attempt = (name, password, address = '192.0.2.1') =>
    request(app)
      .post('/login')
      .type('form')
      .send({ name, password })
      .set('X-Forwarded-For', address);
  const fail = async (name, address) => (await attempt(name, 'guess', address)).status;
  const logIn = async (name, address) => (await attempt(name, 'correct horse', address)).status;

  test('refuses the sixth attempt on an account from any address, also with its password', async () => {
    const names = ['ada', 'ADA', ' ada', 'ada ', 'ａｄａ'];
    expect(await inTurn(names, (name) => fail(name))).toEqual(times(5, 401));
    expect(await fail('ada')).toBe(429);
    expect(await logIn('ada', '198.51.100.7')).toBe(429);
    expect(await fail('bob')).toBe(401);
    now = 15 * MINUTE_MS - 1;
    expect(await logIn('ada')).toBe(429);
    now += 1;
    expect(await logIn('ada')).toBe(200);
  });

  test('checks five of fifty simultaneous passwords', async () => {
    const addresses = Array.from({ length: 50 }, (_, i) => `198.51.100.${i}`);
    const statuses = await Promise.all(addresses.map((address) => fail('ada', address)));
    expect(statuses.sort()).toEqual([...times(5, 401), ...times(45, 429)]);
  });

  test('a correct password resets the account', async () => {
    for (let i = 0; i < 4; i++) {
      expect(await inTurn(times(4, 'ada'), (name) => fail(name))).toEqual(times(4, 401));
      expect(await logIn('ada')).toBe(200);
    }
  });

  test('an address may fail 20 times on all accounts, and successes do not help it', async () => {
    for (let i = 0; i < 20; i++) {
      expect(await logIn('ada')).toBe(200);
      expect(await fail(`user ${i}`)).toBe(401);
    }
    expect(await fail('user 20')).toBe(429);
    expect(await logIn('ada')).toBe(429);
    expect(await logIn('ada', '198.51.100.7')).toBe(200);
  });

  test('attempts that an address may not make count for no account', async () => {
    for (let i = 0; i < 20; i++) await fail(`user ${i}`);
    expect(await inTurn(times(6, 'ada'), (name) => fail(name))).toEqual(times(6, 429));
    expect(await logIn('ada', '198.51.100.7')).toBe(200);
  });

  test('counts for all processes on Redis', async () => {
    const { url } = await startRedis();
    const onRedis = (namespace) => `, redis: '${url}', namespace: '${namespace}' });`;
    const code = codeOf('A login')
      .replace('maxInInterval: 20 });', `maxInInterval: 20${onRedis('address')}`)
      .replace('maxInInterval: 5 });', `maxInInterval: 5${onRedis('account')}`);
    const apps = [1, 2].map(() => load(code, 'app, byAddress, byAccount'));
    const post = (i, password) =>
      request(apps[i % 2].app)
        .post('/login')
        .type('form')
        .send({ name: 'ada', password });
    const statuses = (...passwords) =>
      inTurn(passwords, async (password) => (await post(calls++, password)).status);
    let calls = 0;
    try {
      expect(await statuses('a', 'b', 'c', 'd', 'correct horse')).toEqual([...times(4, 401), 200]);
      expect(await statuses(...times(5, 'guess'), 'correct horse')).toEqual([
        ...times(5, 401),
        429,
      ]);
    } finally {
      for (const { byAddress, byAccount } of apps) {
        await Promise.all([byAddress.close(), byAccount.close()]);
      }
    }
  });

  test('answers the same for names that exist and for others, in both refusals', async () => {
    const shown = async (answer) => {
      const { status, text, headers } = await answer;
      return { status, text, names: Object.keys(headers) };
    };
    const known = await shown(attempt('ada', 'guess'));
    expect(await shown(attempt('nobody', 'guess', '198.51.100.1'))).toEqual(known);
    for (let i = 0; i < 5; i++) await fail('ada', '198.51.100.2');
    const byAccount = await shown(attempt('ada', 'guess', '198.51.100.3'));
    for (let i = 0; i < 20; i++) await fail(`user ${i}`);
    const byAddress = await shown(attempt('nobody', 'guess'));
    expect(byAddress.status).toBe(429);
    expect(byAccount).toEqual(byAddress);
  });
});

describe('plans', () => {
  const LATER = { free: [100, 3], pro: [1000, 10] };

  test.each([
    ['free', 'key-of-ada'],
    ['pro', 'key-of-bob'],
  ])('%s keeps its limits of a second and of a day', async (plan, key) => {
    const [perDay, perSecond] = LATER[plan];
    const app = appOf('Plans');
    const ask = () => request(app).get('/').set('x-api-key', key);
    const passed = times(perSecond, 200);
    for (let used = 0; used < perDay; used += perSecond) {
      const expected = Math.min(perSecond, perDay - used);
      const statuses = await inTurn(times(expected, ask), async (one) => (await one()).status);
      expect(statuses).toEqual(passed.slice(0, expected));
      if (expected < perSecond) break;
      const refused = await ask();
      const last = used + perSecond === perDay;
      const day = expect.stringMatching(/^86\d{3}$/);
      expect([refused.status, refused.headers['retry-after']]).toEqual([429, last ? day : '1']);
      now += 1000;
    }
    expect((await ask()).status).toBe(429);
    now = DAY_MS - 1;
    expect((await ask()).status).toBe(429);
    now = DAY_MS;
    expect((await ask()).status).toBe(200);
  });

  test('customers have their own counts, and see both windows; strangers get nothing', async () => {
    const app = appOf('Plans');
    const ask = (key) => request(app).get('/').set('x-api-key', key);
    await ask('key-of-ada');
    const { headers, text } = await ask('key-of-bob');
    expect(text).toBe('9 left\n');
    expect(headers['ratelimit-policy']).toMatch(/q=10; w=1;.*q=1000; w=86400;/);
    expect((await ask('made up')).status).toBe(401);
    expect((await request(app).get('/')).status).toBe(401);
  });
});

describe('a proxy and a CDN', () => {
  const PROXY_SAW = { client: '198.51.100.7', cdn: '203.0.113.9', cdn6: '2001:db8:cd::9' };

  /** What the application gets if the proxy appends this address to what the client sent. */
  const ask = (app, { by, sent = [], header }) => {
    const asked = request(app)
      .get('/')
      .set('X-Forwarded-For', [...sent, by].join(', '));
    return header === undefined ? asked : asked.set('cf-connecting-ip', header);
  };

  test('a client cannot escape its count with headers that it sends', async () => {
    const app = appOf('A proxy and a CDN');
    const statuses = await inTurn([1, 2, 3, 4, 5, 6], async (i) => {
      const spoofed = `192.0.2.${i}`;
      const { status, text } = await ask(app, {
        by: PROXY_SAW.client,
        sent: [spoofed, '203.0.113.1'],
        header: spoofed,
      });
      if (status === 200) expect(text).toBe(`${PROXY_SAW.client}\n`);
      return status;
    });
    expect(statuses).toEqual([...times(5, 200), 429]);
  });

  test.each(['cdn', 'cdn6'])('a client of the CDN has its own count (%s)', async (cdn) => {
    const app = appOf('A proxy and a CDN');
    const through = (header) => ask(app, { by: PROXY_SAW[cdn], sent: ['192.0.2.99'], header });
    const answers = await inTurn(times(6, '192.0.2.1'), through);
    expect(answers.map(({ status }) => status)).toEqual([...times(5, 200), 429]);
    expect(answers[0].text).toBe('192.0.2.1\n');
    expect((await through('192.0.2.2')).text).toBe('192.0.2.2\n');
    const [one, other] = ['2001:db8:1::1', '2001:db8:1:ff::1'];
    expect((await through(one)).text).toBe((await through(other)).text);
  });

  test('without the header, a request counts for the node of the CDN', async () => {
    const { text } = await ask(appOf('A proxy and a CDN'), { by: PROXY_SAW.cdn });
    expect(text).toBe(`${PROXY_SAW.cdn}\n`);
  });
});

describe('uploads', () => {
  test('cost their bytes', async () => {
    await withServer(codeOf('Uploads'), async (ask) => {
      const put = (body, more) => ask('file', { method: 'PUT', body, ...more });
      const stream = (length) => put(new Blob(['x'.repeat(length)]).stream(), { duplex: 'half' });
      for (const [bytes, status] of [
        [200_001, 413],
        [200_000, 200],
        [200_000, 200],
        [199_899, 200],
      ]) {
        expect((await put('x'.repeat(bytes))).status).toBe(status);
      }
      expect(await stream(100)).toMatchObject({ status: 200, text: '100 bytes\n' });
      expect((await put('x'.repeat(200_000))).status).toBe(200);
      expect((await put('x')).status).toBe(429);
    });
  });

  test('a client may send 30 in a minute', async () => {
    const app = appOf('Uploads');
    const put = async () => (await request(app).put('/file').send('x')).status;
    expect(await inTurn(times(31, put), (one) => one())).toEqual([...times(30, 200), 429]);
    now = MINUTE_MS;
    expect(await put()).toBe(200);
  });

  describe('two at once', () => {
    let port;
    let held;
    beforeEach(async () => {
      const { app, twoAtOnce } = load(codeOf('Uploads'), 'app, twoAtOnce', { clock: () => now });
      app.set('env', 'test'); // Express prints no error of a client that leaves
      port = await listen(app);
      held = () => twoAtOnce.limiter.stats().held;
    });

    const put = (headers) => {
      const upload = http.request({ port, path: '/file', method: 'PUT', headers, agent: false });
      upload.on('error', () => {});
      return upload;
    };
    const begin = async (bytes) => {
      const before = held();
      const upload = put();
      upload.write('x'.repeat(bytes));
      await waitUntil('it has a slot', () => held() === before + 1);
      return upload;
    };
    const statusOf = async (upload) => {
      const [response] = await once(upload, 'response');
      await response.toArray();
      return response.statusCode;
    };
    const send = (bytes) => statusOf(put({ 'content-length': bytes }).end('x'.repeat(bytes)));

    test('a third one is refused and uses up no bytes, until one has ended or its client has left', async () => {
      const uploads = await inTurn([50_000, 50_000], begin);
      expect(await inTurn(times(5, 200_000), send)).toEqual(times(5, 429));
      uploads[0].destroy();
      await waitUntil('its slot is free', () => held() === 1);
      expect(await send(100_000)).toBe(200);
      uploads[1].end();
      expect(await statusOf(uploads[1])).toBe(200);
      await waitUntil('nothing is held', () => held() === 0);
      // 200,000 bytes are used.
      expect(await inTurn([...times(4, 200_000), 1], send)).toEqual([...times(4, 200), 429]);
    });

    test('an upload that the budget refuses holds no slot', async () => {
      expect(await inTurn(times(5, 200_000), send)).toEqual(times(5, 200));
      await waitUntil('nothing is held', () => held() === 0);
      const refused = put({ 'content-length': 100_000 });
      refused.write('x');
      expect(await statusOf(refused)).toBe(429);
      expect(held()).toBe(0);
      refused.destroy();
    });

    test('one that gets no slot counts as one of the 30', async () => {
      const uploads = await inTurn([1, 1], begin);
      expect(await inTurn(times(28, 1), send)).toEqual(times(28, 429));
      for (const upload of uploads) upload.destroy();
      await waitUntil('nothing is held', () => held() === 0);
      expect(await send(1)).toBe(429);
      now = MINUTE_MS;
      expect(await send(1)).toBe(200);
    });
  });
});
