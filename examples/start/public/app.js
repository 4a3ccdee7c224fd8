// Connects the page: controls send requests; responses and events update the model and the screen.

import { Pacer } from './pacer.js';
import { Picture } from './picture.js';
import { RollingWindow } from './rolling-window.js';
import { ServerClock } from './server-clock.js';

const SHOWN_HEADERS = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'RateLimit-Policy',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
];

const HINTS = {
  action:
    'The classical rule, countBlocked: true. A client that keeps trying stays blocked: every refusal counts as an action.',
  lenient:
    'countBlocked: false. Only allowed actions are counted, so however fast requests come, some always pass.',
};

const SLOWEST_PER_SECOND = 0.2;
const FASTEST_PER_SECOND = 10;
const ANNOUNCE_EVERY_MS = 1500;
const CALM_FRAME_MS = 500;

const $ = (id) => document.getElementById(id);
const clock = new ServerClock();
const picture = new Picture($('picture'));
const pacer = new Pacer(sendOne);
const prefersCalm = matchMedia('(prefers-reduced-motion: reduce)');
const windows = new Map();
const tally = { allowed: 0, refused: 0 };
let startedAt;
let isConnected = false;

// ---- events of the server ----

const events = new EventSource('api/events');
events.addEventListener('setup', ({ data }) => setUp(JSON.parse(data)));
events.addEventListener('decision', ({ data }) => record(JSON.parse(data)));
events.addEventListener('error', () => {
  isConnected = false;
  stopSending();
});

/** The first event of each connection. A different start time means a new server with another clock. */
function setUp(setup) {
  clock.reset();
  clock.observe(setup.now);
  isConnected = true;
  if (setup.startedAt === startedAt) return;
  startedAt = setup.startedAt;
  windows.clear();
  for (const { route, countBlocked } of setup.routes) {
    windows.set(route, new RollingWindow({ ...setup, countBlocked }));
  }
  $('rule-max').textContent = setup.maxInInterval;
  $('rule-interval').textContent = setup.interval / 1000;
  picture.setWindow(setup);
}

function record(action) {
  clock.observe(action.at);
  windows.get(action.route)?.add(action);
}

// ---- requests ----

function chosenRoute() {
  return document.querySelector('input[name="route"]:checked').value;
}

async function sendOne() {
  const path = `/api/${chosenRoute()}`;
  try {
    const response = await fetch(path, { cache: 'no-store' });
    const decision = await response.json();
    record(decision);
    showAnswer(path, response, decision);
  } catch {
    stopSending();
    $('last-request').textContent = `GET ${path}`;
    $('last-status').textContent = 'no answer';
    $('last-status').dataset.outcome = 'none';
  }
}

function showAnswer(path, response, decision) {
  const outcome = decision.allowed ? 'allowed' : 'refused';
  tally[outcome] += 1;
  $(`${outcome}-count`).textContent = tally[outcome];
  $('last-request').textContent = `GET ${path}`;
  $('last-status').textContent = `${response.status} ${response.statusText}`;
  $('last-status').dataset.outcome = outcome;
  $('last-status').dataset.n = decision.n;
  $('last-headers').replaceChildren(
    ...SHOWN_HEADERS.filter((name) => response.headers.has(name)).map((name) => {
      const row = document.createElement('div');
      const [term, value] = [document.createElement('dt'), document.createElement('dd')];
      term.textContent = name;
      value.textContent = response.headers.get(name);
      row.append(term, value);
      return row;
    }),
  );
  const { allowed, timeLeft, actionsLeft, resetIn, blockedBy } = decision;
  $('last-decision').textContent = JSON.stringify(
    { allowed, timeLeft, actionsLeft, resetIn, blockedBy },
    null,
    1,
  ).replaceAll('\n', ' ');
  announce(decision);
}

// ---- controls ----

function startSending() {
  pacer.start();
  showSending();
}

function stopSending() {
  pacer.stop();
  showSending();
}

function showSending() {
  $('start-stop').textContent = pacer.isRunning ? 'Stop' : 'Start';
  $('start-stop').setAttribute('aria-pressed', String(pacer.isRunning));
}

/** The slider is logarithmic: each step changes the pace by the same factor. */
function readPace() {
  const share = $('pace').value / 100;
  const perSecond = SLOWEST_PER_SECOND * (FASTEST_PER_SECOND / SLOWEST_PER_SECOND) ** share;
  pacer.pauseMs = 1000 / perSecond;
  const text =
    perSecond < 0.95
      ? `1 every ${(1 / perSecond).toFixed(1)} s`
      : `${perSecond.toFixed(perSecond < 9.5 ? 1 : 0).replace('.0', '')} per second`;
  $('pace-text').textContent = text;
  $('pace').setAttribute('aria-valuetext', text);
}

function readRoute() {
  const route = chosenRoute();
  $('route-hint').textContent = HINTS[route];
  $('curl').textContent = `curl -i ${location.origin}/api/${route}`;
}

$('send-one').addEventListener('click', sendOne);
$('start-stop').addEventListener('click', () => (pacer.isRunning ? stopSending() : startSending()));
$('pace').addEventListener('input', readPace);
$('routes').addEventListener('change', readRoute);
readPace();
readRoute();

// ---- display ----

/** For screen readers, and seldom enough that users can listen. */
let announcedAt = -Infinity;
function announce({ allowed, timeLeft, actionsLeft }) {
  const now = performance.now();
  if (now - announcedAt < ANNOUNCE_EVERY_MS) return;
  announcedAt = now;
  $('announcement').textContent = allowed
    ? `Allowed, ${actionsLeft} left.`
    : `Refused, ${seconds(timeLeft)} seconds to wait.`;
}

const seconds = (ms) => (Math.ceil(ms / 100) / 10).toFixed(1);

function show() {
  const window = windows.get(chosenRoute());
  if (!isConnected || window === undefined) {
    showVerdict('lost', 'No server', 'Waiting for the server to answer.');
    return;
  }
  const now = clock.now();
  window.forgetBefore(now - 2 * window.interval);
  const view = window.at(now);
  picture.draw(view, now);
  setText('used', view.used);
  setText('remaining', view.remaining);
  setText('time-left', seconds(view.timeLeft));
  if (view.isFull) showVerdict('full', 'Full', 'An action now is refused.');
  else showVerdict('open', 'Open', 'An action now is allowed.');
}

function showVerdict(state, word, text) {
  if ($('verdict').dataset.state !== state) $('verdict').dataset.state = state;
  setText('verdict-word', word);
  setText('verdict-text', text);
}

function setText(id, value) {
  const text = String(value);
  if ($(id).textContent !== text) $(id).textContent = text;
}

let shownAt = -Infinity;
function onFrame(time) {
  if (!prefersCalm.matches || time - shownAt >= CALM_FRAME_MS) {
    shownAt = time;
    show();
  }
  requestAnimationFrame(onFrame);
}
requestAnimationFrame(onFrame);
