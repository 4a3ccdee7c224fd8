// The explorer finds what it is for and leaves out nothing that makes a difference, in each of its
// memory models.
#include "shared/explorer.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
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
      switch (random.Between(0, 2)) {
        case 0:
          heard.push_back(static_cast<std::int64_t>(Explored::Load(word)));
          break;
        case 1:
          Explored::Store(word, value);
          break;
        default:
          heard.push_back(Explored::CompareExchange(word, value - 1, value));
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

/// A process of a litmus test, which hears what it loads, and whether it swaps.
struct Access {
  enum Kind { kLoad, kStore, kSwap } kind;
  std::size_t word;
  std::uint64_t value = 0;
  std::uint64_t expected = 0;
};
constexpr std::size_t kX = 0;
constexpr std::size_t kY = 1;

Access Load(std::size_t word) {
  return {Access::kLoad, word};
}
Access Store(std::size_t word, std::uint64_t value) {
  return {Access::kStore, word, value};
}
Access Swap(std::size_t word, std::uint64_t from, std::uint64_t to) {
  return {Access::kSwap, word, to, from};
}

using Programs = std::vector<std::vector<Access>>;

/// What all processes have heard, then what x and y hold.
std::set<Answer> ResultsOf(const Programs& programs, MemoryModel memory = MemoryModel::kWeak) {
  std::array<Word, 2> words{};
  Scenario scenario{.processes = {}, .memory = memory};
  for (const std::vector<Access>& accesses : programs) {
    scenario.processes.push_back(Of("P", [&] {
      Answer heard;
      for (const auto& [kind, place, value, expected] : accesses) {
        Word& word = words[place];
        if (kind == Access::kStore) Explored::Store(word, value);
        if (kind == Access::kLoad) heard.push_back(static_cast<std::int64_t>(Explored::Load(word)));
        if (kind == Access::kSwap) {
          heard.push_back(Explored::CompareExchange(word, expected, value));
        }
      }
      return heard;
    }));
  }
  std::set<Answer> results;
  scenario.check = [&](const std::vector<Outcome>& outcomes) {
    Answer result;
    for (const Outcome& outcome : outcomes) {
      result.insert(result.end(), outcome.answer->begin(), outcome.answer->end());
    }
    for (const Word& word : words) result.push_back(static_cast<std::int64_t>(word.load()));
    results.insert(result);
    return std::string();
  };
  const Exploration exploration = Explore(scenario);
  EXPECT_TRUE(exploration.ok()) << exploration.violation;
  return results;
}

/// Litmus tests. Where nothing else is said, ARMv8 forbids what weak memory does not yield.
TEST(WeakMemory, YieldsWhatArmv8MayDo) {
  const struct {
    const char* name;
    Programs programs;
    Answer result;
    bool is_possible;
  } tests[] = {
      {"message passing",
       {{Store(kX, 1), Store(kY, 1)}, {Load(kY), Load(kX)}},
       {1, 0, 1, 1},
       false},
      {"store buffering, which x86 allows, and ARMv8 with LDAPR",
       {{Store(kX, 1), Load(kY)}, {Store(kY, 1), Load(kX)}},
       {0, 0, 1, 1},
       true},
      {"store buffering with swaps, which ARMv8 allows with LDAPR and loops of LDAXR and STLXR",
       {{Swap(kX, 0, 1), Load(kY)}, {Swap(kY, 0, 1), Load(kX)}},
       {1, 0, 1, 0, 1, 1},
       true},
      {"load buffering", {{Load(kX), Store(kY, 1)}, {Load(kY), Store(kX, 1)}}, {1, 1, 1, 1}, false},
      {"two readers that disagree on the order of two stores: the C++ model alone allows it",
       {{Store(kX, 1)}, {Store(kY, 1)}, {Load(kX), Load(kY)}, {Load(kY), Load(kX)}},
       {1, 0, 1, 0, 1, 1},
       true},
      {"what was seen is passed on",
       {{Store(kX, 1)}, {Load(kX), Store(kY, 1)}, {Load(kY), Load(kX)}},
       {1, 1, 0, 1, 1},
       false},
      {"stores to two words in orders that contradict each other: C++ allows it",
       {{Store(kX, 1), Store(kY, 2)}, {Store(kY, 1), Store(kX, 2)}},
       {1, 1},
       false},
      {"a swap continues what the store before it has released",
       {{Store(kX, 1), Store(kY, 1)}, {Swap(kY, 1, 2)}, {Load(kY), Load(kX)}},
       {1, 2, 0, 1, 2},
       false},
      {"a swap succeeds on the newest value alone",
       {{Store(kX, 1)}, {Swap(kX, 0, 2)}},
       {1, 2, 0},
       false},
      {"a swap may fail on an old value",
       {{Store(kX, 1), Load(kY)}, {Store(kY, 1), Swap(kX, 1, 3)}},
       {0, 0, 1, 1},
       true},
  };
  for (const auto& [name, programs, result, is_possible] : tests) {
    EXPECT_EQ(ResultsOf(programs).contains(result), is_possible) << name;
  }
  EXPECT_FALSE(ResultsOf(tests[1].programs, MemoryModel::kSequential).contains(tests[1].result));
}

TEST(WeakMemory, ShowsNoProcessAWordThatGoesBack) {
  const std::set<Answer> all{{0, 0, 2, 0}, {0, 1, 2, 0}, {0, 2, 2, 0},
                             {1, 1, 2, 0}, {1, 2, 2, 0}, {2, 2, 2, 0}};
  EXPECT_EQ(ResultsOf({{Store(kX, 1), Store(kX, 2)}, {Load(kX), Load(kX)}}), all);
}

}  // namespace
}  // namespace rollgate::testing
