// Connects the page: settings make a run, the player moves through it, lanes draw it.
'use strict';

const { placeLanes } = require('./arrangement');
const { expressCode, limiterCode, slotsCode, slotsExpressCode } = require('./code');
const { Lane } = require('./lane');
const { hasLeases, runLeases } = require('./leases');
const { Player } = require('./player');
const { PRESETS, WINDOWS } = require('./presets');
const { startServerLane } = require('./server-lane');
const { ALGORITHMS, mostInAnyWindow, simulate } = require('./simulation');
const { mostAtOnce } = require('./slots');
const { SlotsLane } = require('./slots-lane');
const { numbersOf, numbersOfSlot, Tip } = require('./tip');

/** A screen reader gets a result when the settings have rested for this time. */
const ANNOUNCE_AFTER_MS = 1000;

const $ = (id) => document.getElementById(id);
const isCalm = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

const settings = { preset: 'burst', limit: 5, windowMs: 10_000, countBlocked: false, max: 3 };
const tip = new Tip($('tip'));
const player = new Player(show);
/** The lane and the request that are pointed at. */
let pointed;
let runs = [];
/** The permits that were lent, for each lane. */
let lent = [];

// ---- lanes ----

const lanes = ALGORITHMS.map((algorithm) => {
  const element = $('lane').content.firstElementChild.cloneNode(true);
  element.dataset.algorithm = algorithm.name;
  const part = (name) => element.querySelector(`.${name}`);
  const svg = element.querySelector('svg');
  svg.setAttribute('aria-label', `Requests to ${algorithm.name}. Arrow keys move between them.`);
  part('name').textContent = algorithm.name;
  $('lanes').append(element);
  const lane = new Lane(svg, (request, mark) => point(lane, request, mark));
  svg.addEventListener('keydown', (event) => moveFocus(event, lane));
  return { algorithm, element, part, svg, lane };
});

const slots = new SlotsLane($('slots-lane'), (request, mark) => point(slots.lane, request, mark));
slots.svg.addEventListener('keydown', (event) => moveFocus(event, slots.lane));

/** The times of all requests. */
const times = () => [...runs.flat(), ...slots.requests].map(({ at }) => at);

function point(lane, request, mark) {
  pointed = request && { lane, request };
  for (const old of document.querySelectorAll('.pointed')) old.classList.remove('pointed');
  if (request === undefined) {
    tip.hide();
  } else {
    mark.classList.add('pointed');
    const numbers = lane === slots.lane ? numbersOfSlot(request) : numbersOf(request);
    tip.show(titleOf(request), numbers, mark);
  }
  show();
}

function titleOf({ at, client, decision }) {
  const process = PRESETS[settings.preset].limiters ? ` from process ${'AB'[client]}` : '';
  return `Request${process} at ${(at / 1000).toFixed(2)} s: ${decision.allowed ? 'allowed' : 'refused'}`;
}

/** To the request of the next lane that came at about the same time. */
function moveFocus(event, lane) {
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (step === undefined) return;
  event.preventDefault();
  const all = [...lanes.map((each) => each.lane), slots.lane];
  all[all.indexOf(lane) + step]?.focusAt(pointed?.request.at ?? 0);
}

// ---- runs ----

/** Computes the run of these settings and draws it, up to the same part of it as before. */
function run() {
  const share = player.end === 0 ? 1 : player.time / player.end;
  runs = simulate(settings);
  lent = ALGORITHMS.map((algorithm) =>
    hasLeases(settings, algorithm) ? runLeases(settings).lent : [],
  );
  slots.run(settings);
  player.end = WINDOWS * settings.windowMs;
  describe();
  layOut();
  $('time').max = player.end;
  player.seek(share * player.end);
  announceSoon();
}

function layOut() {
  const { end } = player;
  const measure = Lane.measure(lanes[0].svg, 0, end);
  const { size, axis, lanes: rows } = placeLanes(runs, measure.xOf, measure.heightForRequests);
  lanes.forEach(({ lane, algorithm }, i) => {
    const { limit, windowMs } = settings;
    const place = { rows: rows[i], size, axis, measure, from: 0, to: end };
    lane.setRun({ ...algorithm, ...place, requests: runs[i], lent: lent[i], limit, windowMs });
  });
  slots.layOut(end);
}

/** Everything on the page that names a setting. */
function describe() {
  const { limit, windowMs, countBlocked, max } = settings;
  const preset = PRESETS[settings.preset];
  const seconds = (ms) => `${Number((ms / 1000).toFixed(2))} s`;
  for (const element of document.querySelectorAll('[data-limit]')) setText(element, String(limit));
  for (const element of document.querySelectorAll('[data-max]')) setText(element, String(max));
  for (const element of document.querySelectorAll('[data-window]'))
    setText(element, seconds(windowMs));
  lanes.forEach(({ algorithm, part }, i) => {
    const own = algorithm.text(limit, seconds(windowMs), seconds(windowMs / limit));
    setText(part('rule'), hasLeases(settings, algorithm) ? textOfLeases(runs[i]) : own);
  });
  setText($('traffic'), preset.traffic(settings));
  setText($('lesson'), preset.lesson(settings));
  for (const button of $('presets').children) {
    button.setAttribute('aria-pressed', String(button.value === settings.preset));
  }
  $('limit').value = limit;
  $('max').value = max;
  $('window').value = windowMs / 1000;
  $('window').setAttribute('aria-valuetext', seconds(windowMs));
  $('count-blocked').checked = countBlocked;
  $('legend').dataset.clients = preset.limiters ? 2 : 1;
  $('lent').hidden = preset.limiters !== 'leases';
  $('ticks').replaceChildren(
    ...Array.from({ length: WINDOWS + 1 }, (_, i) => {
      const tick = document.createElement('span');
      tick.textContent = seconds(i * windowMs);
      return tick;
    }),
  );
  showCode();
}

function textOfLeases(requests) {
  const local = requests.filter(({ isLocal }) => isLocal).length;
  return `Lends permits: ${local} of ${requests.length} ask no Redis.`;
}

function show() {
  const { time, isPlaying, isAtEnd } = player;
  for (const { lane, element, part } of lanes) {
    const moment = pointed?.lane === lane ? pointed.request.at : time;
    const { most, isOver, allowed, refused } = lane.show(time, moment);
    setText(part('count'), String(most));
    setText(part('tally'), `${allowed} allowed, ${refused} refused`);
    element.classList.toggle('over', isOver);
    element.style.setProperty('--excess', `${Math.min(100, (100 * most) / settings.limit - 100)}%`);
  }
  slots.show(time);
  $('time').value = time;
  $('time').setAttribute('aria-valuetext', `${(time / 1000).toFixed(1)} s`);
  const action = isPlaying ? 'pause' : isAtEnd ? 'replay' : 'play';
  $('play').dataset.action = action;
  setText(
    $('play').querySelector('span'),
    { pause: 'Pause', replay: 'Replay', play: 'Play' }[action],
  );
}

function restart() {
  run();
  if (isCalm()) {
    player.seek(player.end);
  } else {
    // Not before the first requests: an empty picture explains nothing.
    const first = Math.min(player.end, ...times());
    player.seek(Math.max(0, first - settings.windowMs / 10));
    player.play();
  }
}

let announcing;
function announceSoon() {
  clearTimeout(announcing);
  announcing = setTimeout(() => {
    const { limit, windowMs } = settings;
    const results = ALGORITHMS.map(
      ({ name }, i) => `${name} ${mostInAnyWindow(runs[i], windowMs).count}`,
    );
    $('announcement').textContent =
      `${PRESETS[settings.preset].name}: most requests in any ${windowMs / 1000} seconds, with a limit of ${limit}: ${results.join(', ')}. ` +
      `Most actions at once, with ${settings.max} slots: ${mostAtOnce(slots.requests)}.`;
  }, ANNOUNCE_AFTER_MS);
}

// ---- controls ----

for (const [value, { name }] of Object.entries(PRESETS)) {
  const button = document.createElement('button');
  Object.assign(button, { type: 'button', value, textContent: name });
  $('presets').append(button);
}
$('presets').addEventListener('click', ({ target }) => {
  if (target.value === undefined) return;
  settings.preset = target.value;
  const { countBlocked = false, leastLimit = 1 } = PRESETS[target.value];
  settings.countBlocked = countBlocked;
  settings.limit = Math.max(settings.limit, leastLimit);
  restart();
});

function onSetting(id, read) {
  $(id).addEventListener('input', ({ target }) => {
    read(target);
    run();
  });
}
onSetting('limit', ({ value }) => {
  settings.limit = Number(value);
});
onSetting('window', ({ value }) => {
  settings.windowMs = Number(value) * 1000;
});
onSetting('max', ({ value }) => {
  settings.max = Number(value);
});
onSetting('count-blocked', ({ checked }) => {
  settings.countBlocked = checked;
});

$('play').addEventListener('click', () => (player.isPlaying ? player.pause() : player.play()));
$('step').addEventListener('click', () => {
  player.pause();
  player.seek(Math.min(player.end, ...times().filter((at) => at > player.time)));
});
$('speed').addEventListener('input', ({ target }) => {
  player.speed = Number(target.value);
});
$('time').addEventListener('input', ({ target }) => {
  player.pause();
  player.seek(Number(target.value));
});

// ---- code ----

function showCode() {
  const algorithm = ALGORITHMS.find(({ name }) => name === $('code-algorithm').value);
  const ofAlgorithm = { limiter: limiterCode, express: expressCode };
  const ofSlots = { limiter: slotsCode, express: slotsExpressCode };
  const write = (algorithm === undefined ? ofSlots : ofAlgorithm)[$('code-kind').value];
  setText($('code'), write(settings, algorithm));
  setText($('copy'), 'Copy');
}

for (const { name } of ALGORITHMS) $('code-algorithm').append(new Option(name));
$('code-algorithm').append(new Option('ConcurrencyLimiter'));
$('code-algorithm').addEventListener('input', showCode);
$('code-kind').addEventListener('input', showCode);
$('copy').addEventListener('click', async () => {
  try {
    await navigator.clipboard.writeText($('code').textContent);
    setText($('copy'), 'Copied');
  } catch {
    // Not on an origin that the browser trusts: selected, the code can be copied by hand.
    getSelection().selectAllChildren($('code'));
    setText($('copy'), 'Selected');
  }
});

// ---- start ----

player.speed = Number($('speed').value);
player.isCalm = isCalm;
restart();
document.addEventListener('pointerdown', ({ target }) => {
  if (!target.closest('.plot')) point();
});
new ResizeObserver(() => {
  layOut();
  show();
}).observe(lanes[0].svg);
startServerLane(tip);
