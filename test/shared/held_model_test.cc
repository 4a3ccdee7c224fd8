// Every order in which a few processes can take and release slots in a tiny region, with a kill at
// each step, comes to what some order of whole calls comes to. Steps that are left out are found.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "shared/explorer.h"
#include "shared/held_table.h"
#include "shared/model.h"
#include "shared/tiny_region.h"

namespace rollgate::testing {
namespace {

using shared::HeldAnswer;
using shared::Word;

constexpr std::size_t kRoom = 4;
constexpr std::int64_t kNoRoom = -100;

/// Who holds which entry; the kernel's locks.
constexpr std::size_t kProcesses = 4;
Word locks[kProcesses];

struct Retries {
  explicit Retries(int&) {}
  void Next() {}
};

struct Peers {
  using Tries = Retries;
  void Hold(std::size_t entry) {
    if (entry < kProcesses) Explored::Store(locks[entry], 1);
  }
  void Look() {}
  bool IsHeld(std::size_t entry) { return entry < kProcesses && Explored::Load(locks[entry]) != 0; }
};

/// Takes everybody for alive, or for dead.
struct AllAlive : Peers {
  bool IsHeld(std::size_t) { return true; }
};
struct AllDead : Peers {
  bool IsHeld(std::size_t) { return false; }
};

struct HeldCall {
  enum Kind { kAcquire, kRelease, kClear, kClearAll } kind;
  int id = kA;
  std::uint32_t cost = 1;
  std::uint32_t max = 1;
  Micros now = 0;
  Micros end = kNever;
  std::size_t of = 0;  ///< which of the process's calls a release is for
};
using HeldCalls = std::vector<HeldCall>;

HeldCall Acquire(int id, std::uint32_t max = 1, std::uint32_t cost = 1) {
  return {.kind = HeldCall::kAcquire, .id = id, .cost = cost, .max = max};
}
HeldCall AcquireAt(Micros now, Micros end, int id, std::uint32_t max = 1) {
  return {.kind = HeldCall::kAcquire, .id = id, .max = max, .now = now, .end = end};
}
HeldCall Release(std::size_t of) {
  return {.kind = HeldCall::kRelease, .of = of};
}
HeldCall ClearHeld(int id) {
  return {.kind = HeldCall::kClear, .id = id};
}
HeldCall ClearAllHeld() {
  return {.kind = HeldCall::kClearAll};
}

struct HeldCase {
  std::string name = {};
  std::uint64_t buckets = 1;
  std::uint64_t slots = 2;
  std::size_t ids = 1;
  std::vector<HeldCalls> processes = {};
  HeldCalls before = {};          ///< by a process that lives on
  HeldCalls before_by_dead = {};  ///< by one that has been killed
  HeldCalls after_recovery = {};
  int kills = 0;
  MemoryModel memory = MemoryModel::kWeak;
};
void PrintTo(const HeldCase& c, std::ostream* out) {
  *out << c.name;
}

constexpr std::size_t kDead = 2;
constexpr std::size_t kLiving = 3;

/// Answers as numbers: what is used if it was granted, -1 - what is used if not.
template <class P, class Access>
class HeldClient {
 public:
  HeldClient(const HeldCase& c, const std::vector<Identity>& ids, const shared::View& view,
             std::size_t entry)
      : ids_(ids), table_(view, entry, kRoom, peers_) {
    (void)c;
  }

  std::int64_t Do(const HeldCall& call) {
    const Identity& id = ids_[static_cast<std::size_t>(call.id)];
    granted_.emplace_back();
    switch (call.kind) {
      case HeldCall::kAcquire: {
        const HeldAnswer answer = table_.Acquire(
            id, call.cost, call.max, [&] { return call.now; }, [&] { return call.end; });
        if (answer.kind == HeldAnswer::Kind::kNoRoom) return kNoRoom;
        const auto used = static_cast<std::int64_t>(answer.used);
        if (answer.kind == HeldAnswer::Kind::kRefused) return -1 - used;
        granted_.back() = {id, answer.holding};
        return used;
      }
      case HeldCall::kRelease: {
        const auto& [of, holding] = granted_[call.of];
        return holding.cost > 0 && table_.Release(of, holding);
      }
      case HeldCall::kClear:
        table_.Clear(id);
        return 0;
      case HeldCall::kClearAll:
        table_.ClearAll();
        return 0;
    }
    return 0;
  }

  std::int64_t Used(int id) {
    return table_.UsedOf(ids_[static_cast<std::size_t>(id)], [] { return Micros{0}; });
  }

 private:
  struct Granted {
    Identity id;
    shared::Holding holding;
  };
  const std::vector<Identity>& ids_;
  P peers_;
  shared::HeldTable<P, Access> table_;
  std::vector<Granted> granted_;
};

/// Looks for an order of whole calls with these answers. Those of a killed process are the first
/// ones of its own, perhaps one more without an answer, then its death, then those after it.
class HeldOrders {
 public:
  HeldOrders(const HeldCase& c, const std::vector<Outcome>& outcomes,
             const std::vector<std::int64_t>& used)
      : case_(c), outcomes_(outcomes), used_(used) {}

  bool Exist() {
    State state;
    state.at.resize(case_.processes.size());
    for (std::size_t i = 0; i < case_.before_by_dead.size(); ++i) {
      Apply(state, kDead, i, case_.before_by_dead[i], nullptr);
    }
    std::erase_if(state.held, [](const Hold& hold) { return hold.process == kDead; });
    for (std::size_t i = 0; i < case_.before.size(); ++i) {
      Apply(state, kLiving, i, case_.before[i], nullptr);
    }
    return Walk(state);
  }

 private:
  struct Hold {
    std::size_t process;
    std::size_t call;
    int id;
    std::uint32_t cost;
    Micros end;
  };
  struct Progress {
    std::size_t calls = 0;
    bool is_dead = false;
    std::size_t later = 0;  ///< calls after the recovery
  };
  struct State {
    std::vector<Progress> at;
    std::vector<Hold> held;
  };

  std::uint32_t UsedOf(const State& state, int id) const {
    std::uint32_t used = 0;
    for (const Hold& hold : state.held) used += hold.id == id ? hold.cost : 0;
    return used;
  }

  bool MayBeFull(int id) const {
    std::vector<bool> others(case_.ids);
    const auto note = [&](const HeldCalls& calls) {
      for (const HeldCall& call : calls) {
        if (call.kind == HeldCall::kAcquire && call.id != id) {
          others[static_cast<std::size_t>(call.id)] = true;
        }
      }
    };
    note(case_.before);
    for (const HeldCalls& calls : case_.processes) note(calls);
    note(case_.after_recovery);
    return static_cast<std::uint64_t>(std::count(others.begin(), others.end(), true)) >=
           case_.buckets * case_.slots;
  }

  /// Does the call; returns whether it can have had this answer.
  bool Apply(State& state, std::size_t process, std::size_t number, const HeldCall& call,
             const std::int64_t* answer) const {
    switch (call.kind) {
      case HeldCall::kAcquire: {
        if (answer != nullptr && *answer == kNoRoom) return MayBeFull(call.id);
        std::erase_if(state.held, [&](const Hold& hold) {
          return hold.id == call.id && hold.end != kNever && hold.end <= call.now;
        });
        const std::uint32_t used = UsedOf(state, call.id);
        const bool is_granted = used + call.cost <= call.max;
        const std::int64_t expected =
            is_granted ? used + call.cost : -1 - static_cast<std::int64_t>(used);
        if (answer != nullptr && *answer != expected) return false;
        if (is_granted) state.held.push_back({process, number, call.id, call.cost, call.end});
        return true;
      }
      case HeldCall::kRelease: {
        const auto count = std::erase_if(state.held, [&](const Hold& hold) {
          return hold.process == process && hold.call == call.of;
        });
        return answer == nullptr || *answer == static_cast<std::int64_t>(count);
      }
      case HeldCall::kClear:
        std::erase_if(state.held, [&](const Hold& hold) { return hold.id == call.id; });
        return true;
      case HeldCall::kClearAll:
        state.held.clear();
        return true;
    }
    return false;
  }

  bool IsEnd(const State& state) const {
    for (std::size_t id = 0; id < case_.ids; ++id) {
      if (UsedOf(state, static_cast<int>(id)) != used_[id]) return false;
    }
    return true;
  }

  bool Walk(const State& state) const {
    bool has_ended = true;
    for (std::size_t p = 0; p < state.at.size(); ++p) {
      const Progress& progress = state.at[p];
      const Outcome& outcome = outcomes_[p];
      const bool was_killed = outcome.recovered.has_value();
      const HeldCalls& calls = case_.processes[p];
      if (!progress.is_dead && progress.calls < calls.size()) {
        const std::int64_t* const answer =
            outcome.answer ? &(*outcome.answer)[progress.calls] : nullptr;
        State next = state;
        ++next.at[p].calls;
        has_ended = has_ended && was_killed;
        if (Apply(next, p, progress.calls, calls[progress.calls], answer) && Walk(next)) {
          return true;
        }
      }
      if (was_killed && !progress.is_dead) {
        has_ended = false;
        State next = state;
        next.at[p].is_dead = true;
        std::erase_if(next.held, [&](const Hold& hold) { return hold.process == p; });
        if (Walk(next)) return true;
      }
      if (progress.is_dead && progress.later < case_.after_recovery.size()) {
        has_ended = false;
        State next = state;
        const std::size_t number = next.at[p].later++;
        const std::int64_t* const answer = &(*outcome.recovered)[number];
        if (Apply(next, p, 100 + number, case_.after_recovery[number], answer) && Walk(next)) {
          return true;
        }
      }
    }
    return has_ended && IsEnd(state);
  }

  const HeldCase& case_;
  const std::vector<Outcome>& outcomes_;
  const std::vector<std::int64_t>& used_;
};

template <class P = Peers, class Access = TableAccess>
Exploration RunHeld(const HeldCase& c) {
  const std::vector<Identity> ids = Ids(c.ids, c.buckets, {0, 1 % c.buckets, 0});
  TinyRegion region(c.buckets, c.slots, shared::kState + shared::HeldList::WordsFor(kRoom));
  explored_region = &region;
  const shared::View view = region.view();
  view.header->entries_used = 4;
  for (Word& lock : locks) lock = 0;
  HeldClient<Peers, TableAccess> dead(c, ids, view, kDead);
  for (const HeldCall& call : c.before_by_dead) dead.Do(call);
  locks[kDead] = 0;
  HeldClient<Peers, TableAccess> living(c, ids, view, kLiving);
  for (const HeldCall& call : c.before) living.Do(call);

  Scenario scenario;
  scenario.kills = c.kills;
  scenario.memory = c.memory;
  scenario.name_of = [&](const Word* word) {
    return word >= locks && word < locks + kProcesses ? "lock " + std::to_string(word - locks)
                                                      : region.NameOf(word);
  };
  for (std::size_t i = 0; i < c.processes.size(); ++i) {
    const auto run = [&c, &ids, view, i](const HeldCalls& calls) {
      HeldClient<P, Access> client(c, ids, view, i);
      Answer answer;
      for (const HeldCall& call : calls) answer.push_back(client.Do(call));
      return answer;
    };
    scenario.processes.push_back({std::string(1, static_cast<char>('A' + i)),
                                  [run, &c, i] { return run(c.processes[i]); },
                                  [run, &c, i] {
                                    // The kernel frees the lock; then another process may take it.
                                    Explored::Store(locks[i], 0);
                                    return run(c.after_recovery);
                                  }});
  }
  scenario.check = [&](const std::vector<Outcome>& outcomes) -> std::string {
    for (const std::string& wrong : Audit(view)) return wrong;
    std::vector<std::int64_t> used;
    HeldClient<Peers, TableAccess> spectator(c, ids, view, kSpectator);
    for (std::size_t id = 0; id < c.ids; ++id) used.push_back(spectator.Used(static_cast<int>(id)));
    if (HeldOrders(c, outcomes, used).Exist()) return "";
    End end;
    for (const Outcome& outcome : outcomes) {
      AddAnswer(end, outcome.answer);
      AddAnswer(end, outcome.recovered);
    }
    end.insert(end.end(), used.begin(), used.end());
    return "no order of calls comes to this:" + Text(end);
  };
  Exploration exploration = Explore(scenario);
  explored_region = nullptr;
  return exploration;
}

const std::vector<HeldCase>& HeldCases() {
  static const std::vector<HeldCase> kCases = {
      {.name = "BothTakeAKnownId",
       .processes = {{Acquire(kA)}, {Acquire(kA)}},
       .before = {Acquire(kA), Release(0)},
       .kills = 1},
      {.name = "BothTakeANewId", .processes = {{Acquire(kA)}, {Acquire(kA)}}, .kills = 1},
      {.name = "BothTakeWhatTheDeadHeld",
       .processes = {{Acquire(kA)}, {Acquire(kA)}},
       .before_by_dead = {Acquire(kA)},
       .kills = 1},
      {.name = "OneReleasesWhatTheOtherWants",
       .processes = {{Acquire(kA), Release(0)}, {Acquire(kA)}},
       .kills = 1},
      {.name = "ReleaseMeetsClear",
       .processes = {{Acquire(kA), Release(0)}, {ClearHeld(kA), Acquire(kA)}},
       .kills = 1,
       .memory = MemoryModel::kSequential},
      {.name = "ReleaseMeetsClearAll",
       .processes = {{Acquire(kA), Release(0)}, {ClearAllHeld(), Acquire(kA)}}},
      {.name = "TheSuccessorHoldsItsOwn",
       .processes = {{Acquire(kA, 2)}, {Acquire(kA, 2)}},
       .after_recovery = {Acquire(kA, 2)},
       .kills = 1,
       .memory = MemoryModel::kSequential},
      {.name = "OneEnds",
       .processes = {{AcquireAt(10, 20, kA), Release(0)}, {AcquireAt(20, 30, kA)}}},
      {.name = "OneEndsAndIsReleasedLate",
       .processes = {{AcquireAt(10, 20, kA, 2), AcquireAt(15, 25, kA, 2), Release(0)},
                     {AcquireAt(20, 30, kA, 2), AcquireAt(20, 30, kA, 2)}}},
      {.name = "NoRoomForAnotherId",
       .slots = 1,
       .ids = 2,
       .processes = {{Acquire(kA), Release(0)}, {Acquire(kB)}},
       .kills = 1},
      {.name = "TheDeadMakeRoomForOneId",
       .slots = 1,
       .ids = 3,
       .processes = {{Acquire(kA)}, {Acquire(kB)}},
       .before_by_dead = {Acquire(kC)}},
      {.name = "TwoBuckets",
       .buckets = 2,
       .slots = 1,
       .ids = 3,
       .processes = {{Acquire(kB), Release(0), Acquire(kA)}, {Acquire(kA), Release(0)}},
       .before = {Acquire(kC)}},
  };
  return kCases;
}

class HeldModel : public ::testing::TestWithParam<HeldCase> {};
INSTANTIATE_TEST_SUITE_P(, HeldModel, ::testing::ValuesIn(HeldCases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(HeldModel, Holds) {
  const Exploration exploration = RunHeld(GetParam());
  EXPECT_TRUE(exploration.ok()) << exploration.violation;
  EXPECT_EQ(exploration.relaxed_stores, 0u);
}

const HeldCase& HeldCaseNamed(std::string_view name) {
  return *std::find_if(HeldCases().begin(), HeldCases().end(),
                       [&](const HeldCase& c) { return c.name == name; });
}

/// Never counts how many times an entry was taken: what its last owner held is the next one's.
struct WithoutTaken : TableAccess {
  static void Store(Word& word, std::uint64_t value) {
    constexpr int kTaken = 6;
    if (EntryField(&word) != kTaken) TableAccess::Store(word, value);
  }
};

/// Swaps what it has read, whatever is there now.
struct SwapsAnyway : TableAccess {
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    if (BucketField(&word) > 0) expected = TableAccess::Load(word);
    return TableAccess::CompareExchange(word, expected, desired);
  }
};

TEST(BrokenHeldModel, WhoTakesTheDeadForAliveIsRefused) {
  EXPECT_FALSE(RunHeld<AllAlive>(HeldCaseNamed("BothTakeWhatTheDeadHeld")).ok());
}
TEST(BrokenHeldModel, WhoTakesTheLivingForDeadHoldsTooMuch) {
  EXPECT_FALSE(RunHeld<AllDead>(HeldCaseNamed("BothTakeAKnownId")).ok());
}
TEST(BrokenHeldModel, TheNextOwnerOfAnEntryMustBeToldApart) {
  EXPECT_FALSE((RunHeld<Peers, WithoutTaken>(HeldCaseNamed("TheSuccessorHoldsItsOwn")).ok()));
}
TEST(BrokenHeldModel, AChangeMustBeOfWhatWasRead) {
  EXPECT_FALSE((RunHeld<Peers, SwapsAnyway>(HeldCaseNamed("BothTakeAKnownId")).ok()));
}

}  // namespace
}  // namespace rollgate::testing
