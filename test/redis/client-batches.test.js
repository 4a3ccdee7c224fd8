// What a user's client is sent: fakes of clients that answer, refuse or hold back whole commands.
'use strict';

const assert = require('node:assert');
const RateLimiter = require('../..');
const { keySlot } = require('../../lib/stores/redis/cluster');
const { outcomeOf } = require('../support/outcome');

const REPLY = 'ERR_ROLLGATE_REDIS_REPLY';
const TIMEOUT = 'ERR_ROLLGATE_REDIS_TIMEOUT';
const AUTH = 'ERR_ROLLGATE_REDIS_AUTH';

const isScript = ([name]) => name.startsWith('eval');
const keysOf = (args) => (isScript(args) ? args.slice(3, 3 + Number(args[2])) : args.slice(1));
const refusal = (message) => Object.assign(new Error(message), { name: 'ReplyError' });
const times = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const nextTurn = () => new Promise(setImmediate);
const outcomesOf = (calls) => Promise.all(calls.map((call) => outcomeOf(call)));

/** Brief answers: each key is allowed. */
const allowing = (args) => (isScript(args) ? keysOf(args).map(() => 0) : 1);

/** Looks like node-redis; `answer(args)` decides, `sent` has the words of all commands. */
function fakeClient(answer = allowing, more = {}) {
  const sent = [];
  return {
    isOpen: true,
    sent,
    names: () => sent.map(([name]) => name),
    keys: () => sent.map(keysOf),
    async sendCommand(args) {
      sent.push(args);
      return answer(args);
    },
    ...more,
  };
}

function limiterOver(client, { commandTimeout = 10_000, maxQueue, ...options } = {}) {
  const redis = { client, commandTimeout, maxQueue };
  return RateLimiter({ redis, namespace: 'n', interval: 1000, maxInInterval: 9, ...options });
}

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
    expect([0, 1, 2].map((i) => groups[0].readDoubleLE(groups[0].length - 24 + 8 * i))).toEqual([
      2, 3, 7,
    ]);
  });

  test.each([
    ['together', (limiter) => [limiter('a'), limiter('b')]],
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

  // Kills: a full batch that waits for the end of the turn.
  test('is sent as soon as it is full', async () => {
    const client = fakeClient();
    const limiter = limiterOver(client);
    const calls = times(65, (id) => limiter(id));
    expect(client.keys().map(({ length }) => length)).toEqual([64]);
    await Promise.all(calls);
    expect(client.keys().map(({ length }) => length)).toEqual([64, 1]);
  });

  test('that is no check goes behind those that were asked before', async () => {
    const client = fakeClient();
    const limiter = limiterOver(client);
    const other = limiterOver(client, { namespace: 'other', algorithm: 'gcra' });
    const ends = [limiter('a'), other('a'), limiter.clear('a'), limiter('b'), other('b')];
    await outcomesOf([...ends, limiter.block('b', 5), limiter('c')]); // 0 is no answer to a block
    expect(client.keys()).toEqual([
      ['n{a}'],
      ['other{a}'],
      ['n{a}'],
      ['n{b}'],
      ['other{b}'],
      ['n{b}'],
      ['n{c}'],
    ]);
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

  // Kills: an error whose own code throws, so that its calls never end.
  test.each([
    ['DOMException', () => new DOMException('stopped', 'AbortError')],
    ['symbol', () => Object.assign(new Error(), { message: Symbol('why') })],
    ['bare object', () => Object.create(null)],
    ['getter', () => Object.defineProperty({}, 'message', { get: () => assert.fail() })],
  ])('fails with whatever its client rejects with: %s', async (_, makeError) => {
    const client = fakeClient(() => Promise.reject(makeError()));
    const limiter = limiterOver(client);
    const outcomes = await outcomesOf([limiter('a'), limiter('b')]);
    expect(outcomes).toEqual(times(2, () => 'ERR_ROLLGATE_REDIS_UNREACHABLE'));
    expect(limiter.stats().connection.unanswered).toBe(0);
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

describe('a reply', () => {
  test.each([
    ['a number too few', [0, 0]],
    ['a number too many', [0, 0, 0, 0]],
    ['something that is no number', [0, null, 0]],
    ['no list', 'OK'],
  ])('of %s fails all calls of its command', async (_what, reply) => {
    const limiter = limiterOver(fakeClient(() => reply));
    expect(await outcomesOf(times(3, (id) => limiter(id)))).toEqual([REPLY, REPLY, REPLY]);
  });

  test('that is an error fails the calls of its command alone', async () => {
    const limiter = limiterOver(
      fakeClient((args) => {
        if (keysOf(args).includes('n{64}')) throw refusal('ERR no');
        return allowing(args);
      }),
    );
    const outcomes = await outcomesOf(times(66, (id) => limiter(id)));
    expect(outcomes).toEqual([...times(64, () => 0), REPLY, REPLY]);
  });
});

describe('keys that cannot be judged together', () => {
  const refusingMany = (message) => (args) => {
    if (keysOf(args).length > 1) throw refusal(message);
    return allowing(args);
  };

  test.each([
    ['TRYAGAIN', 'TRYAGAIN Multiple keys request during rehashing of slot'],
    ['CROSSSLOT', "CROSSSLOT Keys in request don't hash to the same slot"],
    ['TRYAGAIN behind redirections', 'Too many redirections'],
  ])('are sent one by one after %s', async (what, message) => {
    const lastNodeError = what.includes('behind') ? refusal('TRYAGAIN later') : undefined;
    const client = fakeClient((args) => {
      if (keysOf(args).length === 1) return allowing(args);
      throw Object.assign(refusal(message), { lastNodeError });
    });
    const limiter = limiterOver(client);
    expect(await outcomesOf([limiter('a'), limiter('b'), limiter.attempt('c')])).toEqual([
      ...[0, 0, REPLY], // the full reply is not there
    ]);
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
    const message = 'NOPERM No permissions to access a key';
    const client = fakeClient(refusingMany(message));
    const limiters = ['n', 'm'].map((namespace) => limiterOver(client, { namespace }));
    expect(await outcomesOf([limiters[0]('a'), limiters[0]('b')])).toEqual([AUTH, AUTH]);
    expect(client.sent).toHaveLength(1);
    expect(await outcomesOf(limiters.map((limiter) => limiter('a')))).toEqual([0, 0]);
    client.sent.length = 0;
    const script = fakeClient(refusingMany('NOPERM this user may not run evalsha'));
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

  /** Commands that are answered by hand: `commands[i]` has `args`, answer() and refuse(message). */
  function heldClient() {
    const commands = [];
    const client = fakeClient(
      (args) =>
        new Promise((resolve, reject) => {
          const answer = () => resolve(allowing(args));
          commands.push({ args, answer, refuse: (message) => reject(refusal(message)) });
        }),
    );
    return { client, commands };
  }
  const codeOf = (call) => call.catch(({ code }) => code);
  const unansweredOf = (limiter) => limiter.stats().connection.unanswered;

  test('are those of each limiter, from the call on', async () => {
    const { client, commands } = heldClient();
    const quick = limiterOver(client, { commandTimeout: 10 });
    const slow = limiterOver(client, { commandTimeout: 30 });
    const calls = [quick('a'), slow('b'), slow('c')].map(codeOf);
    await nextTurn();
    expect(commands).toHaveLength(1);
    advance(10);
    expect(await calls[0]).toBe(TIMEOUT);
    expect([quick, slow].map((limiter) => limiter.stats().connection)).toMatchObject([
      { pending: 0, unanswered: 1 },
      { pending: 2, unanswered: 2 },
    ]);
    commands[0].answer();
    expect(await Promise.all(calls.slice(1))).toEqual([0, 0]);
    expect([quick, slow].map(unansweredOf)).toEqual([0, 0]);
    expect(quick.stats()).toMatchObject({ allowed: 0, errors: 1 }); // the late reply was dropped
  });

  test('end calls whose source a node never takes, and free what waits for it', async () => {
    const { client, commands } = heldClient();
    const sender = limiterOver(client, { commandTimeout: 30 });
    const limiter = limiterOver(client, { commandTimeout: 10 });
    const first = codeOf(sender('a'));
    await nextTurn();
    const waiting = codeOf(limiter('b'));
    await nextTurn();
    for (const { refuse } of commands) refuse('NOSCRIPT No matching script');
    await nextTurn();
    expect(client.names()).toEqual(['evalsha', 'evalsha', 'eval']);
    advance(10);
    expect([await waiting, unansweredOf(limiter)]).toEqual([TIMEOUT, 0]);
    const late = codeOf(limiter('c'));
    await nextTurn();
    commands[3].refuse('NOSCRIPT No matching script');
    await nextTurn();
    advance(5);
    const later = codeOf(limiter('d'));
    await nextTurn();
    commands[4].refuse('NOSCRIPT No matching script');
    await nextTurn();
    advance(5);
    expect(await late).toBe(TIMEOUT);
    expect(client.sent).toHaveLength(5);
    advance(5);
    expect(await later).toBe(TIMEOUT);
    advance(5);
    expect([await first, unansweredOf(sender)]).toEqual([TIMEOUT, 1]);
    const next = sender('e');
    await nextTurn();
    commands[5].refuse('NOSCRIPT No matching script');
    await nextTurn();
    expect(client.names().slice(5)).toEqual(['evalsha', 'eval']);
    commands[6].answer();
    expect(await next).toBe(0);
  });

  test('leave nothing to wait for a source', async () => {
    const { client, commands } = heldClient();
    const [slow, quick] = [30, 10].map((commandTimeout) => limiterOver(client, { commandTimeout }));
    const first = slow('a');
    await nextTurn();
    const late = codeOf(quick('b'));
    await nextTurn();
    commands[0].refuse('NOSCRIPT No matching script');
    await nextTurn();
    advance(10);
    expect(await late).toBe(TIMEOUT);
    commands[1].refuse('NOSCRIPT No matching script');
    await nextTurn();
    expect(unansweredOf(quick)).toBe(0);
    commands[2].answer();
    expect(await first).toBe(0);
  });

  test('free what waits for a source whose sender has timed out', async () => {
    const { client, commands } = heldClient();
    const sender = limiterOver(client, { commandTimeout: 10 });
    const limiter = limiterOver(client, { commandTimeout: 30 });
    const first = codeOf(sender('a'));
    await nextTurn();
    const waiting = limiter('b');
    await nextTurn();
    for (const { refuse } of commands) refuse('NOSCRIPT No matching script');
    await nextTurn();
    advance(10);
    expect(await first).toBe(TIMEOUT);
    expect(client.names()).toEqual(['evalsha', 'evalsha', 'eval', 'evalsha']);
    commands[3].answer();
    expect(await waiting).toBe(0);
  });

  test.each([['NOSCRIPT No matching script'], ['TRYAGAIN later']])(
    'that have passed send nothing again after %s',
    async (message) => {
      const { client, commands } = heldClient();
      const limiter = limiterOver(client, { commandTimeout: 10 });
      const calls = [limiter('a'), limiter('b')].map(codeOf);
      await nextTurn();
      advance(10);
      expect(await Promise.all(calls)).toEqual([TIMEOUT, TIMEOUT]);
      commands[0].refuse(message);
      await nextTurn();
      expect([client.sent.length, unansweredOf(limiter)]).toEqual([1, 0]);
    },
  );

  test('leave the calls that still wait to be sent one by one', async () => {
    const { client, commands } = heldClient();
    const [quick, slow] = [10, 30].map((commandTimeout) => limiterOver(client, { commandTimeout }));
    const calls = [codeOf(quick('a')), slow('b')];
    await nextTurn();
    advance(10);
    commands[0].refuse('TRYAGAIN later');
    await nextTurn();
    expect(client.keys().slice(1)).toEqual([['n{b}']]);
    commands[1].answer();
    expect(await Promise.all(calls)).toEqual([TIMEOUT, 0]);
    expect(unansweredOf(quick)).toBe(0);
  });
});
