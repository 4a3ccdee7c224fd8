// What a user's client is sent: fakes of clients that answer, refuse or hold back whole commands.
'use strict';

const { keySlot } = require('../../lib/stores/redis/cluster');
const { allowing, fakeClient, keysOf, limiterOver, refusal } = require('../support/fake-client');
const { outcomeOf } = require('../support/outcome');

const REPLY = 'ERR_ROLLGATE_REDIS_REPLY';
const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const AUTH = 'ERR_ROLLGATE_REDIS_AUTH';

const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const nextTurn = () => new Promise(setImmediate);
const outcomesOf = (calls) => Promise.all(calls.map((call) => outcomeOf(call)));

describe('a command', () => {
  afterEach(() => jest.useRealTimers());

  test('has the checks of one turn of all limiters on the client, in groups', async () => {
    const client = fakeClient();
    const [one, same, other] = ['one', 'same', 'other'].map((namespace) =>
      limiterOver(client, { namespace, ...(namespace === 'other' && { maxInInterval: 5 }) }),
    );
    await Promise.all([one('a'), other('a'), same('b'), one('c')]);
    expect(client.keys()).toEqual([['one{a}', 'same{b}', 'one{c}', 'other{a}']]);
    expect(client.sent[0].slice(7)).toEqual(['together', expect.any(Buffer), expect.any(Buffer)]);
  });

  test('has one group for calls of different costs', async () => {
    const client = fakeClient();
    const limiter = limiterOver(client, { algorithm: 'gcra' });
    const attempts = [2, 3, 7].map((cost) => limiter.attempt(`of ${cost}`, { cost }));
    await outcomesOf(attempts); // no full replies
    const [, , , , , , reading, ...groups] = client.sent[0];
    expect([reading, groups.length]).toEqual(['together', 1]);
    const amounts = groups[0].subarray(-24);
    expect([0, 8, 16].map((at) => amounts.readDoubleLE(at))).toEqual([2, 3, 7]);
  });

  test.each([
    ['together, keys repeat', (limiter) => [limiter('a'), limiter('b'), limiter('a')]],
    ['together', (limiter, other) => [limiter('a'), other('a')]],
    ['apart', (limiter) => [limiter('a'), limiter.wouldLimit('a')]],
  ])('says how its keys are read: %s', async (reading, makeCalls) => {
    const client = fakeClient();
    const limiters = ['n', 'm'].map((namespace) => limiterOver(client, { namespace }));
    await outcomesOf(makeCalls(...limiters));
    const [args] = client.sent;
    expect(args[3 + Number(args[2])]).toBe(reading);
  });

  test('that is no check goes behind those that were asked before', async () => {
    const client = fakeClient();
    const limiter = limiterOver(client);
    const other = limiterOver(client, { namespace: 'other', algorithm: 'gcra' });
    const ends = [limiter('a'), other('a'), limiter.clear('a'), limiter('b'), other('b')];
    await outcomesOf([...ends, limiter.block('b', 5), limiter('c')]); // 0 is no answer to a block
    const keys = ['n{a}', 'other{a}', 'n{a}', 'n{b}', 'other{b}', 'n{b}', 'n{c}'];
    expect(client.keys()).toEqual(keys.map((key) => [key]));
    expect(client.names()[2]).toBe('unlink');
  });

  test('is sent, or refused, although the timers of a test are fake', async () => {
    jest.useFakeTimers();
    const limiter = limiterOver(fakeClient(), { maxQueue: 1 });
    const calls = outcomesOf([limiter('a'), limiter('b')]);
    expect(await calls).toEqual([0, 'ERR_ROLLGATE_REDIS_QUEUE_FULL']);
  });

  // Kills: calls that wait for the end of the turn after their limiter, and then the client, is closed.
  test('is sent before its limiter is closed', async () => {
    const client = fakeClient();
    const limiter = limiterOver(client);
    const call = limiter('a');
    await limiter.close();
    client.sendCommand = () => Promise.reject(new Error('closed'));
    expect(await call).toBe(0);
  });

  test('has keys of one prefix, also if that of the client changes', async () => {
    const client = fakeClient(allowing, { options: { keyPrefix: 'old:' } });
    const old = limiterOver(client);
    client.options.keyPrefix = 'new:';
    const young = limiterOver(client);
    await Promise.all([old('a'), young('a'), old('b')]);
    expect(client.keys()).toEqual([['old:n{a}', 'old:n{b}'], ['new:n{a}']]);
  });
});

test('a reply of something that is no number fails all calls of its command', async () => {
  const limiter = limiterOver(fakeClient(() => [0, null, 0]));
  expect(await outcomesOf(times(3, (id) => limiter(id)))).toEqual([REPLY, REPLY, REPLY]);
});

test('a reply that is an error fails the calls of its command alone', async () => {
  const client = fakeClient((args) => {
    if (keysOf(args).includes('n{64}')) throw refusal('ERR no');
    return allowing(args);
  });
  const limiter = limiterOver(client);
  const outcomes = await outcomesOf(times(66, (id) => limiter(id)));
  expect(outcomes).toEqual([...times(64, () => 0), REPLY, REPLY]);
});

describe('keys that cannot be judged together', () => {
  const refusingMany = (error) => (args) => {
    if (keysOf(args).length > 1) throw error;
    return allowing(args);
  };

  test.each([
    ['TRYAGAIN Multiple keys request during rehashing of slot', {}],
    ["CROSSSLOT Keys in request don't hash to the same slot", {}],
    ['Too many redirections', { lastNodeError: refusal('TRYAGAIN later') }],
  ])('are sent one by one after %s', async (message, more) => {
    const client = fakeClient(refusingMany(Object.assign(refusal(message), more)));
    const limiter = limiterOver(client);
    const calls = [limiter('a'), limiter('b'), limiter.attempt('c')];
    expect(await outcomesOf(calls)).toEqual([0, 0, REPLY]); // the full reply is not there
    expect(client.keys().slice(1)).toEqual([['n{a}'], ['n{b}'], ['n{c}']]);
  });

  test('are sent by slots from the first CROSSSLOT on', async () => {
    const client = fakeClient((args) => {
      if (new Set(keysOf(args).map(keySlot)).size > 1) throw refusal('CROSSSLOT Keys differ');
      return allowing(args);
    });
    const limiter = limiterOver(client);
    await Promise.all([limiter('a'), limiter('b')]);
    client.sent.length = 0;
    await Promise.all([limiter('a'), limiter('b'), limiter('a')]);
    expect(client.keys()).toEqual([['n{a}', 'n{a}'], ['n{b}']]);
  });

  test('fail as one if they belong to one limiter that may not use them', async () => {
    const client = fakeClient(refusingMany(refusal('NOPERM No permissions to access a key')));
    const limiters = ['n', 'm'].map((namespace) => limiterOver(client, { namespace }));
    expect(await outcomesOf([limiters[0]('a'), limiters[0]('b')])).toEqual([AUTH, AUTH]);
    expect(client.sent).toHaveLength(1);
    expect(await outcomesOf(limiters.map((limiter) => limiter('a')))).toEqual([0, 0]);
    client.sent.length = 0;
    const script = fakeClient(refusingMany(refusal('NOPERM this user may not run evalsha')));
    const others = ['n', 'm'].map((namespace) => limiterOver(script, { namespace }));
    expect(await outcomesOf(others.map((limiter) => limiter('a')))).toEqual([AUTH, AUTH]);
    expect(script.sent).toHaveLength(1);
  });
});

describe('deadlines', () => {
  let now;
  const advance = (ms) => {
    now += ms;
    jest.advanceTimersByTime(ms);
  };

  beforeEach(() => {
    jest.useFakeTimers({
      doNotFake: ['performance', 'setImmediate', 'nextTick', 'queueMicrotask'],
    });
    now = 1000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
  });
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  const NOSCRIPT = 'NOSCRIPT No matching script';
  const codeOf = (call) => call.catch(({ code }) => code);
  const unansweredOf = (limiter) => limiter.stats().connection.unanswered;

  /** A client whose commands are answered by hand, by their places, and limiters over it for each deadline. */
  function heldClient(...deadlines) {
    const settles = [];
    const client = fakeClient(
      (args) =>
        new Promise((resolve, reject) => {
          const answer = () => resolve(allowing(args));
          settles.push({ answer, refuse: (message) => reject(refusal(message)) });
        }),
    );
    return {
      client,
      limiters: deadlines.map((commandTimeout) => limiterOver(client, { commandTimeout })),
      answer: (place) => settles[place].answer(),
      refuse(message, ...places) {
        for (const place of places) settles[place].refuse(message);
        return nextTurn();
      },
    };
  }

  /** A call in a turn of its own. `outcome` is a promise of what it resolves to, or of its code. */
  async function send(limiter, id) {
    const outcome = codeOf(limiter(id));
    await nextTurn();
    return { outcome };
  }

  test('are those of each limiter, from the call on', async () => {
    const { client, limiters, answer } = heldClient(10, 30);
    const [quick, slow] = limiters;
    const calls = [quick('a'), slow('b'), slow('c')].map(codeOf);
    await nextTurn();
    expect(client.sent).toHaveLength(1);
    advance(10);
    expect(await calls[0]).toBe(TIMEOUT);
    expect(limiters.map((limiter) => limiter.stats().connection)).toMatchObject([
      { pending: 0, unanswered: 1 },
      { pending: 2, unanswered: 2 },
    ]);
    answer(0);
    expect(await Promise.all(calls.slice(1))).toEqual([0, 0]);
    expect(limiters.map(unansweredOf)).toEqual([0, 0]);
    expect(quick.stats()).toMatchObject({ allowed: 0, errors: 1 }); // the late reply was dropped
  });

  test('end calls whose source a node never takes, and free what waits for it', async () => {
    const { client, limiters, answer, refuse } = heldClient(30, 10);
    const [sender, limiter] = limiters;
    const first = await send(sender, 'a');
    const waiting = await send(limiter, 'b');
    await refuse(NOSCRIPT, 0, 1);
    expect(client.names()).toEqual(['evalsha', 'evalsha', 'eval']);
    advance(10);
    expect([await waiting.outcome, unansweredOf(limiter)]).toEqual([TIMEOUT, 0]);
    const late = await send(limiter, 'c');
    await refuse(NOSCRIPT, 3);
    advance(5);
    const later = await send(limiter, 'd');
    await refuse(NOSCRIPT, 4);
    advance(5);
    expect(await late.outcome).toBe(TIMEOUT);
    expect(client.sent).toHaveLength(5);
    advance(5);
    expect(await later.outcome).toBe(TIMEOUT);
    advance(5);
    expect([await first.outcome, unansweredOf(sender)]).toEqual([TIMEOUT, 1]);
    const next = await send(sender, 'e');
    await refuse(NOSCRIPT, 5);
    expect(client.names().slice(5)).toEqual(['evalsha', 'eval']);
    answer(6);
    expect(await next.outcome).toBe(0);
  });

  test('leave nothing to wait for a source', async () => {
    const { limiters, answer, refuse } = heldClient(30, 10);
    const first = await send(limiters[0], 'a');
    const late = await send(limiters[1], 'b');
    await refuse(NOSCRIPT, 0);
    advance(10);
    expect(await late.outcome).toBe(TIMEOUT);
    await refuse(NOSCRIPT, 1);
    expect(unansweredOf(limiters[1])).toBe(0);
    answer(2);
    expect(await first.outcome).toBe(0);
  });

  // Kills: what waits for a source ends with its sender, though its own deadline is later.
  test('free what waits for a source whose sender has timed out', async () => {
    const { client, limiters, answer, refuse } = heldClient(10, 30);
    const first = await send(limiters[0], 'a');
    const waiting = await send(limiters[1], 'b');
    await refuse(NOSCRIPT, 0, 1);
    advance(10);
    expect(await first.outcome).toBe(TIMEOUT);
    expect(client.names()).toEqual(['evalsha', 'evalsha', 'eval', 'evalsha']);
    answer(3);
    expect(await waiting.outcome).toBe(0);
  });

  test.each([[NOSCRIPT], ['TRYAGAIN later']])(
    'that have passed send nothing again after %s',
    async (message) => {
      const { client, limiters, refuse } = heldClient(10);
      const calls = [limiters[0]('a'), limiters[0]('b')].map(codeOf);
      await nextTurn();
      advance(10);
      expect(await Promise.all(calls)).toEqual([TIMEOUT, TIMEOUT]);
      await refuse(message, 0);
      expect([client.sent.length, unansweredOf(limiters[0])]).toEqual([1, 0]);
    },
  );

  test('leave the calls that still wait to be sent one by one', async () => {
    const { client, limiters, answer, refuse } = heldClient(10, 30);
    const [quick, slow] = limiters;
    const calls = [codeOf(quick('a')), slow('b')];
    await nextTurn();
    advance(10);
    await refuse('TRYAGAIN later', 0);
    expect(client.keys().slice(1)).toEqual([['n{b}']]);
    answer(1);
    expect(await Promise.all(calls)).toEqual([TIMEOUT, 0]);
    expect(unansweredOf(quick)).toBe(0);
  });
});
