// Every order in which a few processes can take and release slots in a tiny region, with a kill at
// each step, comes to what some order of whole calls comes to.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <utility>
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
  int kills = 1;
  MemoryModel memory = MemoryModel::kWeak;
};
void PrintTo(const HeldCase& c, std::ostream* out) {
  *out << c.name;
}

constexpr std::size_t kDead = 2;
constexpr std::size_t kLiving = 3;

/// Answers as numbers: what is used if it was granted, -1 - what is used if not.
class HeldClient {
 public:
  HeldClient(const std::vector<Identity>& ids, const shared::View& view, std::size_t entry)
      : ids_(ids), table_(view, entry, kRoom, peers_) {}

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
  Peers peers_;
  shared::HeldTable<Peers, Explored> table_;
  std::vector<Granted> granted_;
};

/// What is held after some calls, one after the other.
struct HeldSlots {
  struct Hold {
    std::size_t process;
    std::size_t call;
    int id;
    std::uint32_t cost;
    Micros end;
  };

  const HeldCase* of;
  std::vector<Hold> held = {};

  std::int64_t UsedOf(int id) const {
    std::int64_t used = 0;
    for (const Hold& hold : held) used += hold.id == id ? hold.cost : 0;
    return used;
  }

  /// Whether ids that any process acquires can take all places.
  bool MayBeFull(int id) const {
    std::set<int> others;
    const auto note = [&](const HeldCalls& calls) {
      for (const HeldCall& call : calls) {
        if (call.kind == HeldCall::kAcquire && call.id != id) others.insert(call.id);
      }
    };
    note(of->before);
    for (const HeldCalls& calls : of->processes) note(calls);
    note(of->after_recovery);
    return others.size() >= of->buckets * of->slots;
  }

  void Kill(std::size_t process) {
    std::erase_if(held, [&](const Hold& hold) { return hold.process == process; });
  }

  std::vector<std::pair<HeldSlots, std::int64_t>> Do(std::size_t process, std::size_t number,
                                                     const HeldCall& call) const {
    HeldSlots next = *this;
    std::vector<Hold>& holds = next.held;
    switch (call.kind) {
      case HeldCall::kAcquire: {
        std::vector<std::pair<HeldSlots, std::int64_t>> all;
        if (MayBeFull(call.id)) all.emplace_back(*this, kNoRoom);
        std::erase_if(holds, [&](const Hold& hold) {
          return hold.id == call.id && hold.end != kNever && hold.end <= call.now;
        });
        const std::int64_t used = next.UsedOf(call.id);
        const bool is_granted = used + call.cost <= call.max;
        if (is_granted) holds.push_back({process, number, call.id, call.cost, call.end});
        all.emplace_back(next, is_granted ? used + call.cost : -1 - used);
        return all;
      }
      case HeldCall::kRelease: {
        const auto count = std::erase_if(holds, [&](const Hold& hold) {
          return hold.process == process && hold.call == call.of;
        });
        return {{next, static_cast<std::int64_t>(count)}};
      }
      case HeldCall::kClear:
        std::erase_if(holds, [&](const Hold& hold) { return hold.id == call.id; });
        return {{next, 0}};
      case HeldCall::kClearAll:
        holds.clear();
        return {{next, 0}};
    }
    return {};
  }
};

Exploration RunHeld(const HeldCase& c) {
  const std::vector<Identity> ids = Ids(c.ids, c.buckets, {0, 1 % c.buckets, 0});
  TinyRegion region(c.buckets, c.slots, shared::kState + shared::HeldList::WordsFor(kRoom));
  const shared::View view = region.view();
  view.header->entries_used = 4;
  for (Word& lock : locks) lock = 0;
  HeldSlots start{.of = &c};
  const auto begin = [&](std::size_t process, const HeldCalls& calls) {
    HeldClient client(ids, view, process);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      client.Do(calls[i]);
      start = start.Do(process, i, calls[i]).back().first;
    }
  };
  begin(kDead, c.before_by_dead);
  locks[kDead] = 0;
  start.Kill(kDead);
  begin(kLiving, c.before);

  Scenario scenario = ScenarioOf(c, [&](std::size_t i) { return HeldClient(ids, view, i); });
  for (std::size_t i = 0; i < scenario.processes.size(); ++i) {
    scenario.processes[i].recover = [i, run = scenario.processes[i].recover] {
      // The kernel frees the lock; then another process may take it.
      Explored::Store(locks[i], 0);
      return run();
    };
  }
  scenario.name_of = [&](const Word* word) {
    return word >= locks && word < locks + kProcesses ? "lock " + std::to_string(word - locks)
                                                      : region.NameOf(word);
  };
  scenario.check = [&](const std::vector<Outcome>& outcomes) -> std::string {
    for (const std::string& wrong : Audit(view)) return wrong;
    std::vector<std::int64_t> used;
    HeldClient spectator(ids, view, kSpectator);
    for (std::size_t id = 0; id < c.ids; ++id) used.push_back(spectator.Used(static_cast<int>(id)));
    const auto fits = [&](const HeldSlots& model) {
      for (std::size_t id = 0; id < c.ids; ++id) {
        if (model.UsedOf(static_cast<int>(id)) != used[id]) return false;
      }
      return true;
    };
    const Orders<HeldSlots, HeldCase> orders(c, outcomes, fits);
    return orders.Exist(start) ? "" : Text(outcomes, used);
  };
  return Explore(scenario);
}

const std::vector<HeldCase>& HeldCases() {
  static const std::vector<HeldCase> kCases = {
      {.name = "BothTakeAKnownId",
       .processes = {{Acquire(kA)}, {Acquire(kA)}},
       .before = {Acquire(kA), Release(0)}},
      {.name = "BothTakeANewId", .processes = {{Acquire(kA)}, {Acquire(kA)}}},
      {.name = "BothTakeWhatTheDeadHeld",
       .processes = {{Acquire(kA)}, {Acquire(kA)}},
       .before_by_dead = {Acquire(kA)}},
      {.name = "OneReleasesWhatTheOtherWants",
       .processes = {{Acquire(kA), Release(0)}, {Acquire(kA)}}},
      {.name = "ReleaseMeetsClear",
       .processes = {{Acquire(kA), Release(0)}, {ClearHeld(kA), Acquire(kA)}},
       .memory = MemoryModel::kSequential},
      {.name = "ReleaseMeetsClearAll",
       .processes = {{Acquire(kA), Release(0)}, {ClearAllHeld(), Acquire(kA)}},
       .kills = 0},
      {.name = "TheSuccessorHoldsItsOwn",
       .processes = {{Acquire(kA, 2)}, {Acquire(kA, 2)}},
       .after_recovery = {Acquire(kA, 2)},
       .memory = MemoryModel::kSequential},
      {.name = "OneEnds",
       .processes = {{AcquireAt(10, 20, kA), Release(0)}, {AcquireAt(20, 30, kA)}},
       .kills = 0},
      {.name = "OneEndsAndIsReleasedLate",
       .processes = {{AcquireAt(10, 20, kA, 2), AcquireAt(15, 25, kA, 2), Release(0)},
                     {AcquireAt(20, 30, kA, 2), AcquireAt(20, 30, kA, 2)}},
       .kills = 0},
      {.name = "NoRoomForAnotherId",
       .slots = 1,
       .ids = 2,
       .processes = {{Acquire(kA), Release(0)}, {Acquire(kB)}}},
      {.name = "TheDeadMakeRoomForOneId",
       .slots = 1,
       .ids = 3,
       .processes = {{Acquire(kA)}, {Acquire(kB)}},
       .before_by_dead = {Acquire(kC)},
       .kills = 0},
      {.name = "TwoBuckets",
       .buckets = 2,
       .slots = 1,
       .ids = 3,
       .processes = {{Acquire(kB), Release(0), Acquire(kA)}, {Acquire(kA), Release(0)}},
       .before = {Acquire(kC)},
       .kills = 0},
  };
  return kCases;
}

class HeldModel : public ::testing::TestWithParam<HeldCase> {};
INSTANTIATE_TEST_SUITE_P(, HeldModel, ::testing::ValuesIn(HeldCases()),
                         [](const auto& info) { return info.param.name; });

TEST_P(HeldModel, Holds) {
  const Exploration exploration = RunHeld(GetParam());
  EXPECT_TRUE(exploration.ok()) << exploration.violation;
}

}  // namespace
}  // namespace rollgate::testing
