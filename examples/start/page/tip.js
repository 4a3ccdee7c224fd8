// The numbers of a decision, next to the request that is pointed at or focused.
'use strict';

const GAP = 10;
const EDGE = 8;

const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`;

/** The numbers of a decision: name, value, meaning. `isLocal` is known with leases. */
function numbersOf({ decision, isLocal }) {
  const { allowed, timeLeft, actionsLeft, resetIn, blockedBy, limits } = decision;
  const { used, maxInInterval } = limits[0];
  const waits = allowed ? 'no wait' : 'until it would be allowed';
  const reasons = { count: 'too many requests', minDifference: 'too early', block: 'blocked' };
  return [
    ['allowed', String(allowed), allowed ? 'the request passes' : 'HTTP status 429'],
    ['used', `${used} of ${maxInInterval}`, 'after this request, as the algorithm counts'],
    ['actionsLeft', String(actionsLeft), 'how many more are allowed now'],
    ['timeLeft', seconds(timeLeft), waits],
    ['resetIn', seconds(resetIn), used === 0 ? 'nothing is used' : 'until there is more room'],
    ['blockedBy', String(blockedBy), reasons[blockedBy] ?? 'nothing'],
    ...(isLocal === undefined ? [] : [placeOf(isLocal, allowed)]),
  ];
}

function placeOf(isLocal, allowed) {
  if (!isLocal) return ['decided', 'on Redis', 'one round trip'];
  return ['decided', 'here', allowed ? 'on a permit that it holds' : 'a refusal that it remembers'];
}

/** The same of a request for a slot. */
function numbersOfSlot({ at, end, slot: { allowed, max, used, remaining } }) {
  const numbers = [
    [
      'allowed',
      String(allowed),
      allowed ? 'it runs in a slot' : 'no slot is free: HTTP status 429',
    ],
    [
      'used',
      `${used} of ${max}`,
      allowed ? 'slots that are held, its own included' : 'slots that are held',
    ],
    ['remaining', String(remaining), 'slots that are free'],
  ];
  return allowed
    ? [...numbers, ['release()', seconds(end - at), 'later, when the action ends']]
    : numbers;
}

class Tip {
  constructor(element) {
    this.element = element;
  }

  /**
   * @param {string} title what and when it was
   * @param {[name: string, value: string, meaning: string][]} numbers
   */
  show(title, numbers, mark) {
    const rows = numbers.flatMap(([name, value, meaning]) => {
      const [term, number, text] = ['dt', 'dd', 'dd'].map((tag) => document.createElement(tag));
      [term.textContent, number.textContent, text.textContent] = [name, value, meaning];
      text.className = 'meaning';
      return [term, number, text];
    });
    this.element.querySelector('p').textContent = title;
    this.element.querySelector('dl').replaceChildren(...rows);
    this.element.hidden = false;
    mark.setAttribute('aria-describedby', this.element.id);
    this.#place(mark.getBoundingClientRect());
  }

  hide() {
    this.element.hidden = true;
  }

  /** Below the request, or above it where there is no room; never outside of the screen. */
  #place({ left, right, top, bottom }) {
    const { offsetWidth: width, offsetHeight: height, style } = this.element;
    const { clientWidth, clientHeight } = document.documentElement;
    const x = Math.min(Math.max((left + right - width) / 2, EDGE), clientWidth - width - EDGE);
    const isBelow = bottom + GAP + height + EDGE <= clientHeight;
    const y = isBelow ? bottom + GAP : Math.max(EDGE, top - GAP - height);
    style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
  }
}

module.exports = { numbersOf, numbersOfSlot, Tip };
