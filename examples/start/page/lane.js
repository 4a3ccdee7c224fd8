// Draws the requests of one limiter on a time axis, as far as the run has come.
'use strict';

const { mostInAnyWindow } = require('./simulation');

const SVG = 'http://www.w3.org/2000/svg';
/** Half a thumb of the time slider, so that both axes agree. */
const MARGIN = 8;
/** Above the requests: the bracket of the busiest window and its label. */
const HEAD = 20;
const FOOT = 3;
/** Between the bars of two slots. */
const BAR_GAP = 2;
const LEAST_BAR = 2;
/** Of a permit that is lent. At most half of the limit is. */
const HIGHEST_PERMIT = 6;
/** How far from a request the pointer may be, in pixels. */
const REACH = 20;

/** The names of the symbols in page.html, by client. */
const SYMBOLS = { allowed: ['dot', 'diamond'], refused: ['cross', 'plus'] };

class Lane {
  #svg;
  #marks = [];
  #lent = [];
  #shown = 0;
  #run;

  /** `onPoint` gets the request that is pointed at or focused, and its mark; undefined if there is none. */
  constructor(svg, onPoint) {
    this.#svg = svg;
    this.band = add(svg, 'rect', { class: 'band', y: HEAD });
    this.lent = add(svg, 'g', {});
    this.boundaries = add(svg, 'g', { class: 'boundaries' });
    this.axis = add(svg, 'line', { class: 'axis' });
    this.bracket = add(svg, 'g', { class: 'bracket' });
    this.bracketPath = add(this.bracket, 'path', {});
    this.bracketText = add(this.bracket, 'text', { y: 11 });
    this.marks = add(svg, 'g', { class: 'marks' });
    this.now = add(svg, 'line', { class: 'now', y1: HEAD - 4 });
    svg.addEventListener('pointermove', (event) => this.#pointAt(event, onPoint));
    svg.addEventListener('pointerdown', (event) => this.#pointAt(event, onPoint));
    svg.addEventListener('pointerleave', ({ pointerType }) => {
      if (pointerType !== 'touch') onPoint(); // a finger leaves with each tap
    });
    svg.addEventListener('focusin', ({ target }) => onPoint(this.#requestOf(target), target));
    svg.addEventListener('focusout', () => onPoint());
    svg.addEventListener('keydown', (event) => this.#onKey(event, onPoint));
  }

  /** The room for requests, and the place of a time. `from` and `to` are the ends of the axis. */
  static measure(svg, from, to) {
    const { width, height } = svg.getBoundingClientRect();
    const room = width - 2 * MARGIN;
    const pixelsPerMs = room / (to - from);
    return {
      width,
      height,
      xOf: (at) => MARGIN + (at - from) * pixelsPerMs,
      pixelsPerMs,
      heightForRequests: height - HEAD - FOOT,
    };
  }

  /**
   * Draws a run from its beginning, with nothing shown yet.
   *
   * @param {{ requests: object[], rows: Map<object, number>, size: number, axis: number, measure: object, from: number,
   *   to: number, windowMs: number, limit: number, hasBoundaries?: boolean, hasWindow?: boolean,
   *   startsAgain?: boolean, hasBracket?: boolean, slots?: number, barSize?: number, lent?: object[] }} run with `slots`,
   *   allowed requests have an `end`, and are bars; `lent` as of runLeases
   */
  setRun(run) {
    const { requests, measure, axis, rows, from, to, windowMs, hasBoundaries } = run;
    const { size, slots = 0, barSize } = run;
    const { width, height, xOf } = measure;
    this.#run = run;
    this.#shown = 0;
    set(this.#svg, { viewBox: `0 0 ${width} ${height}` });
    const y = HEAD + axis;
    set(this.axis, { x1: MARGIN, x2: width - MARGIN, y1: y, y2: y });
    set(this.band, { height: height - HEAD });
    set(this.now, { y2: height });
    this.boundaries.replaceChildren();
    for (let at = from; hasBoundaries && at <= to; at += windowMs) {
      const x = xOf(at);
      add(this.boundaries, 'line', { class: 'boundary', x1: x, x2: x, y1: HEAD - 4, y2: height });
    }
    this.#drawLent();
    const slot = { class: 'slot', x: MARGIN, width: width - 2 * MARGIN, height: barSize - BAR_GAP };
    for (let i = 1; i <= slots; i++) add(this.boundaries, 'rect', { ...slot, y: y - i * barSize });
    this.#marks = requests.map((request) => {
      const row = rows.get(request);
      if (request.end !== undefined) return this.#createBar(request, y - (row + 1) * barSize);
      const distance = (row + 0.5) * size;
      return this.#createSymbol(request, request.decision.allowed ? y - distance : y + distance);
    });
    this.marks.replaceChildren(...this.#marks);
  }

  /** Permits that a process holds unused, from the top: those of process A, and below them those of B. */
  #drawLent() {
    const { lent = [], limit, axis, measure } = this.#run;
    const unit = Math.min(HIGHEST_PERMIT, (2 * axis) / limit);
    this.lent.replaceChildren();
    this.#lent = lent.flatMap(({ from, to, permits }) => {
      let top = HEAD;
      return permits.map((count, client) => {
        const place = { x: measure.xOf(from), y: top, width: 0, height: count * unit };
        top += count * unit;
        const rect = add(this.lent, 'rect', { class: `lent client-${client}`, ...place });
        return { rect, from, to };
      });
    });
  }

  #growLent(time) {
    const { measure, to: end } = this.#run;
    for (const { rect, from, to } of this.#lent) {
      const width = Math.max(0, Math.min(to, time, end) - from) * measure.pixelsPerMs;
      set(rect, { width: width.toFixed(2) });
    }
  }

  #createSymbol(request, y) {
    const { size, measure } = this.#run;
    const outcome = request.decision.allowed ? 'allowed' : 'refused';
    return this.#createMark('use', request, {
      href: `#${SYMBOLS[outcome][request.client]}`,
      x: (measure.xOf(request.at) - size / 2).toFixed(2),
      y: (y - size / 2).toFixed(2),
      width: size,
      height: size,
    });
  }

  #createBar(request, y) {
    const { barSize, measure } = this.#run;
    const place = { x: measure.xOf(request.at), y, width: 0, height: barSize - BAR_GAP, rx: 2 };
    return this.#createMark('rect', request, place);
  }

  #createMark(name, { at, end, client, decision }, place) {
    const outcome = decision.allowed ? 'allowed' : 'refused';
    const until = end === undefined ? '' : ` until ${seconds(end)}`;
    const mark = document.createElementNS(SVG, name);
    set(mark, {
      ...place,
      class: `mark ${outcome} client-${client} later`,
      role: 'img',
      tabindex: -1,
      'aria-label': `${outcome} at ${seconds(at)}${until}, ${decision.limits[0].used} used`,
    });
    return mark;
  }

  /** Bars grow up to this time. One that has just begun is seen, too. */
  #growBars(time) {
    const { requests, measure, to } = this.#run;
    for (let i = 0; i < this.#shown; i++) {
      const { at, end } = requests[i];
      if (end === undefined) continue;
      const width = (Math.min(end, time, to) - at) * measure.pixelsPerMs;
      set(this.#marks[i], { width: Math.max(LEAST_BAR, width).toFixed(2) });
    }
  }

  /** Shows the requests up to a time. With `moment`, the window is the one that counted then. */
  show(time, moment = time) {
    const { requests, measure, windowMs, limit, hasWindow = true } = this.#run;
    let count = 0;
    while (count < requests.length && requests[count].at <= time) count++;
    for (let i = Math.min(count, this.#shown); i < Math.max(count, this.#shown); i++) {
      this.#marks[i].classList.toggle('later', i >= count);
    }
    this.#shown = count;
    this.#growBars(time);
    this.#growLent(time);
    this.#keepOneInTabOrder();
    const x = measure.xOf(time);
    set(this.now, { x1: x, x2: x });
    this.band.style.display = hasWindow ? '' : 'none';
    this.#drawBand(moment);
    const shown = requests.slice(0, count);
    const most = mostInAnyWindow(shown, windowMs);
    this.#drawBracket(most);
    const allowed = shown.filter(({ decision }) => decision.allowed).length;
    return { most: most.count, isOver: most.count > limit, allowed, refused: count - allowed };
  }

  /** The part of the past that counts at this moment. */
  #drawBand(moment) {
    const { measure, windowMs, from, to, startsAgain } = this.#run;
    const current = Math.floor(Math.min(moment, to - 1) / windowMs);
    const start = startsAgain ? current * windowMs : moment - windowMs;
    const x = measure.xOf(Math.max(from, start));
    set(this.band, { x, width: Math.max(0, measure.xOf(moment) - x) });
  }

  /** One window around the busiest requests. */
  #drawBracket({ count, from: first, to: last }) {
    const { measure, windowMs, limit, from, to, hasBracket = true } = this.#run;
    const isDrawn = hasBracket && count > 0;
    this.bracket.style.display = isDrawn ? '' : 'none';
    if (!isDrawn) return;
    const middle = (first + last) / 2;
    const start = Math.min(Math.max(middle - windowMs / 2, from), to - windowMs);
    const [left, right] = [measure.xOf(start), measure.xOf(start + windowMs)];
    const y = HEAD - 4;
    set(this.bracketPath, { d: `M${left} ${y + 4}V${y}H${right}V${y + 4}` });
    set(this.bracketText, { x: (left + right) / 2 });
    setText(this.bracketText, `${count} in ${windowMs / 1000} s`);
    this.bracket.classList.toggle('over', count > limit);
  }

  // ---- pointing ----

  #requestOf(mark) {
    return this.#run.requests[this.#marks.indexOf(mark)];
  }

  #pointAt({ clientX, clientY }, onPoint) {
    // From the middle of a symbol, and from the middle line of a bar.
    const near = (mark) => {
      const { left, right, top, width, height } = mark.getBoundingClientRect();
      const inset = Math.min(width, height) / 2;
      const x = Math.min(Math.max(clientX, left + inset), right - inset);
      return Math.hypot(x - clientX, top + height / 2 - clientY);
    };
    let [nearest, least] = [undefined, REACH];
    for (const mark of this.#marks.slice(0, this.#shown)) {
      const distance = near(mark);
      if (distance < least) [nearest, least] = [mark, distance];
    }
    onPoint(nearest && this.#requestOf(nearest), nearest);
  }

  /** One request of a lane can be reached with Tab, the others with arrow keys. */
  #keepOneInTabOrder() {
    const inOrder = this.marks.querySelector('[tabindex="0"]:not(.later)');
    if (inOrder) return;
    this.marks.querySelector('[tabindex="0"]')?.setAttribute('tabindex', -1);
    if (this.#shown > 0) this.#marks[0].setAttribute('tabindex', 0);
  }

  #onKey(event, onPoint) {
    const by = (steps) => this.#focus(this.#marks.indexOf(event.target) + steps);
    const actions = {
      ArrowLeft: () => by(-1),
      ArrowRight: () => by(1),
      Home: () => by(-Infinity),
      End: () => by(Infinity),
      Escape: () => onPoint(),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  }

  /** Focuses the request nearest to this time. */
  focusAt(time) {
    const { requests } = this.#run;
    const distance = (i) => Math.abs(requests[i].at - time);
    let nearest = 0;
    for (let i = 1; i < this.#shown; i++) if (distance(i) < distance(nearest)) nearest = i;
    this.#focus(nearest);
  }

  #focus(index) {
    const mark = this.#marks[Math.min(Math.max(index, 0), this.#shown - 1)];
    if (mark === undefined) return;
    this.marks.querySelector('[tabindex="0"]')?.setAttribute('tabindex', -1);
    mark.setAttribute('tabindex', 0);
    mark.focus({ preventScroll: true });
  }
}

const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;

function add(parent, name, attributes) {
  const element = document.createElementNS(SVG, name);
  set(element, attributes);
  parent.append(element);
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

module.exports = { Lane };
