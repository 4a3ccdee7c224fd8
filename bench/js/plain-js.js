// Two exact rolling-window limiters in plain JavaScript, written as well as we can: the yardstick for what native code has to beat.
//
// Both follow rollgate's rule: an id is blocked when the maxInInterval-th newest attempt is less
// than `interval` old; every attempt counts, the refused ones too; the result is 0 when allowed and
// otherwise the wait in whole milliseconds, rounded up; time never runs backwards for an id.
// What they leave out, all of it in their favour: ids are strings and not checked, nothing is ever
// evicted or expired, and there is nothing but the one call.
//
// The look at one character makes V8 flatten an id that was just joined from parts; a Map does not
// do so by itself, and then hashes and compares the slow way (a third of the cost of a check).
// The clock is moved on by one interval, so that a slot never written (0) counts as long expired.

const FIRST_CAPACITY = 8;

/** A Map from id to a ring: an array of doubles whose element 0 is the place of the oldest attempt. */
function createMapLimiter({ interval, maxInInterval, now = () => performance.now() }) {
  const rings = new Map();
  const blank = blankRing(Math.min(maxInInterval, FIRST_CAPACITY));

  return function check(id) {
    let time = now() + interval;
    id.charCodeAt(0);
    let ring = rings.get(id);
    if (ring === undefined) {
      ring = blank.slice();
      rings.set(id, ring);
    }
    let head = ring[0];
    const newest = ring[head === 1 ? ring.length - 1 : head - 1];
    if (time < newest) time = newest;

    if (ring[head] > time - interval) {
      if (ring.length > maxInInterval) {
        ring[head] = time;
        head = head === maxInInterval ? 1 : head + 1;
        ring[0] = head;
        return Math.ceil(ring[head] + interval - time);
      }
      ring = growRing(ring, maxInInterval);
      rings.set(id, ring);
      head = ring[0];
    }
    ring[head] = time;
    ring[0] = head === ring.length - 1 ? 1 : head + 1;
    return 0;
  };
}

function blankRing(capacity) {
  const ring = [0.5]; // a fraction first, so that V8 stores unboxed doubles
  for (let i = 0; i < capacity; i++) ring.push(0);
  ring[0] = 1;
  return ring.slice(); // a copy has no spare room
}

function growRing(ring, maxInInterval) {
  const capacity = ring.length - 1;
  const grown = blankRing(Math.min(2 * capacity, maxInInterval));
  for (let i = 0; i < capacity; i++) grown[i + 1] = ring[1 + ((ring[0] - 1 + i) % capacity)];
  grown[0] = capacity + 1;
  return grown;
}

/** A Map from id to a slot, and one slab of doubles: each slot holds the place of its oldest attempt, then the attempts. */
function createSlabLimiter({ interval, maxInInterval, now = () => performance.now() }) {
  const slots = new Map();
  const stride = maxInInterval + 1;
  let slab = new Float64Array(1024 * stride);

  return function check(id) {
    let time = now() + interval;
    id.charCodeAt(0);
    let slot = slots.get(id);
    if (slot === undefined) {
      slot = slots.size;
      slots.set(id, slot);
      if (slots.size * stride > slab.length) slab = grownSlab(slab);
    }
    const first = slot * stride + 1;
    const place = slab[first - 1];
    const newest = slab[first + (place === 0 ? maxInInterval : place) - 1];
    if (time < newest) time = newest;

    const blocked = slab[first + place] > time - interval;
    slab[first + place] = time;
    const oldest = place + 1 === maxInInterval ? 0 : place + 1;
    slab[first - 1] = oldest;
    return blocked ? Math.ceil(slab[first + oldest] + interval - time) : 0;
  };
}

function grownSlab(slab) {
  const grown = new Float64Array(slab.length * 2);
  grown.set(slab);
  return grown;
}

module.exports = { createMapLimiter, createSlabLimiter };
