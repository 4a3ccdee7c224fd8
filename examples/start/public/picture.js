// Draws a rolling window as a timeline that moves to the left; the newest action is on the right.

const SVG = 'http://www.w3.org/2000/svg';
const HEIGHT = 252;
const TOP = 40;
const BOTTOM = 212;
const AXIS = 122;
const STEM = 40;
const RIGHT_MARGIN = 22;
/** If the average distance of marks is smaller than this, their heads are not drawn. */
const CROWDED_PIXELS = 14;
/** How much of the past beyond the window is shown, as a share of the window. */
const PAST_SHARE = 0.16;

export class Picture {
  #svg;
  #width = 0;
  #marks = new Map();

  constructor(svg) {
    this.#svg = svg;
    this.band = add(svg, 'rect', { class: 'band', y: TOP, height: BOTTOM - TOP });
    this.ticks = add(svg, 'g', { class: 'ticks' });
    this.axis = add(svg, 'line', { class: 'axis', x1: 0, y1: AXIS, y2: AXIS });
    this.wait = add(svg, 'g', { class: 'wait' });
    this.waitLine = add(this.wait, 'path', {});
    this.waitText = add(this.wait, 'text', { y: TOP - 8 });
    this.marks = add(svg, 'g', { class: 'marks' });
    this.leftEdge = add(svg, 'line', { class: 'edge', y1: TOP, y2: BOTTOM });
    this.rightEdge = add(svg, 'line', { class: 'edge', y1: TOP, y2: BOTTOM });
    this.leftLabel = add(svg, 'text', { class: 'edge-label', y: HEIGHT - 18 });
    this.rightLabel = add(svg, 'text', { class: 'edge-label', y: HEIGHT - 18 });
    this.rightLabel.textContent = 'now';
    new ResizeObserver(() => this.#measure()).observe(svg);
    this.#measure();
  }

  /** Draws the fixed parts: the window, its edges, a tick for every second. */
  setWindow({ interval }) {
    this.interval = interval;
    this.#layOut();
  }

  #measure() {
    this.#width = this.#svg.clientWidth || 640;
    set(this.#svg, { viewBox: `0 0 ${this.#width} ${HEIGHT}`, height: HEIGHT });
    this.#layOut();
  }

  #layOut() {
    if (this.interval === undefined) return;
    this.nowX = this.#width - RIGHT_MARGIN;
    this.pixelsPerMs = this.nowX / (this.interval * (1 + PAST_SHARE));
    this.startX = this.nowX - this.interval * this.pixelsPerMs;
    set(this.band, { x: this.startX, width: this.nowX - this.startX });
    set(this.axis, { x2: this.nowX });
    set(this.leftEdge, { x1: this.startX, x2: this.startX });
    set(this.rightEdge, { x1: this.nowX, x2: this.nowX });
    set(this.leftLabel, { x: this.startX });
    set(this.rightLabel, { x: this.nowX });
    this.leftLabel.textContent = `${this.interval / 1000} s ago`;
    this.ticks.replaceChildren();
    for (let ms = 1000; ms < this.interval; ms += 1000) {
      const x = this.nowX - ms * this.pixelsPerMs;
      add(this.ticks, 'line', { x1: x, x2: x, y1: AXIS - 4, y2: AXIS + 4 });
    }
  }

  /** @param {{ marks: object[], oldest?: object, isFull: boolean }} view of RollingWindow.at(now) */
  draw(view, now) {
    const x = (time) => this.nowX - (now - time) * this.pixelsPerMs;
    const unseen = new Set(this.#marks.keys());
    for (const { action, state } of view.marks) {
      const markX = x(action.at);
      if (markX < -20) continue;
      const mark = this.#marks.get(action.n) ?? this.#addMark(action);
      unseen.delete(action.n);
      mark.setAttribute('transform', `translate(${markX.toFixed(2)} ${AXIS})`);
      if (mark.dataset.state !== state) mark.dataset.state = state;
    }
    for (const n of unseen) this.#removeMark(n);
    const isCrowded = this.#marks.size * CROWDED_PIXELS > this.nowX;
    this.marks.classList.toggle('crowded', isCrowded);
    this.#drawWait(view, now, x);
  }

  /** The distance from the window's left edge to its oldest counted action is the time until it leaves. */
  #drawWait({ oldest, isFull }, now, x) {
    this.wait.style.display = oldest === undefined ? 'none' : '';
    if (oldest === undefined) return;
    const end = Math.min(x(oldest.at), this.nowX);
    const y = TOP + 12;
    this.wait.dataset.state = isFull ? 'full' : 'open';
    set(this.waitLine, {
      d: `M${this.startX} ${y}H${end}M${end} ${y - 6}V${AXIS}M${this.startX + 6} ${y - 4}L${this.startX + 1} ${y}l5 4`,
    });
    // Rounded up, so that it is never too early.
    const seconds = (Math.ceil((oldest.at + this.interval - now) / 100) / 10).toFixed(1);
    this.waitText.textContent = `${isFull ? 'opens' : 'one leaves'} in ${seconds} s`;
    const half = 62;
    const middle = (this.startX + end) / 2;
    set(this.waitText, { x: Math.min(Math.max(middle, half), this.#width - half) });
  }

  #addMark({ n, allowed }) {
    const mark = add(this.marks, 'g', { class: 'mark' });
    mark.dataset.n = n;
    mark.dataset.outcome = allowed ? 'allowed' : 'refused';
    if (allowed) {
      add(mark, 'line', { y2: -STEM });
      add(mark, 'circle', { cy: -STEM - 8, r: 8 });
    } else {
      add(mark, 'line', { y2: STEM });
      add(mark, 'circle', { cy: STEM + 8, r: 8 });
      const [a, b] = [STEM + 5, STEM + 11];
      add(mark, 'path', { d: `M-3 ${a}L3 ${b}M3 ${a}L-3 ${b}` });
    }
    this.#marks.set(n, mark);
    return mark;
  }

  #removeMark(n) {
    this.#marks.get(n).remove();
    this.#marks.delete(n);
  }
}

function add(parent, name, attributes) {
  const element = document.createElementNS(SVG, name);
  set(element, attributes);
  parent.append(element);
  return element;
}

function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}
