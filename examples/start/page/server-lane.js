// Real requests to the server of `npm start`, in a lane of their own.
'use strict';

const { placeLanes } = require('./arrangement');
const { Lane } = require('./lane');
const { WINDOWS } = require('./presets');

const PACE_MS = 100;

const MEANINGS = {
  'RateLimit-Policy': 'the limit, and its window in seconds',
  'RateLimit-Limit': 'how many in a window',
  'RateLimit-Remaining': 'how many more are allowed now',
  'RateLimit-Reset': 'seconds until there is more room',
  'Retry-After': 'seconds until a request is allowed',
};

const $ = (id) => document.getElementById(id);

/** The server writes its limit into the page; as a file, the page has none. */
function startServerLane(tip) {
  const { serverLimit: limit, serverWindowMs: windowMs } = document.body.dataset;
  if (limit === undefined) return;
  $('server-lane').hidden = false;
  $('server-missing').hidden = true;
  new ServerLane(tip, Number(limit), Number(windowMs));
}

class ServerLane {
  #requests = [];
  #from;
  #timer;
  #frame;

  constructor(tip, limit, windowMs) {
    Object.assign(this, { tip, limit, windowMs });
    this.svg = $('server-requests');
    this.lane = new Lane(this.svg, (request, mark) => this.#point(request, mark));
    $('server-rule').textContent =
      `GET /api/action: at most ${limit} in any ${windowMs / 1000} s, the same limit for curl.`;
    $('send').addEventListener('click', () => this.#send());
    $('send-many').addEventListener('click', () => (this.#timer ? this.#stop() : this.#sendMany()));
    document.addEventListener('visibilitychange', () => {
      if (document.hidden) this.#stop();
    });
    new ResizeObserver(() => this.#layOut()).observe(this.svg);
    this.#from = performance.now();
    this.#layOut();
  }

  async #send() {
    try {
      const { status, headers } = await fetch('api/action', { cache: 'no-store' });
      const at = performance.now();
      const used = this.limit - Number(headers.get('RateLimit-Remaining'));
      const decision = { allowed: status === 200, limits: [{ used }] };
      this.#requests.push({ at, client: 0, decision, status, headers });
      $('answer').textContent = `${status} ${decision.allowed ? 'allowed' : 'refused'}`;
    } catch {
      this.#stop();
      $('answer').textContent = 'No answer: the server has stopped.';
    }
    this.#layOut();
    this.#animate();
  }

  #sendMany() {
    this.#timer = setInterval(() => this.#send(), PACE_MS);
    $('send-many').textContent = 'Stop';
  }

  #stop() {
    clearInterval(this.#timer);
    this.#timer = undefined;
    $('send-many').textContent = '10 a second';
  }

  /** The axis begins with a request. Once it is full, it moves on by whole windows. */
  #layOut() {
    const now = performance.now();
    const span = WINDOWS * this.windowMs;
    while (now > this.#from + span) this.#from += this.windowMs;
    this.#requests = this.#requests.filter(({ at }) => at >= this.#from);
    if (this.#requests.length === 0) this.#from = now;
    const [from, to] = [this.#from, this.#from + span];
    const { limit, windowMs } = this;
    const measure = Lane.measure(this.svg, from, to);
    const { size, axis, lanes } = placeLanes(
      [this.#requests],
      measure.xOf,
      measure.heightForRequests,
    );
    const place = { rows: lanes[0], size, axis, measure, from, to };
    // The times are those of the browser, which are too late by different amounts to be counted by.
    const run = { requests: this.#requests, limit, windowMs, hasBracket: false };
    this.lane.setRun({ ...place, ...run });
    this.lane.show(now);
  }

  /** Until the axis is empty again. */
  #animate() {
    cancelAnimationFrame(this.#frame);
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    const now = performance.now();
    if (now > this.#from + WINDOWS * this.windowMs) this.#layOut();
    else this.lane.show(now);
    if (this.#requests.length > 0) this.#frame = requestAnimationFrame(() => this.#animate());
  }

  #point(request, mark) {
    if (request === undefined) return this.tip.hide();
    const { status, headers } = request;
    const numbers = Object.entries(MEANINGS)
      .filter(([name]) => headers.has(name))
      .map(([name, meaning]) => [name, headers.get(name), meaning]);
    this.tip.show(`GET /api/action: ${status}`, numbers, mark);
  }
}

module.exports = { startServerLane };
