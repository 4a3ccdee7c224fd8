// Sends every decision to open pages as a server-sent event, including decisions on requests by curl.
'use strict';

const { performance } = require('node:perf_hooks');
const { ipKeyGenerator } = require('../..'); // in your application: require('rollgate')

const MOST_KEPT = 2000;

/** A client receives only the events of its own requests; a new page first those of the last `keepMs`. */
function createEventStream({ setup, keepMs }) {
  const startedAt = Date.now();
  const subscribers = new Set();
  let published = 0;
  let recent = [];

  function publish(key, decision) {
    published += 1;
    const event = { n: published, ...decision };
    recent.push({ key, event });
    if (recent.length > MOST_KEPT) recent = stillRecent();
    for (const subscriber of subscribers) {
      if (subscriber.key === key) send(subscriber.res, 'decision', event);
    }
    return event;
  }

  function stillRecent() {
    const oldest = performance.now() - keepMs;
    return recent.filter(({ event }) => event.at > oldest).slice(-MOST_KEPT / 2);
  }

  function subscribe(req, res) {
    const subscriber = { key: ipKeyGenerator(req.ip), res };
    res.set({ 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    send(res, 'setup', { ...setup, startedAt, now: performance.now() });
    recent = stillRecent();
    for (const { key, event } of recent) {
      if (key === subscriber.key) send(res, 'decision', event);
    }
    subscribers.add(subscriber);
    res.on('close', () => subscribers.delete(subscriber));
  }

  return { publish, subscribe };
}

function send(res, name, data) {
  res.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
}

module.exports = { createEventStream };
