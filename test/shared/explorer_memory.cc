// The steps of sequential and of weak memory, and which of their states are the same.
#include <algorithm>
#include <bit>
#include <cassert>
#include <limits>

#include "shared/explorer_parts.h"

namespace rollgate::testing::explorer {
namespace {

constexpr Way kSucceeds = ~Way{0};  ///< other ways are the number of the write that is read

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

}  // namespace

void Key::Add(std::uint64_t a, std::uint64_t b) {
  *this = KeyOf(low ^ a * 0x9e3779b97f4a7c15, high + b);
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
    Read(process, word, newest, operation.order);
    Write(process, operation);
    return {.heard = 1};
  }
  Read(process, word, way, swaps ? operation.failure : operation.order);
  return {.heard = swaps ? 0 : messages_[word][way].value, .is_stale = way != newest};
}

void SharedMemory::Read(std::uint32_t process, Index word, std::size_t write,
                        std::memory_order order) {
  Set(views_[process], word, write);
  if (IsAcquire(order)) Join(views_[process], messages_[word][write].view);
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
  View carried;
  if (IsRelease(operation.order)) {
    carried = own;
  } else {
    Set(carried, word, messages.size());
  }
  if (operation.kind == Kind::kCompareExchange) Join(carried, messages.back().view);
  messages.push_back({operation.value, std::make_shared<const View>(std::move(carried))});
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
    const Key key = KeyOf(word, each);
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

}  // namespace rollgate::testing::explorer
