// The search: a state is the shared words and a place in each process's tree.
#include "shared/explorer.h"

#include <algorithm>
#include <cstdio>
#include <unordered_set>
#include <utility>

#include "shared/explorer_parts.h"

namespace rollgate::testing {
namespace explorer {
namespace {

constexpr std::size_t kLongestSchedule = 300;  ///< that is printed

enum class Action : std::uint8_t { kStep, kKill };

struct Transition {
  std::uint32_t slot;
  Action action;
  Way way = 0;
};

struct Step {
  Transition transition;
  Place place;
  Effect effect = {};
};

constexpr std::size_t kVainSteps = 10000;  ///< of a pass that will have to be done again
constexpr std::uint32_t kNobody = ~std::uint32_t{0};

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
  const Operation& operation = trees.at(step.place);
  std::string text = name_of(operation.word);
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

/// A line for each step.
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

/// One process within a state.
struct Slot {
  Place place;
  bool killed = false;
  std::uint32_t answer = 0;  ///< of the process that was killed; 0: none
};

/// All processes within a state.
struct Processes {
  std::vector<Slot> slots;
  int kills = 0;
  std::uint32_t last = 0;        ///< process that made the last step
  std::uint32_t turn = kNobody;  ///< process whose reads happen right before its next write
};

/// Thrown when so much is new that a pass should begin again.
struct Again {};

struct Violation {
  std::string what;
};

class Search {
 public:
  explicit Search(const Scenario& scenario)
      : scenario_(scenario),
        trees_(words_, scenario.endless),
        memory_(words_, scenario.processes.size(), scenario.memory == MemoryModel::kWeak) {}

  Exploration Run() {
    try {
      // Which words are shared is found out on the way, so passes go on until nothing is new.
      do {
        memory_.ForgetWidened();
        try {
          Pass();
        } catch (const Again&) {
        }
      } while (memory_.is_widened());
    } catch (const Violation& violation) {
      result_.violation = violation.what + "\n" + Schedule(path_, scenario_, words_, trees_);
    }
    return std::move(result_);
  }

 private:
  void Pass() {
    visited_.clear();
    path_.clear();
    result_.states = steps_ = 0;
    now_ = {};
    for (const Process& process : scenario_.processes) {
      if (roots_.size() == now_.slots.size()) {
        const Place root = trees_.Grow(process.run, kNowhere, 0, {});
        roots_.push_back({Checked(static_cast<std::uint32_t>(roots_.size()), root), kNowhere});
      }
      now_.slots.push_back({.place = roots_[now_.slots.size()].first});
    }
    Visit();
  }

  const Operation& NextOf(const Slot& slot) const { return trees_.at(slot.place); }

  Key StateKey() const {
    Key key;
    std::uint32_t active = 0;
    for (std::uint32_t i = 0; i < now_.slots.size(); ++i) {
      const Slot& slot = now_.slots[i];
      key.Add(slot.place, std::uint64_t{slot.answer} << 1 | slot.killed);
      if (NextOf(slot).kind != Kind::kFinished || CanKill(i)) active |= 1u << i;
    }
    key.Add(static_cast<std::uint64_t>(now_.kills), now_.turn);
    memory_.AddTo(key, active);
    return key;
  }

  /// What can happen next: all of it, or a part that does if the rest may as well come later.
  void Choose(std::vector<Transition>& chosen) {
    chosen.clear();
    for (std::uint32_t i = 0; i < now_.slots.size(); ++i) {
      if (now_.turn != kNobody && now_.turn != i) continue;
      const std::size_t before = chosen.size();
      if (ChooseStep(i, chosen)) {
        std::erase_if(chosen, [i](const Transition& each) { return each.slot != i; });
        return;
      }
      // The process that ran last goes first: fewer switches in what is found.
      if (i == now_.last) std::rotate(chosen.begin(), chosen.begin() + before, chosen.end());
    }
  }

  /// Adds what a process can do next, or its kill. True if the rest may as well come later.
  bool ChooseStep(std::uint32_t i, std::vector<Transition>& chosen) {
    const Slot& slot = now_.slots[i];
    const Operation& next = NextOf(slot);
    if (next.kind == Kind::kFailed) {
      throw Violation{scenario_.processes[i].name + " " + trees_.failure(next.answer)};
    }
    bool ends = false;
    bool own = false;
    if (next.kind == Kind::kFinished) {
      ends = !slot.killed;
    } else {
      for (const Way way : memory_.WaysOf(i, next)) chosen.push_back({i, Action::kStep, way});
      own = memory_.IsOwn(i, next);
      // A kill before a load is the same as one right after it. Where a load determines what can
      // be read later, an earlier kill leaves more.
      ends = memory_.ReadsCanWait() ? now_.turn != i && !(own && next.kind == Kind::kLoad)
                                    : next.kind != Kind::kLoad;
    }
    if (!scenario_.reduce) {
      own = false;
      ends = ends || next.kind != Kind::kFinished;
    }
    if (ends && CanKill(i)) chosen.push_back({i, Action::kKill});
    return own;
  }

  bool CanKill(std::uint32_t i) const {
    return now_.kills < scenario_.kills && scenario_.processes[i].recover;
  }

  void Visit() {
    std::vector<Transition> chosen;
    const std::size_t steps = path_.size();
    const Undo undo(*this);
    // Where there is no choice there is no need to remember the state.
    for (Choose(chosen); chosen.size() == 1 && !IsEnd(chosen); Choose(chosen)) Take(chosen.front());
    if (visited_.insert(StateKey()).second) {
      ++result_.states;
      if (IsEnd(chosen)) End();
      for (const Transition& transition : chosen) {
        const Undo back(*this);
        Take(transition);
        Visit();
        path_.pop_back();
      }
    }
    path_.resize(steps);
  }

  /// Whether nothing has to happen any more.
  static bool IsEnd(const std::vector<Transition>& chosen) {
    return std::all_of(chosen.begin(), chosen.end(),
                       [](const Transition& each) { return each.action == Action::kKill; });
  }

  void Take(const Transition& transition) {
    if (++steps_ > kVainSteps && memory_.is_widened()) throw Again{};
    const std::uint32_t i = now_.last = transition.slot;
    Slot& slot = now_.slots[i];
    path_.push_back({transition, slot.place});
    if (path_.size() > scenario_.endless) throw Violation{"there is no end to it"};
    switch (transition.action) {
      case Action::kKill:
        ++now_.kills;
        if (!slot.killed && NextOf(slot).kind == Kind::kFinished) slot.answer = NextOf(slot).answer;
        slot.killed = true;
        now_.turn = kNobody;
        if (roots_[i].second == kNowhere) {
          const Code& recover = scenario_.processes[i].recover;
          const Place root = trees_.Grow(recover, kNowhere, 0, memory_.values());
          roots_[i].second = Checked(i, root);
        }
        slot.place = roots_[i].second;
        break;
      case Action::kStep:
        Perform(i, transition.way);
        break;
    }
  }

  void Perform(std::uint32_t i, Way way) {
    Slot& slot = now_.slots[i];
    const Operation next = NextOf(slot);
    const bool own = memory_.IsOwn(i, next);
    const Effect effect = memory_.Perform(i, next, way);
    const bool writes =
        next.kind == Kind::kStore || (next.kind == Kind::kCompareExchange && effect.heard != 0);
    path_.back().effect = effect;
    const Process& process = scenario_.processes[i];
    const Place place = trees_.After(slot.killed ? process.recover : process.run, slot.place,
                                     effect.heard, memory_.values());
    slot.place = Checked(i, place);
    // Reads that can wait happen right before the write that follows them. One that is its
    // process's own was not a choice among all processes, so it does not begin a turn.
    const Kind then = NextOf(slot).kind;
    if (writes || then == Kind::kFinished || then == Kind::kFailed) {
      now_.turn = kNobody;
    } else if (scenario_.reduce && memory_.ReadsCanWait() && !own) {
      now_.turn = i;
    }
  }

  /// A process that was just found not to end is a violation, with the first of its steps.
  Place Checked(std::uint32_t i, Place place) {
    if (!trees_.is_endless()) return place;
    for (const auto& [at, heard] : trees_.Onward(place, kLongestSchedule)) {
      path_.push_back({{i, Action::kStep}, at, {.heard = heard}});
    }
    throw Violation{scenario_.processes[i].name + " does not end, even alone"};
  }

  void End() {
    // Nothing else makes a difference at the end, so that is checked but once.
    Key end = memory_.hash();
    for (const Slot& slot : now_.slots) {
      end.Add(NextOf(slot).answer, slot.killed ? slot.answer : ~std::uint64_t{0});
    }
    if (!checked_.insert(end).second) return;
    std::vector<Outcome> outcomes;
    for (const Slot& slot : now_.slots) {
      Outcome& outcome = outcomes.emplace_back();
      const Answer& answer = trees_.answer(NextOf(slot).answer);
      (slot.killed ? outcome.recovered : outcome.answer) = answer;
      if (slot.killed && slot.answer != 0) outcome.answer = trees_.answer(slot.answer);
    }
    const std::string wrong = Check(scenario_, words_, memory_.values(), outcomes);
    if (!wrong.empty()) throw Violation{wrong};
  }

  /// Takes the state back to what it was.
  class Undo {
   public:
    explicit Undo(Search& search)
        : search_(search), processes_(search.now_), mark_(search.memory_.mark()) {}
    ~Undo() {
      search_.now_ = std::move(processes_);
      search_.memory_.Rewind(mark_);
    }
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;

   private:
    Search& search_;
    Processes processes_;
    std::size_t mark_;
  };

  const Scenario& scenario_;
  Words words_;
  Trees trees_;
  std::vector<std::pair<Place, Place>> roots_;  ///< of each process and its recovery
  std::unordered_set<Key, KeyHash> visited_;
  std::unordered_set<Key, KeyHash> checked_;  ///< ends
  Exploration result_;
  std::size_t steps_ = 0;

  // The state.
  SharedMemory memory_;
  Processes now_;
  std::vector<Step> path_;
};

}  // namespace
}  // namespace explorer

Exploration Explore(const Scenario& scenario) {
  return explorer::Search(scenario).Run();
}

}  // namespace rollgate::testing
