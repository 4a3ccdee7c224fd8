// Runs code that is explored, and records what it does.
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "shared/explorer_parts.h"

namespace rollgate::testing {
namespace explorer {
namespace {

thread_local Memory* memory = nullptr;

/// Thrown through code that does not end.
struct Endless {};

/// Redirects Explored for as long as it lives.
class WithMemory {
 public:
  explicit WithMemory(Memory* next) : previous_(std::exchange(memory, next)) {}
  ~WithMemory() { memory = previous_; }
  WithMemory(const WithMemory&) = delete;
  WithMemory& operator=(const WithMemory&) = delete;

 private:
  Memory* previous_;
};

/// Ordinary memory. Words that are written to are added to those that will be restored.
class CheckedMemory final : public Memory {
 public:
  explicit CheckedMemory(Words& words) : words_(words) {}
  std::uint64_t Load(const Word& word, std::memory_order) override { return word.load(); }
  void Store(Word& word, std::uint64_t value, std::memory_order) override {
    words_.IndexOf(word);
    word.store(value);
  }
  bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired, std::memory_order,
                       std::memory_order) override {
    words_.IndexOf(word);
    return word.compare_exchange_strong(expected, desired);
  }

 private:
  Words& words_;
};

}  // namespace

/// The memory of one run: feeds the code, then adds a node for each further access.
class Trees::Growth final : public Memory {
 public:
  Growth(Trees& trees, Place place, std::uint64_t heard, const std::vector<std::uint64_t>& values)
      : trees_(trees), values_(values), at_(place), heard_(heard) {
    while (place != kNowhere) {
      fed_.push_back({place, heard});
      heard = trees.nodes_[place].heard;
      place = trees.nodes_[place].parent;
    }
  }

  std::uint64_t Load(const Word& word, std::memory_order order) override {
    if (!fed_.empty()) return Feed(Kind::kLoad, word);
    const Index index = trees_.words_.IndexOf(word);
    Add({.kind = Kind::kLoad, .order = order, .word = index});
    return heard_ = ValueOf(index);
  }
  void Store(Word& word, std::uint64_t value, std::memory_order order) override {
    if (!fed_.empty()) {
      Feed(Kind::kStore, word);
      return;
    }
    const Index index = trees_.words_.IndexOf(word);
    Add({.kind = Kind::kStore, .order = order, .word = index, .value = value});
    heard_ = 0;
    ValueOf(index) = value;
  }
  bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired,
                       std::memory_order success, std::memory_order failure) override {
    if (!fed_.empty()) return Feed(Kind::kCompareExchange, word) != 0;
    const Index index = trees_.words_.IndexOf(word);
    Add({.kind = Kind::kCompareExchange,
         .order = success,
         .failure = failure,
         .word = index,
         .value = desired,
         .expected = expected});
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
    while (values_.size() <= index) {
      values_.push_back(trees_.words_.initial(static_cast<Index>(values_.size())));
    }
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
    const bool stores = operation.kind == Kind::kStore || operation.kind == Kind::kCompareExchange;
    if (stores && !IsRelease(operation.order)) ++trees_.relaxed_stores_;
    trees_.nodes_.push_back({operation, at_, heard_, {}});
    if (at_ != kNowhere) trees_.nodes_[at_].next.emplace_back(heard_, place);
    at_ = place;
    if (first_ == kNowhere) first_ = place;
  }

  Trees& trees_;
  std::vector<std::uint64_t> values_;
  std::vector<std::pair<Place, std::uint64_t>> fed_;  ///< what to feed, the first last
  Place at_;
  std::uint64_t heard_;
  Place first_ = kNowhere;
  std::size_t added_ = 0;
  bool ended_ = false;
};

Place Trees::Grow(const Code& code, Place place, std::uint64_t heard,
                  const std::vector<std::uint64_t>& values) {
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

std::vector<std::pair<Place, std::uint64_t>> Trees::Onward(Place place, std::size_t most) const {
  std::vector<std::pair<Place, std::uint64_t>> steps;
  while (steps.size() < most && !nodes_[place].next.empty()) {
    const auto [heard, next] = nodes_[place].next.back();
    steps.emplace_back(place, heard);
    place = next;
  }
  return steps;
}

std::uint32_t Trees::Intern(Answer answer) {
  const auto [found, added] =
      interned_.try_emplace(answer, static_cast<std::uint32_t>(answers_.size()));
  if (added) answers_.push_back(std::move(answer));
  return found->second;
}

std::uint32_t Trees::Failure(std::string what) {
  failures_.push_back(std::move(what));
  return static_cast<std::uint32_t>(failures_.size() - 1);
}

std::string Check(const Scenario& scenario, Words& words, const std::vector<std::uint64_t>& values,
                  const std::vector<Outcome>& outcomes) {
  for (Index i = 0; i < values.size(); ++i) words.at(i).store(values[i]);
  std::string wrong;
  {
    CheckedMemory checked(words);
    const WithMemory use(&checked);
    try {
      wrong = scenario.check(outcomes);
    } catch (const std::exception& error) {
      wrong = std::string("the check fails: ") + error.what();
    }
  }
  for (Index i = 0; i < words.size(); ++i) words.at(i).store(words.initial(i));
  return wrong;
}

}  // namespace explorer

using explorer::memory;

std::uint64_t Explored::Load(const Word& word, std::memory_order order) {
  return memory != nullptr ? memory->Load(word, order) : word.load();
}
void Explored::Store(Word& word, std::uint64_t value, std::memory_order order) {
  memory != nullptr ? memory->Store(word, value, order) : word.store(value);
}
bool Explored::CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired,
                               std::memory_order success, std::memory_order failure) {
  return memory != nullptr ? memory->CompareExchange(word, expected, desired, success, failure)
                           : word.compare_exchange_strong(expected, desired);
}

}  // namespace rollgate::testing
