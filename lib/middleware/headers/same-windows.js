// A text that follows from a limiter's windows alone, made once: they hardly ever change.
'use strict';

/**
 * A function (windows, names?) that gives what `make(windows, names)` does, and calls it only if the windows
 * or the names are not those of the last call. A limiter that is not ours may be of any kind.
 */
function rememberForWindows(make) {
  let knownWindows = [];
  let knownNames;
  let made;
  return (windows, names) => {
    if (names !== knownNames || !areSame(windows, knownWindows)) {
      made = make(windows, names);
      knownWindows = windows;
      knownNames = names;
    }
    return made;
  };
}

function areSame(windows, known) {
  if (windows.length !== known.length) return false;
  for (let i = 0; i < windows.length; i++) {
    const { interval, maxInInterval } = windows[i];
    if (interval !== known[i].interval || maxInInterval !== known[i].maxInInterval) return false;
  }
  return true;
}

module.exports = { rememberForWindows };
