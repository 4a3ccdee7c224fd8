// The recipes for quotas, plans and records do what docs/recipes.md promises.
'use strict';

const request = require('supertest');
const { blocksByHeading, load } = require('../support/page-programs');

const RECIPES = blocksByHeading('docs/recipes.md');
const codeOf = (name) => RECIPES.get(name)[0];

let now;
beforeEach(() => {
  now = Date.parse('2026-11-17T10:00:00Z');
});

const loadRecipe = (name, names) => load(codeOf(name), names, { clock: () => now });

describe('plans from a database', () => {
  let app;
  let CUSTOMERS;
  let cache;
  beforeEach(() => {
    ({ app, CUSTOMERS, cache } = loadRecipe('Plans from a database', 'app, CUSTOMERS, cache'));
  });
  const ask = (apiKey) => request(app).get('/').set('X-Api-Key', apiKey);

  test('a customer who changes the plan keeps what was counted', async () => {
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await ask('key-of-ada')).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    now += 1000;
    expect((await ask('key-of-ada')).text).toBe('1 left\n');
    CUSTOMERS.set('key-of-ada', { burst: 3, calls: 7 });
    cache.delete('key-of-ada');
    const { text, headers } = await ask('key-of-ada');
    expect(text).toBe('1 left\n');
    expect(headers['ratelimit-policy']).toMatch(/"burst"; q=3; w=1; .*"calls"; q=7; pk=/);
    expect((await ask('key-of-bob')).text).toBe('99 left\n');
    expect((await ask('unknown')).status).toBe(401);
  });

  test('the quota of the month comes back with the next month', async () => {
    for (let i = 0; i < 5; i++) {
      expect((await ask('key-of-ada')).status).toBe(200);
      now += 1000;
    }
    const refusal = await ask('key-of-ada');
    expect(refusal.status).toBe(429);
    const next = Date.parse('2026-12-01T00:00:00Z');
    expect(Number(refusal.headers['retry-after'])).toBe((next - now) / 1000);
    now = next;
    expect((await ask('key-of-ada')).status).toBe(200);
  });

  test('requests that come at once share one query, and a failed one is not remembered', async () => {
    let queries = 0;
    const fails = [true, false];
    const code = codeOf('Plans from a database').replace(
      'async (apiKey) => CUSTOMERS.get(apiKey)',
      'query',
    );
    const query = async () => {
      queries += 1;
      if (fails.shift()) throw new Error('no connection');
      return { burst: 9, calls: 9 };
    };
    const { limitsOf } = load(code, 'limitsOf', { query });
    const failed = await Promise.allSettled([limitsOf('a'), limitsOf('a')]);
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(queries).toBe(1);
    await Promise.all([limitsOf('a'), limitsOf('a')]);
    expect(limitsOf('a')).toEqual({ burst: 9, calls: 9 });
    expect(queries).toBe(2);
  });
});

describe('a quota and a burst limit', () => {
  const { app, burst, quota } = load(codeOf('A quota and a burst limit'), 'app, burst, quota', {
    clock: () => now,
  });
  const ask = (apiKey) => request(app).get('/').set('X-Api-Key', apiKey);

  test('are decided together, in the billing month of the organisation', async () => {
    for (const left of ['3', '2', '1']) {
      const { status, headers } = await ask('key-of-ada');
      expect([status, headers['x-quota-remaining']]).toEqual([200, left]);
    }
    const early = await ask('key-of-ada');
    expect([early.status, early.text]).toEqual([429, 'too many calls at once\n']);
    expect(early.headers['retry-after']).toBe('20');
    expect((await ask('key-of-bob')).headers['x-quota-remaining']).toBe('0');
    const used = burst.usage('key-of-bob', { limits: 60 }).used;
    const late = await ask('key-of-bob');
    expect([late.status, late.text]).toEqual([429, 'the quota of this month is used up\n']);
    // Midnight of the 17th of December in Tokyo.
    const end = Date.parse('2026-12-16T15:00:00Z');
    expect(Number(late.headers['retry-after'])).toBe((end - now) / 1000);
    expect(burst.usage('key-of-bob', { limits: 60 }).used).toBe(used);
    expect(quota.usage('acme', { limits: 9 }).used).toBe(4);
    now = end;
    expect((await ask('key-of-bob')).headers['x-quota-remaining']).toBe('3');
    expect((await ask('nobody')).status).toBe(401);
  });
});

describe('failed logins that are reported later', () => {
  const { app } = load(codeOf('Failed logins that are reported later'), 'app', {
    clock: () => now,
  });
  const logIn = (account) => request(app).post('/login').send({ account });
  const report = (events, authorization = 'Bearer of-the-provider') =>
    request(app).post('/events').set('Authorization', authorization).send({ events });
  const failed = (count) => Array(count).fill({ type: 'login_failed', account: 'Ada' });

  test('five failures close the account, a success opens it', async () => {
    expect((await report(failed(9), 'Bearer guess')).status).toBe(401);
    expect((await report(failed(4))).status).toBe(204);
    expect((await logIn('ada')).status).toBe(200);
    now += 1000;
    await report(failed(3));
    const refusal = await logIn('ada');
    expect([refusal.status, refusal.headers['retry-after']]).toEqual([429, '899']);
    expect((await logIn('bob')).status).toBe(200);
    now += 898_999;
    expect((await logIn('ada')).status).toBe(429);
    now += 1;
    expect((await logIn('ada')).status).toBe(200);
    await report([...failed(9), { type: 'login_succeeded', account: 'ada' }]);
    expect((await logIn('ada')).status).toBe(200);
  });
});
