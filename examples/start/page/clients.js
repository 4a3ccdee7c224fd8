// Lets the clients of a preset send their requests, each when it is due.
'use strict';

const { PRESETS, WINDOWS } = require('./presets');

/**
 * The requests of a preset's clients, from the oldest to the newest. `attempt(at, client, index)` returns what it knows
 * of a request: its `decision`, which the client gets, and whatever else belongs to it.
 */
function runClients(settings, attempt) {
  const clients = PRESETS[settings.preset].clients(settings);
  const requests = [];
  const next = clients.map((client) => client.next());
  for (;;) {
    const client = earliest(next);
    if (client === undefined || next[client].value >= WINDOWS * settings.windowMs) return requests;
    const at = next[client].value;
    const request = { at, client, ...attempt(at, client, requests.length) };
    requests.push(request);
    next[client] = clients[client].next(request.decision);
  }
}

/** The index of the client whose next request comes first; undefined if all have ended. */
function earliest(next) {
  let first;
  next.forEach(({ done, value }, client) => {
    if (!done && (first === undefined || value < next[first].value)) first = client;
  });
  return first;
}

module.exports = { runClients };
