// A text that follows from one number, made once where request after request has the same one.
'use strict';

/** A function (number) that gives what `make(number)` does, and calls it only if the number is not the last one. */
function rememberForLastNumber(make) {
  let known;
  let made;
  return (number) => {
    if (number !== known) {
      made = make(number);
      known = number;
    }
    return made;
  };
}

module.exports = { rememberForLastNumber };
