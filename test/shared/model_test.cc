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
#include "shared/model_cases.h"
#include "shared/model_run.h"
#include "shared/table.h"
#include "shared/tiny_region.h"
#include "support/traces.h"

namespace rollgate::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsSanitized = true;
#else
constexpr bool kIsSanitized = false;
#endif

/// Whether cases may take minutes.
bool ExploresAll() {
  const char* const asked = std::getenv("ROLLGATE_MODEL");
  return asked != nullptr && std::string_view(asked) == "all";
}

void Expect(const Case& c) {
  const Exploration exploration = RunCase(c);
  EXPECT_TRUE(exploration.ok()) << exploration.violation;
  // What the weak model has to say of ARMv8 depends on it.
  EXPECT_EQ(exploration.relaxed_stores, 0u);
  ::testing::Test::RecordProperty("explored", exploration.Summary());
}

void ExpectUnder(MemoryModel memory, Case c) {
  c.memory = memory;
  Expect(c);
}

class Model : public ::testing::TestWithParam<Case> {};

TEST_P(Model, HoldsWithStoreBuffers) {
  if (GetParam().is_long && kIsSanitized) GTEST_SKIP() << "takes minutes with a sanitizer";
  ExpectUnder(MemoryModel::kStoreBuffers, GetParam());
}

TEST_P(Model, HoldsInWeakMemory) {
  Case c = GetParam();
  if (c.is_long && (kIsSanitized || !ExploresAll())) c.kills = 0;
  ExpectUnder(MemoryModel::kWeak, c);
}

INSTANTIATE_TEST_SUITE_P(, Model, ::testing::ValuesIn(ModelCases()),
                         [](const auto& info) { return info.param.name; });

// More processes, more kills, longer executions.

TEST(LargeModel, ThreeAttemptAKnownId) {
  const Case c{.max = 2,
               .ids = Ids(1),
               .before = {Attempt(kA, 0)},
               .processes = {{Attempt(kA, 100)}, {Attempt(kA, 101)}, {Attempt(kA, 102)}},
               .kills = 1};
  Expect(c);
  ExpectUnder(MemoryModel::kWeak, c);
}

TEST(LargeModel, ThreeInsertAnId) {
  if (kIsSanitized) GTEST_SKIP() << "takes minutes with a sanitizer";
  const Case c{.max = 2,
               .slots = 1,
               .ids = Ids(1),
               .processes = {{Attempt(kA, 100)}, {Attempt(kA, 101)}, {Attempt(kA, 102)}}};
  Expect(c);
  if (ExploresAll()) ExpectUnder(MemoryModel::kWeak, c);
}

TEST(LargeModel, TwoInsertAnIdThatAThirdClears) {
  if (kIsSanitized) GTEST_SKIP() << "takes minutes with a sanitizer";
  const Case c{.max = 1,
               .slots = 1,
               .ids = Ids(1),
               .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}, {Clear(kA)}},
               .kills = 1};
  Expect(c);
  if (ExploresAll()) ExpectUnder(MemoryModel::kWeak, c);
}

TEST(LargeModel, TwoAreKilled) {
  for (const MemoryModel memory : {MemoryModel::kSequential, MemoryModel::kWeak}) {
    ExpectUnder(memory, {.max = 2,
                         .slots = 1,
                         .ids = Ids(1),
                         .before = {Attempt(kA, 0)},
                         .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
                         .after_recovery = {Attempt(kA, 30)},
                         .kills = 2});
    ExpectUnder(memory, {.slots = 1,
                         .ids = Ids(2),
                         .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20)}},
                         .kills = 2});
  }
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

TEST(LargeModel, AnyTwo) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Case c = AnyTwo(seed);
    Expect(c);
    ExpectUnder(MemoryModel::kWeak, c);
  }
}

TEST(LargeModel, NoCallActsLaterThanItsNowHoweverEarlyThatIs) {
  const std::vector<Identity> ids = Ids(2);
  for (const Micros now : {-kLongest, -(Micros{1} << 55) - 20, -(Micros{1} << 55), Micros{0},
                           Micros{1} << 55, kLongest - 100}) {
    SCOPED_TRACE(now);
    TinyRegion region(1, 1, shared::kState + kStateWords);
    shared::Table<shared::Hardware> table(region.view(), 0);
    ASSERT_FALSE(table.Find(ids[kA]));
    table.Insert(now, [&](Micros) { return shared::Saved{now + 10, 1}; });
    ASSERT_FALSE(table.Find(ids[kB]));
    Micros earliest = 0;
    table.Insert(now + 10, [&](Micros moment) {
      earliest = moment;
      return shared::Saved{now + 20, 1};
    });
    EXPECT_LE(earliest, now + 10);
  }
}

}  // namespace
}  // namespace rollgate::testing
