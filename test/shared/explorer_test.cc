// The explorer finds what it is for and leaves out nothing that makes a difference, in each of its
// memory models.
#include "shared/explorer.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "support/traces.h"

namespace rollgate::testing {
namespace {

using Word = Explored::Word;

Process Of(std::string name, Code run, Code recover = {}) {
  return {std::move(name), std::move(run), std::move(recover)};
}

/// Everything that can be answered, and what memory can hold at the end.
std::set<std::vector<std::int64_t>> EndsOf(Scenario scenario, std::span<Word> words,
                                           Exploration* exploration = nullptr) {
  std::set<std::vector<std::int64_t>> ends;
  scenario.check = [&](const std::vector<Outcome>& outcomes) {
    std::vector<std::int64_t> end;
    for (const Word& word : words) end.push_back(static_cast<std::int64_t>(word.load()));
    for (const Outcome& outcome : outcomes) {
      // One that was killed after its last write may have ended before, or not.
      std::optional<Answer> first = outcome.answer;
      if (outcome.recovered) first.reset();
      for (const auto& answer : {first, outcome.recovered}) {
        end.push_back(answer ? static_cast<std::int64_t>(answer->size()) : -1);
        if (answer) end.insert(end.end(), answer->begin(), answer->end());
      }
    }
    ends.insert(end);
    return std::string();
  };
  const Exploration explored = Explore(scenario);
  EXPECT_TRUE(explored.ok()) << explored.violation;
  if (exploration != nullptr) *exploration = explored;
  return ends;
}

TEST(Explorer, FindsTheLostUpdate) {
  std::array<Word, 1> words{};
  const auto add = [&] {
    const std::uint64_t seen = Explored::Load(words[0]);
    Explored::Store(words[0], seen + 1);
    return Answer{};
  };
  Scenario scenario{.processes = {Of("A", add), Of("B", add)}};
  EXPECT_EQ(EndsOf(scenario, words),
            (std::set<std::vector<std::int64_t>>{{1, 0, -1, 0, -1}, {2, 0, -1, 0, -1}}));
  scenario.check = [&](const auto&) { return words[0] == 2 ? "" : "an update is lost"; };
  const Exploration exploration = Explore(scenario);
  EXPECT_EQ(exploration.violation,
            "an update is lost\n"
            "  A   0 is 0\n"
            "  B   0 is 0\n"
            "  B   0 = 1\n"
            "  A   0 = 1\n");
  EXPECT_EQ(words[0], 0u) << "memory is as it was";
}

TEST(Explorer, FindsThatALockIsNotLockFree) {
  std::array<Word, 2> words{};
  const auto locked = [&] {
    while (!Explored::CompareExchange(words[0], 0, 1)) {
    }
    Explored::Store(words[1], Explored::Load(words[1]) + 1);
    Explored::Store(words[0], 0);
    return Answer{};
  };
  const Scenario scenario{.processes = {Of("A", locked), Of("B", locked)},
                          .check = [](const auto&) { return ""; }};
  const Exploration exploration = Explore(scenario);
  EXPECT_EQ(exploration.violation.rfind("B does not end, even alone\n"
                                        "  A   0: 0 -> 1\n"
                                        "  A   1 is 0\n"
                                        "  A   1 = 1\n"
                                        "  B   0: 0 -> 1, refused\n"
                                        "  B   0: 0 -> 1, refused\n",
                                        0),
            0u)
      << exploration.violation;
}

TEST(Explorer, FindsTwoThatHinderEachOtherForEver) {
  std::array<Word, 1> words{};
  const auto mine = [&words](std::uint64_t number) {
    return [&words, number] {
      for (;;) {
        Explored::Store(words[0], number);
        if (Explored::Load(words[0]) == number) return Answer{};
      }
    };
  };
  const Scenario scenario{.processes = {Of("A", mine(1)), Of("B", mine(2))},
                          .check = [](const auto&) { return ""; },
                          .endless = 200};
  EXPECT_EQ(Explore(scenario).violation.rfind("there is no end to it\n", 0), 0u);
}

TEST(Explorer, KillsBeforeEachWriteAndRecoversBesideTheOthers) {
  std::array<Word, 3> words{};
  const auto write = [&] {
    Explored::Store(words[0], 1);
    Explored::Store(words[1], 1);
    return Answer{7};
  };
  const auto recover = [&] {
    return Answer{
        static_cast<std::int64_t>(Explored::Load(words[0]) * 10 + Explored::Load(words[1]))};
  };
  const auto look = [&] { return Answer{static_cast<std::int64_t>(Explored::Load(words[1]))}; };
  const Scenario scenario{.processes = {Of("A", write, recover), Of("B", look)}, .kills = 1};
  std::set<std::vector<std::int64_t>> seen;
  for (const auto& end : EndsOf(scenario, words)) seen.insert({end.begin() + 3, end.end()});
  const std::set<std::vector<std::int64_t>> expected{{-1, 1, 0, 1, 0, -1},  {-1, 1, 10, 1, 0, -1},
                                                     {-1, 1, 11, 1, 0, -1}, {-1, 1, 11, 1, 1, -1},
                                                     {1, 7, -1, 1, 0, -1},  {1, 7, -1, 1, 1, -1}};
  EXPECT_EQ(seen, expected);
}

/// Random programs of a few accesses to four words; which ones follow from what was read.
Code RandomProgram(std::span<Word> words, std::uint64_t seed) {
  return [words, seed] {
    std::uint64_t state = seed;
    Answer heard;
    for (int step = 0; step < 3; ++step) {
      Random random(state);
      Word& word = words[static_cast<std::size_t>(random.Between(0, 3))];
      const auto value = static_cast<std::uint64_t>(random.Between(1, 3));
      const bool is_relaxed = random.Chance(30);
      const auto order = [&](std::memory_order strong) {
        return is_relaxed ? std::memory_order_relaxed : strong;
      };
      switch (random.Between(0, 2)) {
        case 0:
          heard.push_back(
              static_cast<std::int64_t>(Explored::Load(word, order(std::memory_order_acquire))));
          break;
        case 1:
          Explored::Store(word, value, order(std::memory_order_release));
          break;
        default:
          heard.push_back(Explored::CompareExchange(
              word, value - 1, value, order(std::memory_order_acq_rel), std::memory_order_acquire));
      }
      state = state * 31 + static_cast<std::uint64_t>(heard.empty() ? 17 : heard.back() + 1);
    }
    return heard;
  };
}

TEST(Explorer, LeavesOutNothingThatEndsDifferently) {
  std::size_t all = 0;
  std::size_t reduced = 0;
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    SCOPED_TRACE(seed);
    std::array<Word, 4> words{};
    Scenario scenario{.processes = {}};
    const std::uint64_t processes = seed % 3 == 0 ? 3 : 2;
    for (std::uint64_t i = 0; i < processes; ++i) {
      scenario.processes.push_back(Of(std::string(1, static_cast<char>('A' + i)),
                                      RandomProgram(words, seed * 100 + i),
                                      RandomProgram(words, seed * 100 + 50 + i)));
    }
    scenario.kills = processes == 2 ? static_cast<int>(seed % 2) : 0;
    scenario.memory = seed / 2 % 2 == 0 ? MemoryModel::kSequential : MemoryModel::kWeak;
    Exploration exploration;
    const auto ends = EndsOf(scenario, words, &exploration);
    reduced += exploration.states;
    scenario.reduce = false;
    EXPECT_EQ(EndsOf(scenario, words, &exploration), ends);
    all += exploration.states;
  }
  EXPECT_LT(reduced * 3, all * 2) << "it is worth the effort";
}

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kBoth = std::memory_order_acq_rel;

/// Litmus tests: what weak memory yields, and what ARMv8 does.
class Litmus : public ::testing::Test {
 protected:
  using Access = std::function<void(Answer&)>;

  static Access Store(Word& word, std::uint64_t value, std::memory_order order = kRelease) {
    return [&word, value, order](Answer&) { Explored::Store(word, value, order); };
  }
  static Access Load(Word& word, std::memory_order order = kAcquire) {
    return [&word, order](Answer& heard) {
      heard.push_back(static_cast<std::int64_t>(Explored::Load(word, order)));
    };
  }
  static Access Swap(Word& word, std::uint64_t from, std::uint64_t to,
                     std::memory_order order = kBoth, std::memory_order failure = kAcquire) {
    return [&word, from, to, order, failure](Answer& heard) {
      heard.push_back(Explored::CompareExchange(word, from, to, order, failure));
    };
  }

  using Processes = std::vector<std::vector<Access>>;

  /// What all processes have heard, then what x and y hold.
  std::set<Answer> Results(const Processes& processes, MemoryModel memory = MemoryModel::kWeak) {
    std::set<Answer> results;
    Scenario scenario{.processes = {}, .memory = memory};
    for (const auto& accesses : processes) {
      scenario.processes.push_back({"P", [&accesses] {
                                      Answer heard;
                                      for (const Access& access : accesses) access(heard);
                                      return heard;
                                    }});
    }
    scenario.check = [&](const std::vector<Outcome>& outcomes) {
      Answer result;
      for (const Outcome& outcome : outcomes) {
        result.insert(result.end(), outcome.answer->begin(), outcome.answer->end());
      }
      for (Word* word : {&x, &y}) Load (*word)(result);
      results.insert(result);
      return std::string();
    };
    const Exploration exploration = Explore(scenario);
    EXPECT_TRUE(exploration.ok()) << exploration.violation;
    return results;
  }
  bool Yields(const Processes& processes, const Answer& result,
              MemoryModel memory = MemoryModel::kWeak) {
    return Results(processes, memory).contains(result);
  }

  Word x{0};
  Word y{0};
};

// MP. ARMv8 allows the old x with plain accesses on either side, and forbids it with STLR and LDAR.
TEST_F(Litmus, MessagePassingNeedsReleaseAndAcquire) {
  const auto processes = [this](std::memory_order store, std::memory_order load) {
    return Processes{{Store(x, 1, kRelaxed), Store(y, 1, store)},
                     {Load(y, load), Load(x, kRelaxed)}};
  };
  const Answer old{1, 0, 1, 1};
  EXPECT_FALSE(Yields(processes(kRelease, kAcquire), old));
  EXPECT_TRUE(Yields(processes(kRelease, kRelaxed), old));
  EXPECT_TRUE(Yields(processes(kRelaxed, kAcquire), old));
  EXPECT_FALSE(Yields(processes(kRelaxed, kRelaxed), old, MemoryModel::kSequential));
}

// SB. x86 allows it, and so does ARMv8 with STLR and LDAPR. With STLR and LDAR it forbids it.
TEST_F(Litmus, AStoreMayBeSeenAfterALaterLoad) {
  const Processes processes{{Store(x, 1), Load(y)}, {Store(y, 1), Load(x)}};
  EXPECT_FALSE(Yields(processes, {0, 0, 1, 1}, MemoryModel::kSequential));
  EXPECT_TRUE(Yields(processes, {0, 0, 1, 1}));
}

// SB with swaps. x86 forbids it. ARMv8 allows it where the load is an LDAPR and the swap a loop of
// LDAXR and STLXR.
TEST_F(Litmus, ASwapMayBeSeenAfterALaterLoad) {
  EXPECT_TRUE(Yields({{Swap(x, 0, 1), Load(y)}, {Swap(y, 0, 1), Load(x)}}, {1, 0, 1, 0, 1, 1}));
}

// LB. ARMv8 allows it if a load is plain and so is a store, so the explorer leaves out what code
// with plain stores may do. It forbids it where each load is an acquire or each store a release.
TEST_F(Litmus, NoLoadSeesAStoreThatWaitsForIt) {
  const auto processes = [this](std::memory_order load, std::memory_order store) {
    return Processes{{Load(x, load), Store(y, 1, store)}, {Load(y, load), Store(x, 1, store)}};
  };
  EXPECT_FALSE(Yields(processes(kAcquire, kRelease), {1, 1, 1, 1}));
  EXPECT_FALSE(Yields(processes(kRelaxed, kRelaxed), {1, 1, 1, 1})) << "not modelled";
}

// IRIW. ARMv8 forbids it with LDAR and LDAPR, since all processors see a store at once. The C++
// model does not.
TEST_F(Litmus, TwoReadersMayDisagreeOnTheOrderOfTwoStores) {
  EXPECT_TRUE(Yields({{Store(x, 1)}, {Store(y, 1)}, {Load(x), Load(y)}, {Load(y), Load(x)}},
                     {1, 0, 1, 0, 1, 1}));
}

// WRC. ARMv8 forbids it.
TEST_F(Litmus, WhatWasSeenIsPassedOn) {
  const Processes processes{{Store(x, 1)}, {Load(x), Store(y, 1)}, {Load(y), Load(x)}};
  EXPECT_FALSE(Yields(processes, {1, 1, 0, 1, 1}));
  EXPECT_TRUE(Yields(processes, {0, 1, 0, 1, 1}));
}

// CoRR. ARMv8 forbids it.
TEST_F(Litmus, NoProcessSeesAWordGoBack) {
  const std::set<Answer> all{{0, 0, 2, 0}, {0, 1, 2, 0}, {0, 2, 2, 0},
                             {1, 1, 2, 0}, {1, 2, 2, 0}, {2, 2, 2, 0}};
  EXPECT_EQ(Results({{Store(x, 1, kRelaxed), Store(x, 2, kRelaxed)},
                     {Load(x, kRelaxed), Load(x, kRelaxed)}}),
            all);
}

// 2+2W. ARMv8 allows it with plain stores and forbids it with STLR. C++ allows it with releases,
// which the explorer leaves out.
TEST_F(Litmus, StoresToTwoWordsAreInOneOrder) {
  const auto processes = [this](std::memory_order order) {
    return Processes{{Store(x, 1, order), Store(y, 2, order)},
                     {Store(y, 1, order), Store(x, 2, order)}};
  };
  EXPECT_EQ(Results(processes(kRelease)), (std::set<Answer>{{1, 2}, {2, 1}, {2, 2}}));
  EXPECT_FALSE(Yields(processes(kRelaxed), {1, 1})) << "not modelled";
}

// An acquire of a swap's value also acquires the release before the swap, however weak the swap is.
// ARMv8 forbids it, too: STLR, then LDXR and STXR of the same word.
TEST_F(Litmus, ASwapContinuesTheReleaseBeforeIt) {
  for (const std::memory_order order : {kRelaxed, kBoth}) {
    const Processes processes{{Store(x, 1, kRelaxed), Store(y, 1)},
                              {Swap(y, 1, 2, order, kRelaxed)},
                              {Load(y), Load(x, kRelaxed)}};
    EXPECT_FALSE(Yields(processes, {1, 2, 0, 1, 2}));
    EXPECT_TRUE(Yields(processes, {1, 2, 1, 1, 2}));
  }
}

// A swap acts on the newest value, and fails on an older one only if that is not what it expects.
TEST_F(Litmus, ASwapMayFailOnAnOldValueButNotSucceed) {
  const std::set<Answer> results = Results({{Store(x, 1), Store(y, 1)},
                                            {Load(y, kRelaxed), Swap(x, 0, 2)},
                                            {Load(y, kRelaxed), Swap(x, 1, 3)}});
  EXPECT_FALSE(results.contains({1, 1, 0, 0, 1, 1})) << "the swap of 0 is before the store of 1";
  EXPECT_TRUE(results.contains({1, 0, 1, 0, 1, 1})) << "the swap of 1 sees the old value";
}

}  // namespace
}  // namespace rollgate::testing
