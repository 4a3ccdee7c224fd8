// Prints executions.
#include "shared/explorer_schedule.h"

#include <algorithm>
#include <cstdio>

namespace rollgate::testing {
namespace explorer {
namespace {

std::string Hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Describe(const Step& step, const Scenario& scenario, const Words& words,
                     const Trees& trees) {
  const auto name_of = [&](Index index) {
    return scenario.name_of ? scenario.name_of(&words.at(index)) : std::to_string(index);
  };
  if (step.transition.action == Action::kKill) return "is killed";
  std::string text;
  if (step.transition.action == Action::kFlush) {
    const Write& write = step.flushed;
    return text.append("(")
        .append(name_of(write.word))
        .append(" = ")
        .append(Hex(write.value))
        .append(" is seen)");
  }
  const Operation& operation = trees.at(step.place);
  text = name_of(operation.word);
  if (operation.kind == Kind::kLoad) {
    text.append(" is ").append(Hex(step.effect.heard));
  } else if (operation.kind == Kind::kStore) {
    text.append(" = ").append(Hex(operation.value));
  } else {
    text.append(": ").append(Hex(operation.expected)).append(" -> ").append(Hex(operation.value));
    if (step.effect.heard == 0) text.append(", refused");
  }
  if (step.effect.is_stale) text.append(" (no longer)");
  return text;
}

}  // namespace

std::string Schedule(const std::vector<Step>& steps, const Scenario& scenario, const Words& words,
                     const Trees& trees) {
  std::string text;
  std::vector<bool> killed(scenario.processes.size());
  for (std::size_t n = 0; n < std::min(steps.size(), kLongestSchedule); ++n) {
    const Step& step = steps[n];
    const std::uint32_t i = step.transition.slot;
    text.append("  ").append(scenario.processes[i].name).append(killed[i] ? "'  " : "   ");
    text.append(Describe(step, scenario, words, trees)).append("\n");
    if (step.transition.action == Action::kKill) killed[i] = true;
  }
  return text;
}

}  // namespace explorer

std::string Exploration::Summary() const {
  return std::to_string(states) + " states, " + std::to_string(steps) + " steps, " +
         std::to_string(ends) + " ends, longest " + std::to_string(longest) + ", " +
         std::to_string(passes) + " passes, " + std::to_string(runs) + " runs";
}

}  // namespace rollgate::testing
