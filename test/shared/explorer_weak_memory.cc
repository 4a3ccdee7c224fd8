// The steps of weak memory, and which of its states are the same.
#include "shared/explorer_weak_memory.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>
#include <limits>

namespace rollgate::testing::explorer {
namespace {

constexpr Way kSucceeds = ~Way{0};  ///< other ways are the number of the write that is read

}  // namespace

std::vector<Way> WeakMemory::WaysOf(std::uint32_t process, const Operation& operation) {
  if (operation.kind == Kind::kStore) return {0};
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

Effect WeakMemory::Perform(std::uint32_t process, const Operation& operation, Way way) {
  const Index word = operation.word;
  Know(word);
  Log({.what = Change::kView, .process = process, .view = views_[process]});
  if (operation.kind == Kind::kStore) {
    Add(process, operation, false);
    return {};
  }
  NoteReader(process, word);
  // A swap that fails may have succeeded before another's write, which IsOwn may have put first.
  const bool swaps = operation.kind == Kind::kCompareExchange;
  if (swaps) NoteWriter(process, word);
  const std::size_t newest = messages_[word].size() - 1;
  if (way == kSucceeds) {
    Read(process, word, newest, operation.order);
    Add(process, operation, true);
    return {.heard = 1};
  }
  Read(process, word, way, swaps ? operation.failure : operation.order);
  return {.heard = swaps ? 0 : messages_[word][way].value, .is_stale = way != newest};
}

void WeakMemory::Read(std::uint32_t process, Index word, std::size_t write,
                      std::memory_order order) {
  Set(views_[process], word, write);
  if (IsAcquire(order)) Join(views_[process], messages_[word][write].view);
}

void WeakMemory::Add(std::uint32_t process, const Operation& operation, bool continues) {
  std::vector<Message>& messages = messages_[operation.word];
  View& own = views_[process];
  Set(own, operation.word, messages.size());
  View carried;
  if (IsRelease(operation.order)) {
    carried = own;
  } else {
    Set(carried, operation.word, messages.size());
  }
  if (continues) Join(carried, messages.back().view);
  messages.push_back({operation.value, std::make_shared<const View>(std::move(carried))});
  Log({.what = Change::kMessage, .write = {operation.word, 0}});
  Apply(process, {operation.word, operation.value});
}

/// Two states are the same if they differ only in writes that no active process can read any more,
/// and in views of these.
void WeakMemory::AddTo(Key& key, std::uint32_t active) const {
  SharedMemory::AddTo(key, active);
  struct Live {
    Index word;
    std::uint16_t oldest;  ///< write that can be read
  };
  std::vector<Live> read;  // words that have been written to, and will be read
  std::vector<Live> live;  // those of which more than one write can be read
  for (Index word = 0; word < messages_.size(); ++word) {
    if (messages_[word].size() == 1) continue;
    const std::uint32_t readers = users(word).readers & active;
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

void WeakMemory::Know(Index word) {
  SharedMemory::Know(word);
  while (messages_.size() < values().size()) {
    messages_.push_back({{values()[messages_.size()], nullptr}});
  }
}

void WeakMemory::Revert(Change& change) {
  if (change.what == Change::kView) {
    views_[change.process] = std::move(change.view);
  } else if (change.what == Change::kMessage) {
    messages_[change.write.word].pop_back();
  } else {
    SharedMemory::Revert(change);
  }
}

void WeakMemory::Set(View& view, Index word, std::size_t write) {
  assert(write <= std::numeric_limits<std::uint16_t>::max());
  if (view.size() <= word) view.resize(word + std::size_t{1});
  view[word] = static_cast<std::uint16_t>(write);
}

void WeakMemory::Join(View& view, const std::shared_ptr<const View>& other) {
  if (!other) return;
  if (view.size() < other->size()) view.resize(other->size());
  for (std::size_t i = 0; i < other->size(); ++i) view[i] = std::max(view[i], (*other)[i]);
}

}  // namespace rollgate::testing::explorer
