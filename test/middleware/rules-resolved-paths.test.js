// Paths that may be resolved behind the middleware: the rules of all they may lead to decide.
'use strict';

const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const fc = require('fast-check');
const express = require('express');
const express4 = require('express-4');
const { rateLimit } = require('../..');
const { formsOf, normalForm, unescapePath } = require('../../lib/middleware/rules/paths');
const { sendTarget } = require('../support/send-target');

let folder;
const servers = [];
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'rollgate-static-'));
  for (const name of ['secret', 'public']) {
    fs.mkdirSync(path.join(folder, name));
    fs.writeFileSync(path.join(folder, name, 'f.txt'), name);
  }
});
afterAll(() => {
  for (const server of servers) server.close();
  fs.rmSync(folder, { recursive: true });
});

async function listen(handler) {
  const server = http.createServer(handler).listen(0, '127.0.0.1');
  servers.push(server);
  await new Promise((resolve) => server.once('listening', resolve));
  return server.address().port;
}

/** Answers with the status of each target, and with the first words of what came. */
async function answersOf(handler, targets) {
  const port = await listen(handler);
  const answers = [];
  for (const target of targets) {
    const { status, body } = await sendTarget(port, target);
    answers.push([target, status, body.slice(0, 6)]);
  }
  return answers;
}

const FRAMEWORKS = [
  ['Express 5', express],
  ['Express 4', express4],
];

describe.each(FRAMEWORKS)('express.static of %s', (_name, createApp) => {
  const files = (rules) => {
    return createApp().use(rateLimit({ rules })).use(createApp.static(folder));
  };
  const SECRET = [
    '/secret/f.txt',
    '/./secret/f.txt',
    '/%2e/secret/f.txt',
    '/x/../secret/f.txt',
    '/x/%2E./secret/f.txt',
    '/secret%2Ff.txt',
    '/%2Fsecret/f.txt',
    '/.%2Fsecret/f.txt',
    '/x%2F..%2Fsecret%2ff.txt',
    '/x%2Fy/../../secret/f.txt',
    '/x\\y/../secret/f.txt',
    '/x//../secret/f.txt',
    '/public/../secret/f.txt',
    '/public/%2e%2e%2fsecret/f.txt',
  ];

  test('serves nothing past a rule, whatever else the path says', async () => {
    for (const before of [
      [],
      [{ path: '/public' }],
      [
        { path: '/public', limit: 1000 },
        { path: '/x', limit: 1000 },
      ],
    ]) {
      const rules = [...before, { path: '/secret', limit: 0 }];
      const answers = await answersOf(files(rules), [...SECRET, '/public/f.txt']);
      expect(answers.filter(([, , body]) => body === 'secret')).toEqual([]);
      expect(answers.at(-1)).toEqual(['/public/f.txt', 200, 'public']);
      expect(answers.slice(0, -1).map(([, status]) => status)).toEqual(SECRET.map(() => 429));
    }
  });

  test('knows these spellings: without the rule it serves them', async () => {
    const answers = await answersOf(files([{ path: '/other', limit: 0 }]), SECRET);
    expect(answers.filter(([, , body]) => body === 'secret').length).toBeGreaterThan(10);
  });

  test('nor does it in paths that are made up', async () => {
    const port = await listen(files([{ path: '/public' }, { path: '/secret', limit: 0 }]));
    const pieces = [
      '/',
      '\\',
      '//',
      '.',
      '..',
      '/../',
      '%2e',
      '%2f',
      '%5C',
      'x',
      'public',
      'secret',
    ];
    const target = fc
      .array(fc.constantFrom(...pieces), { maxLength: 6 })
      .map((parts) => `/${parts.join('')}/f.txt`);
    const isPast = async (text) => (await sendTarget(port, text)).body === 'secret';
    await fc.assert(
      fc.asyncProperty(target, async (text) => expect(await isPast(text)).toBe(false)),
      { numRuns: 500, seed: 7 },
    );
  });

  test('perPath is no count for each spelling of a file', async () => {
    const answers = await answersOf(files([{ path: '/', limit: 1, perPath: true }]), SECRET);
    const served = answers.filter(([, , body]) => body === 'secret').map(([target]) => target);
    // Whether backslashes are slashes nobody knows: on Windows that is another file.
    expect(served).toEqual(['/secret/f.txt', '/x\\y/../secret/f.txt']);
  });
});

describe('a path that may stand for several', () => {
  const ask = (rules, options) => {
    const middleware = rateLimit({ rules, clock: () => 5000, ...options });
    return (url) => {
      const req = { method: 'GET', url, headers: {}, ip: '192.0.2.1' };
      let passed = false;
      const res = { headersSent: true, end() {}, once() {} };
      middleware(req, res, () => {
        passed = true;
      });
      return { passed, limit: req.rateLimit?.limit, used: req.rateLimit?.used };
    };
  };

  test('is limited where one of them is: an exception is no way around', () => {
    const get = ask([{ path: '/secret/free' }, { path: '/secret', limit: 0 }]);
    expect(get('/secret/free/x').passed).toBe(true);
    expect(get('/secret/free/../paid').passed).toBe(false);
    expect(get('/secret/paid/../free').passed).toBe(false);
    expect(get('/secret/../x').passed).toBe(false);
    expect(get('/x/../secret').passed).toBe(false);
    expect(get('/x/../y').passed).toBe(true);
  });

  test('counts on the rules of all, and passes where each lets it', () => {
    const get = ask([
      { path: '/a', limit: 5 },
      { path: '/b', limit: 2 },
    ]);
    expect(get('/a/../b')).toEqual({ passed: true, limit: 5, used: 1 });
    expect(get('/b')).toEqual({ passed: true, limit: 2, used: 2 });
    expect(get('/a/../b').passed).toBe(false);
    expect(get('/a')).toEqual({ passed: true, limit: 5, used: 2 }); // refused by /b, it did not get here
  });

  test('counts once in a zone, and a rule on trial in it takes no place of one in force', () => {
    const logger = { warn: jest.fn(), error: jest.fn() };
    const zone = { zone: 'z', limit: 2 };
    const rules = [
      { path: '/a', ...zone, shadow: true },
      { path: '/b', ...zone },
    ];
    for (const url of ['/a/../b', '/b/../a']) {
      const get = ask(rules, { logger });
      expect([get(url).used, get(url).used, get(url).passed]).toEqual([1, 2, false]);
    }
    expect(logger.warn).not.toHaveBeenCalled();
  });

  test('is taken back on each with skipFailedRequests', () => {
    const rules = [
      { path: '/a', limit: 5 },
      { path: '/b', limit: 5 },
    ];
    const middleware = rateLimit({ rules, skipFailedRequests: true, clock: () => 5000 });
    const get = (url, statusCode) => {
      const req = { method: 'GET', url, headers: {}, ip: '192.0.2.1' };
      const listeners = {};
      const once = (name, listener) => {
        listeners[name] = listener;
      };
      middleware(req, { headersSent: true, end() {}, once, statusCode }, () => {});
      listeners.finish();
      return req.rateLimit.used;
    };
    expect([get('/a/../b', 500), get('/a', 200), get('/b', 200)]).toEqual([1, 1, 1]);
  });

  test('a RegExp is tested on the path as it came alone', () => {
    const get = ask([{ path: /^\/secret/, limit: 0 }]);
    expect(get('/secret/../x').passed).toBe(false);
    expect(get('/x/../secret').passed).toBe(true);
  });
});

test.each([
  ['/a/b', ['/a/b']],
  ['/.well-known/x..y/...', ['/.well-known/x..y/...']],
  ['/A%2FB', ['/a/b', '/a%2fb']],
  ['/a%2Fb/../c', ['/a/c', '/c', '/a%2fb/../c']],
  ['/a\\b/../c', ['/a/c', '/c', '/a\\b/../c']],
  ['/a%5cb/../c', ['/a/c', '/c', '/a\\b/../c']],
  ['/a//../b', ['/b', '/a/b', '/a/../b']],
  ['/../../a', ['/a', '/../../a']],
  ['/a/%2E%2e', ['', '/a/..']],
  ['/./%2541%252f', ['/%2541%252f', '/./%2541%252f']],
])('the forms of %j', (text, forms) => {
  expect(formsOf(text)).toEqual(forms);
});

test('escapes of every UTF-8 character are unescaped, and nothing else is', () => {
  const char = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).map(encodeURIComponent),
    fc.constantFrom('%80', '%c0%80', '%e0%80%80', '%ed%a0%80', '%f4%90%80%80', '%ff', '%c3', '%'),
    fc.constantFrom('%2F', '%25', 'a', '/'),
  );
  const expected = (text) => {
    try {
      return /^%(?:2f|25)$/i.test(text) ? text : decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  fc.assert(
    fc.property(fc.array(char), (chars) => {
      const apart = chars.map((text) => `${text}-`);
      expect(unescapePath(apart.join(''))).toBe(chars.map((text) => `${expected(text)}-`).join(''));
    }),
    { numRuns: 1000, seed: 7 },
  );
});

// Work that grows with the square of the length would run into Jest's time limit.
test('a hostile path costs no more than passes over it', () => {
  const parts = [
    '/%ff',
    '%ff',
    '%61',
    '/%2e',
    '/..',
    '/a/..',
    '\\',
    '%5c',
    '%2f',
    '//',
    '%',
    '/%2e%2F\\a%ff',
  ];
  for (const part of parts) {
    const path = `/x${part.repeat(400_000 / part.length)}`;
    expect(normalForm(path).length).toBeLessThanOrEqual(path.length);
    for (const form of formsOf(path)) expect(form.length).toBeLessThanOrEqual(path.length);
  }
});
