// The explorer finds what it is there to find, and leaves out nothing that matters.
#include "shared/explorer.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <stdexcept>
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

TEST(Explorer, LosesNoUpdateByCompareExchange) {
  std::array<Word, 1> words{};
  const auto add = [&] {
    for (;;) {
      const std::uint64_t seen = Explored::Load(words[0]);
      if (Explored::CompareExchange(words[0], seen, seen + 1)) return Answer{};
    }
  };
  const Scenario scenario{
      .processes = {Of("A", add), Of("B", add), Of("C", add)},
      .check = [&](const auto&) { return words[0] == 3 ? "" : "an update is lost"; }};
  const Exploration exploration = Explore(scenario);
  EXPECT_TRUE(exploration.ok()) << exploration.violation;
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

TEST(Explorer, ReportsWhatCodeThrows) {
  std::array<Word, 1> words{};
  const auto set = [&] {
    Explored::Store(words[0], 1);
    return Answer{};
  };
  const auto look = [&] {
    if (Explored::Load(words[0]) == 1) throw std::runtime_error("it is set");
    return Answer{};
  };
  const Scenario scenario{.processes = {Of("A", look), Of("B", set)},
                          .check = [](const auto&) { return ""; }};
  EXPECT_EQ(Explore(scenario).violation,
            "A fails: it is set\n"
            "  B   0 = 1\n"
            "  A   0 is 1\n");
}

TEST(Explorer, StoresWaitInBuffersOnlyIfAskedTo) {
  std::array<Word, 2> words{};
  const auto raise = [&words](std::size_t own) {
    return [&words, own] {
      Explored::Store(words[own], 1);
      return Answer{static_cast<std::int64_t>(Explored::Load(words[1 - own]))};
    };
  };
  Scenario scenario{.processes = {Of("A", raise(0)), Of("B", raise(1))}};
  const std::vector<std::int64_t> neither{1, 1, 1, 0, -1, 1, 0, -1};
  EXPECT_EQ(EndsOf(scenario, words).count(neither), 0u);
  scenario.memory = MemoryModel::kStoreBuffers;
  EXPECT_EQ(EndsOf(scenario, words).count(neither), 1u);
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
  constexpr MemoryModel kModels[] = {MemoryModel::kSequential, MemoryModel::kStoreBuffers,
                                     MemoryModel::kWeak};
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
    scenario.memory = kModels[seed / 2 % 3];
    Exploration exploration;
    const auto ends = EndsOf(scenario, words, &exploration);
    reduced += exploration.states;
    scenario.reduce = false;
    EXPECT_EQ(EndsOf(scenario, words, &exploration), ends);
    all += exploration.states;
  }
  EXPECT_LT(reduced * 2, all) << "it is worth its while";
}

}  // namespace
}  // namespace rollgate::testing
