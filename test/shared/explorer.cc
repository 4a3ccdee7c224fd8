// A process is a tree: what it does next is a function of what it has heard so far. The tree grows
// by running the code from its start, fed with what it is to hear; so a state is the shared words
// and a place in each tree, and nothing is ever suspended.
#include "shared/explorer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace rollgate::testing {
namespace {

using Word = Explored::Word;
using Place = std::uint32_t;  ///< a node of a tree
using Index = std::uint32_t;  ///< a word that has been touched

constexpr Place kNowhere = ~Place{0};
constexpr std::size_t kLongestSchedule = 300;  ///< that is printed
constexpr std::size_t kVainSteps = 10000;      ///< of a pass that will have to be done again

enum class Kind : std::uint8_t { kLoad, kStore, kCompareExchange, kFinished, kFailed };

struct Operation {
  Kind kind;
  Index word = 0;
  std::uint64_t value = 0;     ///< that is stored
  std::uint64_t expected = 0;  ///< before
  std::uint32_t answer = 0;    ///< at the end, or what is wrong
};

/// What a process does, having come here.
struct Node {
  Operation operation;
  Place parent = kNowhere;
  std::uint64_t heard = 0;  ///< by the parent
  std::vector<std::pair<std::uint64_t, Place>> next;
};

struct Write {
  Index word;
  std::uint64_t value;
};

/// A process within a state.
struct Slot {
  Place place;
  bool killed = false;
  std::uint32_t answer = 0;  ///< of the process that was killed; 0: none
  std::vector<Write> buffer = {};
};

enum class Action : std::uint8_t { kStep, kFlush, kKill };

struct Transition {
  std::uint32_t slot;
  Action action;
};

struct Step {
  Transition transition;
  Place place;
  std::uint64_t heard;
  Write write;
};

struct Key {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const { return key.low; }
};

std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

Key KeyOf(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t low = Mix(Mix(a) + b);
  return {low, Mix(Mix(b ^ 0x5851f42d4c957f2d) * 3 + a)};
}

/// Thrown through code that does not end.
struct Endless {};

/// Thrown when so much is new that a pass had better begin again.
struct Again {};

/// Thrown when an execution is not as it should be.
struct Violation {
  std::string what;
};

/// Where Explored leads to while a process or a check runs.
class Memory {
 public:
  virtual std::uint64_t Load(const Word& word) = 0;
  virtual void Store(Word& word, std::uint64_t value) = 0;
  virtual bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) = 0;

 protected:
  ~Memory() = default;
};

thread_local Memory* memory = nullptr;

class WithMemory {
 public:
  explicit WithMemory(Memory* next) : previous_(std::exchange(memory, next)) {}
  ~WithMemory() { memory = previous_; }
  WithMemory(const WithMemory&) = delete;
  WithMemory& operator=(const WithMemory&) = delete;

 private:
  Memory* previous_;
};

/// The words that anybody has touched, numbered, and what they held at first.
class Words {
 public:
  Index IndexOf(const Word& word) {
    const auto [found, added] = indices_.try_emplace(&word, static_cast<Index>(all_.size()));
    if (added) {
      all_.push_back(const_cast<Word*>(&word));
      initial_.push_back(word.load(std::memory_order_relaxed));
    }
    return found->second;
  }
  std::size_t size() const { return all_.size(); }
  Word& at(Index index) const { return *all_[index]; }
  std::uint64_t initial(Index index) const { return initial_[index]; }

 private:
  std::unordered_map<const Word*, Index> indices_;
  std::vector<Word*> all_;
  std::vector<std::uint64_t> initial_;
};

class Trees {
 public:
  Trees(Words& words, std::size_t endless) : words_(words), endless_(endless) {}

  const Node& at(Place place) const { return nodes_[place]; }
  const Answer& answer(std::uint32_t index) const { return answers_[index]; }
  const std::string& failure(std::uint32_t index) const { return failures_[index]; }
  std::size_t runs() const { return runs_; }
  bool is_endless() const { return endless_found_; }

  /// Where a process is that has heard this at `place`; `values` is what memory holds for it.
  Place After(const Code& code, Place place, std::uint64_t heard,
              const std::vector<std::uint64_t>& values) {
    for (const auto& [value, next] : nodes_[place].next) {
      if (value == heard) return next;
    }
    return Grow(code, place, heard, values);
  }

  /// Runs the code to its end, alone: fed with all that leads to `place` and what is heard there,
  /// then with what memory holds. Returns the first new node.
  Place Grow(const Code& code, Place place, std::uint64_t heard,
             const std::vector<std::uint64_t>& values) {
    ++runs_;
    Growth growth(*this, place, heard, values);
    const WithMemory use(&growth);
    try {
      growth.End(Kind::kFinished, Intern(code()));
    } catch (const Endless&) {
      growth.End(Kind::kFailed, Failure("does not end"));
      endless_found_ = true;
    } catch (const std::exception& error) {
      growth.End(Kind::kFailed, Failure(std::string("fails: ") + error.what()));
    }
    return growth.first();
  }

 private:
  class Growth final : public Memory {
   public:
    Growth(Trees& trees, Place place, std::uint64_t heard, const std::vector<std::uint64_t>& values)
        : trees_(trees), values_(values), at_(place), heard_(heard) {
      while (place != kNowhere) {
        fed_.push_back({place, heard});
        heard = trees.nodes_[place].heard;
        place = trees.nodes_[place].parent;
      }
    }

    std::uint64_t Load(const Word& word) override {
      if (!fed_.empty()) return Feed(Kind::kLoad, word);
      const Index index = trees_.words_.IndexOf(word);
      Add({.kind = Kind::kLoad, .word = index});
      return heard_ = ValueOf(index);
    }
    void Store(Word& word, std::uint64_t value) override {
      if (!fed_.empty()) {
        Feed(Kind::kStore, word);
        return;
      }
      const Index index = trees_.words_.IndexOf(word);
      Add({.kind = Kind::kStore, .word = index, .value = value});
      heard_ = 0;
      ValueOf(index) = value;
    }
    bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) override {
      if (!fed_.empty()) return Feed(Kind::kCompareExchange, word) != 0;
      const Index index = trees_.words_.IndexOf(word);
      Add({.kind = Kind::kCompareExchange, .word = index, .value = desired, .expected = expected});
      heard_ = ValueOf(index) == expected;
      if (heard_ != 0) ValueOf(index) = desired;
      return heard_ != 0;
    }

    void End(Kind kind, std::uint32_t answer) {
      ended_ = true;
      Add({.kind = kind, .answer = answer});
    }
    Place first() const { return first_; }

   private:
    std::uint64_t& ValueOf(Index index) {
      while (values_.size() <= index) values_.push_back(trees_.words_.initial(values_.size()));
      return values_[index];
    }

    std::uint64_t Feed(Kind kind, const Word& word) {
      const auto [place, heard] = fed_.back();
      const Operation& node = trees_.nodes_[place].operation;
      if (node.kind != kind || &trees_.words_.at(node.word) != &word) {
        std::fputs("explored code does not depend on shared memory alone\n", stderr);
        std::abort();
      }
      fed_.pop_back();
      return heard;
    }

    void Add(const Operation& operation) {
      if (!ended_ && added_++ >= trees_.endless_) throw Endless{};
      const Place place = static_cast<Place>(trees_.nodes_.size());
      trees_.nodes_.push_back({operation, at_, heard_, {}});
      if (at_ != kNowhere) trees_.nodes_[at_].next.emplace_back(heard_, place);
      at_ = place;
      if (first_ == kNowhere) first_ = place;
    }

    Trees& trees_;
    std::vector<std::uint64_t> values_;
    std::vector<std::pair<Place, std::uint64_t>> fed_;  ///< what to tell, the first last
    Place at_;
    std::uint64_t heard_;
    Place first_ = kNowhere;
    std::size_t added_ = 0;
    bool ended_ = false;
  };

  std::uint32_t Intern(Answer answer) {
    const auto [found, added] =
        interned_.try_emplace(answer, static_cast<std::uint32_t>(answers_.size()));
    if (added) answers_.push_back(std::move(answer));
    return found->second;
  }
  std::uint32_t Failure(std::string what) {
    failures_.push_back(std::move(what));
    return static_cast<std::uint32_t>(failures_.size() - 1);
  }

  Words& words_;
  std::size_t endless_;
  std::vector<Node> nodes_;
  std::vector<Answer> answers_{{}};  ///< the first stands for none
  std::map<Answer, std::uint32_t> interned_;
  std::vector<std::string> failures_;
  std::size_t runs_ = 0;
  bool endless_found_ = false;
};

/// Ordinary memory, of which is remembered what was touched.
class CheckedMemory final : public Memory {
 public:
  explicit CheckedMemory(Words& words) : words_(words) {}
  std::uint64_t Load(const Word& word) override { return word.load(); }
  void Store(Word& word, std::uint64_t value) override {
    words_.IndexOf(word);
    word.store(value);
  }
  bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) override {
    words_.IndexOf(word);
    return word.compare_exchange_strong(expected, desired);
  }

 private:
  Words& words_;
};

class Search {
 public:
  explicit Search(const Scenario& scenario)
      : scenario_(scenario), trees_(words_, scenario.endless) {}

  Exploration Run() {
    try {
      // Which words are shared is found out on the way. An order that matters only if one more
      // is may have been left out before, so all is done again until nothing new is found.
      do {
        widened_ = false;
        ++result_.passes;
        try {
          Pass();
        } catch (const Again&) {
        }
      } while (widened_);
    } catch (const Violation& violation) {
      result_.violation = violation.what + "\n" + Schedule();
    }
    result_.runs = trees_.runs();
    return std::move(result_);
  }

 private:
  struct Users {
    std::uint32_t readers = 0;  ///< a bit for each process
    std::uint32_t writers = 0;
  };

  void Pass() {
    visited_.clear();
    path_.clear();
    result_.states = result_.steps = result_.longest = 0;
    kills_ = 0;
    hash_ = {};
    slots_.clear();
    for (const Process& process : scenario_.processes) {
      if (roots_.size() == slots_.size()) {
        const Place root = trees_.Grow(process.run, kNowhere, 0, {});
        roots_.push_back({Checked(static_cast<std::uint32_t>(roots_.size()), root), kNowhere});
      }
      slots_.push_back({.place = roots_[slots_.size()].first});
    }
    Visit();
  }

  const Operation& NextOf(const Slot& slot) const { return trees_.at(slot.place).operation; }

  std::uint64_t& ValueOf(Index index) {
    while (values_.size() <= index) {
      values_.push_back(words_.initial(static_cast<Index>(values_.size())));
      users_.emplace_back();
    }
    return values_[index];
  }

  void SetValue(Index index, std::uint64_t value) {
    std::uint64_t& held = ValueOf(index);
    for (const std::uint64_t each : {held, value}) {
      if (each == words_.initial(index)) continue;
      const Key key = KeyOf(index, each);
      hash_.low ^= key.low;
      hash_.high ^= key.high;
    }
    held = value;
  }

  /// What a process would read.
  std::uint64_t Seen(const Slot& slot, Index index) {
    for (auto write = slot.buffer.rbegin(); write != slot.buffer.rend(); ++write) {
      if (write->word == index) return write->value;
    }
    return ValueOf(index);
  }

  Key StateKey() const {
    Key key = hash_;
    const auto add = [&key](std::uint64_t a, std::uint64_t b) {
      key = KeyOf(key.low ^ a * 0x9e3779b97f4a7c15, key.high + b);
    };
    for (const Slot& slot : slots_) {
      add(slot.place, std::uint64_t{slot.answer} << 1 | slot.killed);
      add(slot.buffer.size(), 0);
      for (const Write& write : slot.buffer) add(write.word, write.value);
    }
    add(static_cast<std::uint64_t>(kills_), 0);
    return key;
  }

  /// Whether no other process minds when this one reads or writes the word.
  bool IsOwn(std::uint32_t slot, Index word, bool writes) {
    if (!scenario_.reduce) return false;
    ValueOf(word);
    const Users& users = users_[word];
    const std::uint32_t others = users.writers | (writes ? users.readers : 0);
    return (others & ~(1u << slot)) == 0;
  }

  /// What can happen next: all of it, or a part that does if the rest may as well come later.
  void Choose(std::vector<Transition>& chosen) {
    chosen.clear();
    for (std::uint32_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      const Operation& next = NextOf(slot);
      const std::size_t before = chosen.size();
      bool own = false;
      if (!slot.buffer.empty()) {
        chosen.push_back({i, Action::kFlush});
        if (IsOwn(i, slot.buffer.front().word, true)) {
          chosen = {{i, Action::kFlush}};
          return;
        }
      }
      // A kill before a load is the same as one right after it.
      bool ends = !scenario_.reduce;
      const bool drains = slot.place == roots_[i].second && !slot.buffer.empty();
      switch (next.kind) {
        case Kind::kLoad:
          if (drains) break;
          chosen.push_back({i, Action::kStep});
          own = IsOwn(i, next.word, false);
          break;
        case Kind::kStore:
          if (drains) break;
          chosen.push_back({i, Action::kStep});
          own = scenario_.store_buffers ? scenario_.reduce : IsOwn(i, next.word, true);
          ends = true;
          break;
        case Kind::kCompareExchange:
          ends = true;
          if (!slot.buffer.empty()) break;
          chosen.push_back({i, Action::kStep});
          own = IsOwn(i, next.word, ValueOf(next.word) == next.expected);
          break;
        case Kind::kFinished:
          ends = !slot.killed;
          break;
        case Kind::kFailed:
          throw Violation{scenario_.processes[i].name + " " + trees_.failure(next.answer)};
      }
      if (ends && CanKill(i)) chosen.push_back({i, Action::kKill});
      if (own) {
        std::erase_if(chosen, [i](const Transition& each) {
          return each.slot != i || each.action == Action::kFlush;
        });
        return;
      }
      // Who ran last goes first: fewer switches in what is found.
      if (i == last_) std::rotate(chosen.begin(), chosen.begin() + before, chosen.end());
    }
  }

  bool CanKill(std::uint32_t i) const {
    return kills_ < scenario_.kills && scenario_.processes[i].recover;
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
    if (++result_.steps > kVainSteps && widened_) throw Again{};
    const std::uint32_t i = last_ = transition.slot;
    Slot& slot = slots_[i];
    path_.push_back({transition, slot.place, 0, {}});
    if (path_.size() > scenario_.endless) throw Violation{"there is no end to it"};
    switch (transition.action) {
      case Action::kKill:
        ++kills_;
        if (!slot.killed && NextOf(slot).kind == Kind::kFinished) slot.answer = NextOf(slot).answer;
        slot.killed = true;
        if (roots_[i].second == kNowhere) {
          const Code& recover = scenario_.processes[i].recover;
          roots_[i].second = Checked(i, trees_.Grow(recover, kNowhere, 0, ValuesFor(slot)));
        }
        slot.place = roots_[i].second;
        break;
      case Action::kFlush:
        path_.back().write = slot.buffer.front();
        slot.buffer.erase(slot.buffer.begin());
        Apply(i, path_.back().write);
        break;
      case Action::kStep:
        Perform(i);
        break;
    }
  }

  void Perform(std::uint32_t i) {
    Slot& slot = slots_[i];
    const Operation next = NextOf(slot);
    std::uint64_t heard = 0;
    switch (next.kind) {
      case Kind::kLoad:
        heard = Seen(slot, next.word);
        Widen(users_[next.word].readers, i);
        break;
      case Kind::kStore:
        if (scenario_.store_buffers) {
          ValueOf(next.word);
          slot.buffer.push_back({next.word, next.value});
        } else {
          Apply(i, {next.word, next.value});
        }
        break;
      case Kind::kCompareExchange:
        heard = ValueOf(next.word) == next.expected;
        Widen(users_[next.word].readers, i);
        if (heard != 0) Apply(i, {next.word, next.value});
        break;
      default:
        std::abort();
    }
    const Process& process = scenario_.processes[i];
    const Place place = trees_.After(slot.killed ? process.recover : process.run, slot.place, heard,
                                     slot.buffer.empty() ? values_ : ValuesFor(slot));
    path_.back().heard = heard;
    slot.place = Checked(i, place);
  }

  /// A process that was just found not to end is a violation, with the first of its steps.
  Place Checked(std::uint32_t i, Place place) {
    if (!trees_.is_endless()) return place;
    for (Place at = place; path_.size() < kLongestSchedule && !trees_.at(at).next.empty();) {
      const auto [heard, next] = trees_.at(at).next.back();
      path_.push_back({{i, Action::kStep}, at, heard, {}});
      at = next;
    }
    throw Violation{scenario_.processes[i].name + " does not end, even alone"};
  }

  std::vector<std::uint64_t> ValuesFor(const Slot& slot) const {
    std::vector<std::uint64_t> values = values_;
    for (const Write& write : slot.buffer) values[write.word] = write.value;
    return values;
  }

  void Apply(std::uint32_t i, const Write& write) {
    undone_.push_back({write.word, ValueOf(write.word)});
    SetValue(write.word, write.value);
    Widen(users_[write.word].writers, i);
  }

  void Widen(std::uint32_t& users, std::uint32_t slot) {
    if ((users & 1u << slot) != 0) return;
    users |= 1u << slot;
    widened_ = true;
  }

  void End() {
    result_.longest = std::max(result_.longest, path_.size());
    // Nothing else matters at the end, so that is looked at but once.
    Key end = hash_;
    for (const Slot& slot : slots_) {
      end = KeyOf(end.low ^ NextOf(slot).answer, end.high + slot.killed * slot.answer);
      end = KeyOf(end.low + slot.killed, end.high);
    }
    if (!checked_.insert(end).second) return;
    ++result_.ends;
    std::vector<Outcome> outcomes;
    for (const Slot& slot : slots_) {
      Outcome& outcome = outcomes.emplace_back();
      const Answer& answer = trees_.answer(NextOf(slot).answer);
      (slot.killed ? outcome.recovered : outcome.answer) = answer;
      if (slot.killed && slot.answer != 0) outcome.answer = trees_.answer(slot.answer);
    }
    const std::size_t known = values_.size();
    for (Index i = 0; i < known; ++i) words_.at(i).store(values_[i]);
    std::string wrong;
    {
      CheckedMemory checked(words_);
      const WithMemory use(&checked);
      try {
        wrong = scenario_.check(outcomes);
      } catch (const std::exception& error) {
        wrong = std::string("the check fails: ") + error.what();
      }
    }
    for (Index i = 0; i < words_.size(); ++i) words_.at(i).store(words_.initial(i));
    if (!wrong.empty()) throw Violation{wrong};
  }

  std::string NameOf(Index index) const {
    return scenario_.name_of ? scenario_.name_of(&words_.at(index)) : std::to_string(index);
  }

  static std::string Hex(std::uint64_t value) {
    char text[20];
    std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(value));
    return text;
  }

  std::string Schedule() const {
    std::string text;
    bool killed[32] = {};
    for (std::size_t n = 0; n < std::min(path_.size(), kLongestSchedule); ++n) {
      const Step& step = path_[n];
      const std::uint32_t i = step.transition.slot;
      text += "  " + scenario_.processes[i].name + (killed[i] ? "'  " : "   ");
      const Operation& node = trees_.at(step.place).operation;
      switch (step.transition.action) {
        case Action::kKill:
          killed[i] = true;
          text += "is killed";
          break;
        case Action::kFlush:
          text.append("(").append(NameOf(step.write.word)).append(" = ");
          text.append(Hex(step.write.value)).append(" is seen)");
          break;
        case Action::kStep:
          if (node.kind == Kind::kLoad) {
            text += NameOf(node.word) + " is " + Hex(step.heard);
          } else if (node.kind == Kind::kStore) {
            text += NameOf(node.word) + " = " + Hex(node.value);
          } else {
            text += NameOf(node.word) + ": " + Hex(node.expected) + " -> " + Hex(node.value) +
                    (step.heard != 0 ? "" : ", refused");
          }
      }
      text += "\n";
    }
    return text;
  }

  /// Takes the state back to what it was.
  class Undo {
   public:
    explicit Undo(Search& search)
        : search_(search),
          slots_(search.slots_),
          kills_(search.kills_),
          last_(search.last_),
          undone_(search.undone_.size()) {}
    ~Undo() {
      search_.slots_ = std::move(slots_);
      search_.kills_ = kills_;
      search_.last_ = last_;
      while (search_.undone_.size() > undone_) {
        search_.SetValue(search_.undone_.back().word, search_.undone_.back().value);
        search_.undone_.pop_back();
      }
    }
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;

   private:
    Search& search_;
    std::vector<Slot> slots_;
    int kills_;
    std::uint32_t last_;
    std::size_t undone_;
  };

  const Scenario& scenario_;
  Words words_;
  Trees trees_;
  std::vector<std::pair<Place, Place>> roots_;  ///< of each process and its recovery
  std::vector<Users> users_;
  bool widened_ = false;
  std::unordered_set<Key, KeyHash> visited_;
  std::unordered_set<Key, KeyHash> checked_;  ///< ends
  Exploration result_;

  // The state.
  std::vector<Slot> slots_;
  std::vector<std::uint64_t> values_;
  Key hash_;  ///< of the words that are not as at first
  int kills_ = 0;
  std::uint32_t last_ = 0;
  std::vector<Step> path_;
  std::vector<Write> undone_;  ///< what the words held before each write
};

}  // namespace

std::uint64_t Explored::Load(const Word& word) {
  return memory != nullptr ? memory->Load(word) : word.load();
}
void Explored::Store(Word& word, std::uint64_t value) {
  memory != nullptr ? memory->Store(word, value) : word.store(value);
}
bool Explored::CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
  return memory != nullptr ? memory->CompareExchange(word, expected, desired)
                           : word.compare_exchange_strong(expected, desired);
}

std::string Exploration::Summary() const {
  return std::to_string(states) + " states, " + std::to_string(steps) + " steps, " +
         std::to_string(ends) + " ends, longest " + std::to_string(longest) + ", " +
         std::to_string(passes) + " passes, " + std::to_string(runs) + " runs";
}

Exploration Explore(const Scenario& scenario) {
  return Search(scenario).Run();
}

}  // namespace rollgate::testing
