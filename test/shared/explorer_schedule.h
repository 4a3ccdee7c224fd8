// The steps of one execution, and how they are printed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "shared/explorer_code.h"
#include "shared/explorer_memory.h"

namespace rollgate::testing::explorer {

constexpr std::size_t kLongestSchedule = 300;  ///< that is printed

enum class Action : std::uint8_t { kStep, kFlush, kKill };

struct Transition {
  std::uint32_t slot;
  Action action;
  Way way = 0;
};

struct Step {
  Transition transition;
  Place place;
  Effect effect = {};
  Write flushed = {};
};

/// A line for each step.
std::string Schedule(const std::vector<Step>& steps, const Scenario& scenario, const Words& words,
                     const Trees& trees);

}  // namespace rollgate::testing::explorer
