// The words that align a region's windows, changed by processes in every order, with kills.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/alignment.h"
#include "shared/explorer.h"

namespace rollgate::testing {
namespace {

constexpr Micros kPeriod = 1'000'000;
constexpr Micros kBefore = 50 * kPeriod;

/// A process to which the wall clock is so far ahead, one reading after another.
using Readings = std::vector<Micros>;

/// Explores such processes, of which up to two are killed. `check` looks at the words after one
/// more reading of `last`.
template <class Check>
void ExploreReadings(const std::vector<Readings>& processes, Micros last, Check check) {
  for (const MemoryModel memory : {MemoryModel::kSequential, MemoryModel::kWeak}) {
    AlignmentWords words = {{static_cast<std::uint64_t>(kBefore)}, {0}};
    Scenario scenario{.processes = {}, .kills = 2, .memory = memory};
    for (const Readings& readings : processes) {
      scenario.processes.push_back(
          {.name = std::string(1, static_cast<char>('A' + scenario.processes.size())), .run = [&] {
             Answer offsets;
             for (const Micros reading : readings) {
               FollowWall<Explored>(words, reading, kPeriod);
               offsets.push_back(OffsetIn<Explored>(words));
             }
             return offsets;
           }});
    }
    scenario.check = [&](const std::vector<Outcome>& outcomes) -> std::string {
      Micros latest = kLongAgo;
      for (const Outcome& outcome : outcomes) {
        for (const Micros offset : outcome.answer.value_or(Answer{})) {
          latest = std::max(latest, offset);
        }
      }
      FollowWall<Explored>(words, last, kPeriod);
      const Micros offset = OffsetIn<Explored>(words);
      return check(std::max(latest, offset), offset);
    };
    const Exploration exploration = Explore(scenario);
    EXPECT_TRUE(exploration.ok()) << exploration.violation;
    EXPECT_GT(exploration.states, 10u);
  }
}

std::string Unless(bool holds, Micros latest, Micros offset) {
  if (holds) return "";
  return std::to_string(latest) + ", in the end " + std::to_string(offset);
}

TEST(SharedAlignment, IsTheSameWhoeverSeesTheTimeSetBackAndWhoeverIsKilled) {
  for (const Micros step : {kPeriod / 4, 7 * kPeriod + kPeriod / 4}) {
    const Micros after = kBefore - step;
    ExploreReadings({{after, after}, {after}, {after}}, after, [](Micros latest, Micros offset) {
      const bool holds = latest <= kBefore && offset == kBefore - kPeriod / 4;
      return Unless(holds, latest, offset);
    });
  }
}

TEST(SharedAlignment, NeverLeapsForwardWhereTheTimeIsSetBackAndSetRight) {
  const Micros back = kBefore - 7 * kPeriod - kPeriod / 4;
  ExploreReadings({{back, kBefore}, {kBefore, back}, {kBefore}}, kBefore,
                  [](Micros latest, Micros offset) {
                    return Unless(latest <= kBefore && offset == kBefore, latest, offset);
                  });
}

TEST(SharedAlignment, FollowsAStepForwardOnce) {
  const Micros after = kBefore + 7 * kPeriod + kPeriod / 4;
  ExploreReadings({{after}, {kBefore, after}, {after}}, after, [=](Micros latest, Micros offset) {
    return Unless(latest == after && offset == after, latest, offset);
  });
}

}  // namespace
}  // namespace rollgate::testing
