// Finds calendar windows for the native side, which knows no time zones: see src/binding/host_calendars.h.
'use strict';

class CalendarFinder {
  /** Where findWindow writes ordinal, start and end, in us. */
  span = new Float64Array(3);
  /** The checked windows of the limiter. */
  windows;
  /** Those of the current call, by window; undefined if it brings none. */
  ofCall;

  constructor(windows) {
    this.windows = windows;
  }

  /** The calendar window that contains `at`, in us. `isOfCall`: the call in question brings calendars. */
  findWindow = (index, at, isOfCall) => {
    const { calendar } = isOfCall ? { calendar: this.ofCall[index] } : this.windows[index];
    const { ordinal, start, end } = calendar.windowAt(at / 1000);
    this.span[0] = ordinal;
    this.span[1] = start * 1000;
    this.span[2] = end * 1000;
  };
}

module.exports = { CalendarFinder };
