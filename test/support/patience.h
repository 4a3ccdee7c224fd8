// The factor for every bound in real time in the tests: above 1 on a busy or sanitized machine.
#pragma once

#include <cstdlib>

namespace rollgate::testing {

inline double Patience() {
  const char* factor = std::getenv("ROLLGATE_PATIENCE");
  return factor ? std::atof(factor) : 1;
}

}  // namespace rollgate::testing
