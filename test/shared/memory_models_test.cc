// Litmus tests: what each memory model of the explorer yields, and what ARMv8 does.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "shared/explorer.h"

namespace rollgate::testing {
namespace {

using Word = Explored::Word;

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kBoth = std::memory_order_acq_rel;

class Litmus : public ::testing::Test {
 protected:
  Word x{0};
  Word y{0};

  static std::int64_t Load(const Word& word, std::memory_order order) {
    return static_cast<std::int64_t>(Explored::Load(word, order));
  }

  /// All answers of all processes, then what x and y hold.
  std::set<Answer> Results(MemoryModel memory, const std::vector<Code>& codes) {
    std::set<Answer> results;
    Scenario scenario{.processes = {}};
    for (const Code& code : codes) scenario.processes.push_back({"P", code});
    scenario.memory = memory;
    scenario.check = [&](const std::vector<Outcome>& outcomes) {
      Answer result;
      for (const Outcome& outcome : outcomes) {
        result.insert(result.end(), outcome.answer->begin(), outcome.answer->end());
      }
      for (const Word* word : {&x, &y}) result.push_back(Load(*word, kAcquire));
      results.insert(result);
      return std::string();
    };
    const Exploration exploration = Explore(scenario);
    EXPECT_TRUE(exploration.ok()) << exploration.violation;
    return results;
  }

  bool Yields(MemoryModel memory, const std::vector<Code>& codes, const Answer& result) {
    return Results(memory, codes).count(result) != 0;
  }
  bool WeakYields(const std::vector<Code>& codes, const Answer& result) {
    return Yields(MemoryModel::kWeak, codes, result);
  }
};

// MP. ARMv8 allows the old x with plain accesses on either side, and forbids it with STLR and LDAR.
TEST_F(Litmus, MessagePassingNeedsReleaseAndAcquire) {
  const auto codes = [this](std::memory_order store, std::memory_order load) {
    return std::vector<Code>{[this, store] {
                               Explored::Store(x, 1, kRelaxed);
                               Explored::Store(y, 1, store);
                               return Answer{};
                             },
                             [this, load] {
                               const std::int64_t flag = Load(y, load);
                               return Answer{flag, Load(x, kRelaxed)};
                             }};
  };
  const Answer old{1, 0, 1, 1};
  EXPECT_FALSE(WeakYields(codes(kRelease, kAcquire), old));
  EXPECT_TRUE(WeakYields(codes(kRelease, kRelaxed), old));
  EXPECT_TRUE(WeakYields(codes(kRelaxed, kAcquire), old));
  EXPECT_FALSE(Yields(MemoryModel::kStoreBuffers, codes(kRelaxed, kRelaxed), old));
}

// SB. ARMv8 allows it with STLR and LDAPR, and forbids it with STLR and LDAR. Compilers use either.
TEST_F(Litmus, AStoreMayBeSeenAfterALaterLoad) {
  const std::vector<Code> codes{[this] {
                                  Explored::Store(x, 1, kRelease);
                                  return Answer{Load(y, kAcquire)};
                                },
                                [this] {
                                  Explored::Store(y, 1, kRelease);
                                  return Answer{Load(x, kAcquire)};
                                }};
  const Answer neither{0, 0, 1, 1};
  EXPECT_FALSE(Yields(MemoryModel::kSequential, codes, neither));
  EXPECT_TRUE(Yields(MemoryModel::kStoreBuffers, codes, neither));
  EXPECT_TRUE(WeakYields(codes, neither));
}

// SB with swaps. x86 forbids it. ARMv8 allows it where the load is an LDAPR and the swap a loop of
// LDAXR and STLXR.
TEST_F(Litmus, ASwapMayBeSeenAfterALaterLoad) {
  const auto swap_and_look = [](Word& mine, const Word& other) -> Code {
    return [&mine, &other] {
      Explored::CompareExchange(mine, 0, 1, kBoth, kAcquire);
      return Answer{Load(other, kAcquire)};
    };
  };
  const std::vector<Code> codes{swap_and_look(x, y), swap_and_look(y, x)};
  EXPECT_FALSE(Yields(MemoryModel::kStoreBuffers, codes, {0, 0, 1, 1}));
  EXPECT_TRUE(WeakYields(codes, {0, 0, 1, 1}));
}

// LB. ARMv8 allows it if a load is plain and so is a store, so the explorer leaves out what code
// with plain stores may do. It forbids it where each load is an acquire or each store a release.
TEST_F(Litmus, NoLoadSeesAStoreThatWaitsForIt) {
  const auto codes = [this](std::memory_order load, std::memory_order store) {
    return std::vector<Code>{[this, load, store] {
                               const std::int64_t seen = Load(x, load);
                               Explored::Store(y, 1, store);
                               return Answer{seen};
                             },
                             [this, load, store] {
                               const std::int64_t seen = Load(y, load);
                               Explored::Store(x, 1, store);
                               return Answer{seen};
                             }};
  };
  EXPECT_FALSE(WeakYields(codes(kAcquire, kRelease), {1, 1, 1, 1}));
  EXPECT_FALSE(WeakYields(codes(kRelaxed, kRelaxed), {1, 1, 1, 1})) << "not modelled";
}

// IRIW. ARMv8 forbids it with LDAR and LDAPR, since all processors see a store at once. The C++
// model does not.
TEST_F(Litmus, TwoReadersMayDisagreeOnTheOrderOfTwoStores) {
  const auto store = [](Word& word) -> Code {
    return [&word] {
      Explored::Store(word, 1, kRelease);
      return Answer{};
    };
  };
  const auto read = [](const Word& first, const Word& second) -> Code {
    return [&first, &second] {
      const std::int64_t seen = Load(first, kAcquire);
      return Answer{seen, Load(second, kAcquire)};
    };
  };
  const std::vector<Code> codes{store(x), store(y), read(x, y), read(y, x)};
  EXPECT_FALSE(Yields(MemoryModel::kStoreBuffers, codes, {1, 0, 1, 0, 1, 1}));
  EXPECT_TRUE(WeakYields(codes, {1, 0, 1, 0, 1, 1}));
}

// WRC. ARMv8 forbids it.
TEST_F(Litmus, WhatWasSeenIsPassedOn) {
  const std::vector<Code> codes{[this] {
                                  Explored::Store(x, 1, kRelease);
                                  return Answer{};
                                },
                                [this] {
                                  const std::int64_t seen = Load(x, kAcquire);
                                  Explored::Store(y, 1, kRelease);
                                  return Answer{seen};
                                },
                                [this] {
                                  const std::int64_t flag = Load(y, kAcquire);
                                  return Answer{flag, Load(x, kAcquire)};
                                }};
  EXPECT_FALSE(WeakYields(codes, {1, 1, 0, 1, 1}));
  EXPECT_TRUE(WeakYields(codes, {0, 1, 0, 1, 1}));
}

// CoRR. ARMv8 forbids it.
TEST_F(Litmus, NoProcessSeesAWordGoBack) {
  const std::vector<Code> codes{[this] {
                                  Explored::Store(x, 1, kRelaxed);
                                  Explored::Store(x, 2, kRelaxed);
                                  return Answer{};
                                },
                                [this] {
                                  const std::int64_t first = Load(x, kRelaxed);
                                  return Answer{first, Load(x, kRelaxed)};
                                }};
  const std::set<Answer> all{{0, 0, 2, 0}, {0, 1, 2, 0}, {0, 2, 2, 0},
                             {1, 1, 2, 0}, {1, 2, 2, 0}, {2, 2, 2, 0}};
  EXPECT_EQ(Results(MemoryModel::kWeak, codes), all);
}

// 2+2W. ARMv8 allows it with plain stores and forbids it with STLR. C++ allows it with releases,
// which the explorer leaves out.
TEST_F(Litmus, StoresToTwoWordsAreInOneOrder) {
  const auto codes = [this](std::memory_order order) {
    return std::vector<Code>{[this, order] {
                               Explored::Store(x, 1, order);
                               Explored::Store(y, 2, order);
                               return Answer{};
                             },
                             [this, order] {
                               Explored::Store(y, 1, order);
                               Explored::Store(x, 2, order);
                               return Answer{};
                             }};
  };
  EXPECT_EQ(Results(MemoryModel::kWeak, codes(kRelease)),
            (std::set<Answer>{{1, 2}, {2, 1}, {2, 2}}));
  EXPECT_FALSE(WeakYields(codes(kRelaxed), {1, 1})) << "not modelled";
}

// Whoever acquires a swap's value has also acquired the release before it, however weak the swap
// is. ARMv8 forbids it, too: STLR, then LDXR and STXR of the same word.
TEST_F(Litmus, ASwapContinuesTheReleaseBeforeIt) {
  const auto codes = [this](std::memory_order swap) {
    return std::vector<Code>{
        [this] {
          Explored::Store(x, 1, kRelaxed);
          Explored::Store(y, 1, kRelease);
          return Answer{};
        },
        [this, swap] { return Answer{Explored::CompareExchange(y, 1, 2, swap, kRelaxed)}; },
        [this] {
          const std::int64_t flag = Load(y, kAcquire);
          return Answer{flag, Load(x, kRelaxed)};
        }};
  };
  for (const std::memory_order swap : {kRelaxed, kBoth}) {
    EXPECT_FALSE(WeakYields(codes(swap), {1, 2, 0, 1, 2}));
    EXPECT_TRUE(WeakYields(codes(swap), {1, 2, 1, 1, 2}));
  }
}

// A swap acts on the newest value, and fails on an older one only if that is not what it expects.
TEST_F(Litmus, ASwapMayFailOnAnOldValueButNotSucceed) {
  const std::vector<Code> codes{[this] {
                                  Explored::Store(x, 1, kRelease);
                                  Explored::Store(y, 1, kRelease);
                                  return Answer{};
                                },
                                [this] {
                                  const std::int64_t flag = Load(y, kRelaxed);
                                  const bool from_0 = Explored::CompareExchange(x, 0, 2);
                                  return Answer{flag, from_0};
                                },
                                [this] {
                                  const std::int64_t flag = Load(y, kRelaxed);
                                  return Answer{flag, Explored::CompareExchange(x, 1, 3)};
                                }};
  const std::set<Answer> results = Results(MemoryModel::kWeak, codes);
  EXPECT_EQ(results.count({1, 1, 0, 0, 1, 1}), 0u) << "the swap of 0 comes before the store of 1";
  EXPECT_EQ(results.count({1, 0, 1, 0, 1, 1}), 1u) << "the swap of 1 sees the old value";
}

}  // namespace
}  // namespace rollgate::testing
