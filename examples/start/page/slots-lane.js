// The lane of what runs at once: an action is a bar in its slot, from its begin to its end.
'use strict';

const { placeSlots } = require('./arrangement');
const { Lane } = require('./lane');
const { PRESETS } = require('./presets');
const { mostAtOnce, runningAt, runSlots } = require('./slots');

class SlotsLane {
  requests = [];
  #settings;

  /** `onPoint` as of Lane. */
  constructor(element, onPoint) {
    this.element = element;
    this.svg = element.querySelector('svg');
    this.lane = new Lane(this.svg, onPoint);
  }

  run(settings) {
    this.#settings = { ...settings };
    this.requests = runSlots(settings);
    const { max, preset } = settings;
    this.#setText(
      '.rule',
      PRESETS[preset].limiters === undefined
        ? 'Limits what runs at once, not how often.'
        : `Slots are not shared: ${max} for each process.`,
    );
  }

  layOut(end) {
    const { max, limit, windowMs, preset } = this.#settings;
    const measure = Lane.measure(this.svg, 0, end);
    const slots = max * (PRESETS[preset].limiters === undefined ? 1 : 2);
    const place = placeSlots(this.requests, measure, { max, slots });
    const shown = { slots, hasWindow: false, hasBracket: false };
    const { requests } = this;
    this.lane.setRun({ ...place, ...shown, requests, measure, from: 0, to: end, limit, windowMs });
  }

  show(time) {
    const { requests } = this;
    const { allowed, refused } = this.lane.show(time);
    const most = mostAtOnce(requests, time);
    this.#setText('.count', String(most));
    this.#setText('.running', String(runningAt(requests, time)));
    this.#setText('.tally', `${allowed} allowed, ${refused} refused`);
    const excess = Math.min(100, (100 * most) / this.#settings.max - 100);
    this.element.classList.toggle('over', excess > 0);
    this.element.style.setProperty('--excess', `${excess}%`);
  }

  #setText(part, text) {
    const element = this.element.querySelector(part);
    if (element.textContent !== text) element.textContent = text;
  }
}

module.exports = { SlotsLane };
