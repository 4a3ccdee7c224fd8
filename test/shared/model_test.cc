// Every order in which a few processes can use a tiny region, and every moment at which one of them
// can be killed, comes to what some order of whole calls comes to.
#include "shared/model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "shared/explorer.h"
#include "support/traces.h"

namespace rollgate::testing {
namespace {

/// Whether cases may take minutes.
bool ExploresAll() {
  const char* const tests = std::getenv("ROLLGATE_TESTS");
  return tests != nullptr && std::string_view(tests) == "all";
}

void Expect(Case c, MemoryModel memory) {
  c.memory = memory;
  const Exploration exploration = RunCase(c);
  EXPECT_TRUE(exploration.ok()) << exploration.violation;
}

class Model : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(, Model, ::testing::ValuesIn(ModelCases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Model, HoldsInWeakMemory) {
  Case c = GetParam();
  Expect(c, MemoryModel::kSequential);  // finds a missing step much sooner
  if (HasFailure()) return;
  if (c.is_long && !ExploresAll()) {
    if (c.processes.size() > 2) return;
    c.kills = 0;
  }
  Expect(c, MemoryModel::kWeak);
}

/// Two processes with one or two calls each.
Case AnyTwo(std::uint64_t seed) {
  Random random(seed);
  const std::uint64_t buckets = random.Chance(30) ? 2 : 1;
  Case c{.max = random.Chance(50) ? 1 : 2,
         .buckets = buckets,
         .slots = random.Chance(70) ? 1u : 2u,
         .ids = Ids(3, buckets, {0, 1 % buckets, 0})};
  // No call is late: what is forgotten was so before any of these.
  Micros now = 1000;
  const auto any = [&] {
    const int id = static_cast<int>(random.Between(0, 2));
    switch (random.Between(0, 9)) {
      case 0:
        return Refund(id, 1000);
      case 1:
      case 2:
        return Clear(id);
      case 3:
        return ClearAll();
      case 4:
        return Peek(id);
      default:
        return Attempt(id, ++now);
    }
  };
  for (int id = 0; id < 3; ++id) {
    if (random.Chance(60)) c.before.push_back(Attempt(id, random.Chance(50) ? 500 : 1000));
  }
  if (random.Chance(20)) c.before.push_back(ClearAll());
  c.processes = {{any()}, {any()}};
  if (random.Chance(30)) c.processes[0].push_back(any());
  c.kills = c.processes[0].size() == 1;
  c.makes_room_in_vain = true;
  return c;
}

TEST(ModelOfAnyCalls, HoldsInWeakMemory) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Expect(AnyTwo(seed), MemoryModel::kWeak);
  }
}

}  // namespace
}  // namespace rollgate::testing
