// Asks a server what a table says: how often, which request, the status of each answer, and facts about it.
'use strict';

const { once } = require('node:events');
const http = require('node:http');
const { text } = require('node:stream/consumers');
const { fetchText } = require('../middleware/apps');

/** The answer to a client of another address of the loopback, which fetch cannot be. */
async function getFrom(url, localAddress) {
  const [response] = await once(http.get(url, { agent: false, localAddress }), 'response');
  const headers = new Headers(response.headers);
  return { status: response.statusCode, headers, text: await text(response) };
}

/** `ask(path, init)` for this server; with `init.localAddress`, from that address. */
const askAt =
  (url) =>
  (path = '', init = {}) =>
    init.localAddress
      ? getFrom(`${url}/${path}`, init.localAddress)
      : fetchText(`${url}/${path}`, init);

/**
 * Goes through rows in their order: functions are called, others are `[times, request, status, facts]`. A request is a
 * path, or [path, init]. Facts are texts or patterns, by the name of a header or as `text`.
 */
async function converse(ask, rows) {
  for (const [i, row] of rows.entries()) {
    if (typeof row === 'function') {
      await row(ask);
      continue;
    }
    const [times, request, status, facts = {}] = row;
    const expected = Object.entries(facts).map(([name, fact]) => [
      name,
      fact instanceof RegExp ? expect.stringMatching(fact) : fact,
    ]);
    for (let time = 1; time <= times; time++) {
      const answer = await ask(...[].concat(request));
      const told = expected.map(([name]) => [
        name,
        name === 'text' ? answer.text : answer.headers.get(name),
      ]);
      const place = { row: i + 1, time };
      expect({ ...place, status: answer.status, ...Object.fromEntries(told) }).toEqual({
        ...place,
        status,
        ...Object.fromEntries(expected),
      });
    }
  }
}

const having = (headers, path = '') => [path, { headers }];
const from = (address, path = '') => having({ 'x-forwarded-for': address }, path);

const post = (path, body, headers) => [
  path,
  {
    method: 'POST',
    ...(body instanceof URLSearchParams
      ? { body, headers }
      : {
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json', ...headers },
        }),
  },
];

module.exports = { askAt, converse, from, having, post };
