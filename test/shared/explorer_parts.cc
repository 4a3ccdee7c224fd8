// Runs code that is explored and records what it does; the steps of sequential and of weak memory,
// and which of their states are the same.
#include "shared/explorer_parts.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>

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

constexpr Way kSucceeds = ~Way{0};  ///< other ways are the number of the write that is read

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

std::vector<Way> SharedMemory::WaysOf(std::uint32_t process, const Operation& operation) {
  if (!is_weak_ || operation.kind == Kind::kStore) return {0};
  Know(operation.word);
  const std::vector<Message>& messages = messages_[operation.word];
  const bool swaps = operation.kind == Kind::kCompareExchange;
  std::vector<Way> ways;
  if (swaps && messages.back().value == operation.expected) ways.push_back(kSucceeds);
  // The newest first: what is found is the easier to follow.
  const Way oldest = At(views_[process], operation.word);
  for (auto write = static_cast<Way>(messages.size()); write-- > oldest;) {
    if (!swaps || messages[write].value != operation.expected) ways.push_back(write);
  }
  return ways;
}

Effect SharedMemory::Perform(std::uint32_t process, const Operation& operation, Way way) {
  const Index word = operation.word;
  Know(word);
  if (is_weak_) changes_.push_back({Change::kView, process, 0, views_[process]});
  const bool swaps = operation.kind == Kind::kCompareExchange;
  if (operation.kind != Kind::kStore) Widen(users_[word].readers, process);
  if (operation.kind == Kind::kStore) {
    Write(process, operation);
    return {};
  }
  if (!is_weak_) {
    if (!swaps) return {.heard = values_[word]};
    const bool succeeds = values_[word] == operation.expected;
    if (succeeds) Write(process, operation);
    return {.heard = succeeds};
  }
  // A swap that fails may have succeeded before another's write, which IsOwn may have put first.
  if (swaps) Widen(users_[word].writers, process);
  const std::size_t newest = messages_[word].size() - 1;
  if (way == kSucceeds) {
    Read(process, word, newest);
    Write(process, operation);
    return {.heard = 1};
  }
  Read(process, word, way);
  return {.heard = swaps ? 0 : messages_[word][way].value, .is_stale = way != newest};
}

void SharedMemory::Read(std::uint32_t process, Index word, std::size_t write) {
  Set(views_[process], word, write);
  Join(views_[process], messages_[word][write].view);
}

void SharedMemory::Write(std::uint32_t process, const Operation& operation) {
  const Index word = operation.word;
  changes_.push_back({Change::kValue, word, values_[word]});
  SetValue(word, operation.value);
  Widen(users_[word].writers, process);
  if (!is_weak_) return;
  std::vector<Message>& messages = messages_[word];
  View& own = views_[process];
  Set(own, word, messages.size());
  messages.push_back({operation.value, std::make_shared<const View>(own)});
  changes_.push_back({Change::kMessage, word});
}

/// In weak memory a write is no hindrance to a process that wants to read an older one. So one to a
/// word that no other process writes to can as well be first.
bool SharedMemory::IsOwn(std::uint32_t process, const Operation& operation) {
  const Index word = operation.word;
  Know(word);
  if (HasOtherWriters(process, word)) return false;
  const bool writes = operation.kind == Kind::kStore || (operation.kind == Kind::kCompareExchange &&
                                                         values_[word] == operation.expected);
  return is_weak_ || !(writes && HasOtherReaders(process, word));
}

/// Two states are the same if they differ only in writes that no active process can read any more,
/// and in views of these.
void SharedMemory::AddTo(Key& key, std::uint32_t active) const {
  key.Add(hash_.low, hash_.high);
  if (!is_weak_) return;
  struct Live {
    Index word;
    std::uint16_t oldest;  ///< write that can be read
  };
  std::vector<Live> read;  // words that have been written to, and will be read
  std::vector<Live> live;  // those of which more than one write can be read
  for (Index word = 0; word < messages_.size(); ++word) {
    if (messages_[word].size() == 1) continue;
    const std::uint32_t readers = users_[word].readers & active;
    if (readers == 0) continue;
    std::uint16_t oldest = std::numeric_limits<std::uint16_t>::max();
    for (std::uint32_t left = readers; left != 0; left &= left - 1) {
      const auto process = static_cast<std::size_t>(std::countr_zero(left));
      oldest = std::min(oldest, At(views_[process], word));
    }
    read.push_back({word, oldest});
    if (oldest + 1u < messages_[word].size()) live.push_back({word, oldest});
  }
  const auto add_view = [&](const View& view) {
    for (std::size_t i = 0; i < live.size(); ++i) {
      const std::uint16_t at = At(view, live[i].word);
      if (at > live[i].oldest) key.Add(i, at - live[i].oldest);
    }
    key.Add(live.size(), 0);  // no view goes on after this
  };
  for (const Live& each : live) {
    key.Add(each.word, messages_[each.word].size() - each.oldest);
  }
  for (std::size_t process = 0; process < views_.size(); ++process) {
    key.Add(process, 0);
    if ((active >> process & 1) != 0) add_view(views_[process]);
  }
  for (const Live& each : read) {
    const std::vector<Message>& messages = messages_[each.word];
    for (std::size_t i = each.oldest; i < messages.size(); ++i) {
      key.Add(messages[i].value, each.word);
      if (messages[i].view) add_view(*messages[i].view);
    }
  }
}

void SharedMemory::Know(Index word) {
  while (values_.size() <= word) {
    values_.push_back(words_.initial(static_cast<Index>(values_.size())));
    users_.emplace_back();
    messages_.push_back({{values_.back(), nullptr}});
  }
}

void SharedMemory::SetValue(Index word, std::uint64_t value) {
  std::uint64_t& held = values_[word];
  for (const std::uint64_t each : {held, value}) {
    if (each == words_.initial(word)) continue;
    const Key key = Key::Of(word, each);
    hash_.low ^= key.low;
    hash_.high ^= key.high;
  }
  held = value;
}

void SharedMemory::Widen(std::uint32_t& users, std::uint32_t process) {
  if ((users & 1u << process) != 0) return;
  users |= 1u << process;
  widened_ = true;
}

void SharedMemory::Rewind(std::size_t mark) {
  for (; changes_.size() > mark; changes_.pop_back()) {
    Change& change = changes_.back();
    switch (change.what) {
      case Change::kValue:
        SetValue(change.at, change.value);
        break;
      case Change::kView:
        views_[change.at] = std::move(change.view);
        break;
      case Change::kMessage:
        messages_[change.at].pop_back();
    }
  }
}

void SharedMemory::Set(View& view, Index word, std::size_t write) {
  assert(write <= std::numeric_limits<std::uint16_t>::max());
  if (view.size() <= word) view.resize(word + std::size_t{1});
  view[word] = static_cast<std::uint16_t>(write);
}

void SharedMemory::Join(View& view, const std::shared_ptr<const View>& other) {
  if (!other) return;
  if (view.size() < other->size()) view.resize(other->size());
  for (std::size_t i = 0; i < other->size(); ++i) view[i] = std::max(view[i], (*other)[i]);
}

}  // namespace explorer

using explorer::memory;

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

}  // namespace rollgate::testing
