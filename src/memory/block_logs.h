// Logs too large for the slot: a block from the heap that grows with use.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/policy.h"
#include "core/ring_log.h"
#include "memory/slot.h"

namespace rollgate::memory {

/// Reads and writes the logs of one store's slots: the payload is a pointer to the id's block, null
/// while the id has but its newest action; the slot's mark is LogHead::displaced. A block doubles
/// until it holds the policy's whole log.
template <class Stamp>
class BlockLogs {
 public:
  using Log = RingLog<Stamp>;

  /// Whether logs take more memory as they grow.
  static constexpr bool kGrows = true;

  explicit BlockLogs(const Policy& policy)
      : capacity_(policy.log_capacity()), exceeds_log_(policy.exceeds_log()) {
    assert(policy.retention() <= Log::kLongestRetention);
  }

  std::size_t payload_bytes() const { return sizeof(Block*); }

  /// Bytes outside of the slots.
  std::size_t extra_bytes() const { return extra_bytes_; }

  /// From now on logs grow up to this many actions; longer ones stay as long as they are.
  void SetCapacity(std::uint64_t capacity) {
    capacity_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(capacity, kLongestLog));
    exceeds_log_ = capacity > kLongestLog;
  }

  /// Begins the log of a new id; it holds one action.
  void Create(Slot& slot) const {
    slot.set_mark(false);
    SetBlock(slot, nullptr);
  }

  void Destroy(Slot& slot) {
    if (Block* block = BlockOf(slot)) {
      extra_bytes_ -= BytesFor(block->room);
      std::free(block);
    }
  }

  Log Load(Slot& slot, Micros newest) const {
    LogHead head;
    head.newest = newest;
    head.size = 1;
    head.displaced = slot.mark();
    Block* block = BlockOf(slot);
    if (block == nullptr) return Log(head, nullptr, 0, capacity_);
    head.size += block->count;
    head.head = block->head;
    return Log(head, block->stamps(), block->room, std::max(capacity_, head.size));
  }

  /// Loads the log with room for `more` actions, as far as the policy's capacity goes; throws
  /// std::bad_alloc where there is none, and leaves the log as it is.
  Log LoadWithRoom(Slot& slot, Micros newest, std::uint64_t more) {
    const Log log = Load(slot, newest);
    // What a full log would lose may still have to be counted.
    if (exceeds_log_ && more > log.capacity() - log.size()) throw std::bad_alloc();
    const std::uint64_t needed = std::min<std::uint64_t>(log.size() + more, log.capacity()) - 1;
    const Block* block = BlockOf(slot);
    if (needed <= (block == nullptr ? 0 : block->room)) return log;
    Grow(slot, log, needed);
    return Load(slot, newest);
  }

  /// Writes back all of a log but its newest action. Precondition: the log is not empty.
  void Save(Slot& slot, const Log& log) const {
    const LogHead& head = log.head();
    assert(head.size >= 1);
    if (slot.mark() != head.displaced) slot.set_mark(head.displaced);
    if (Block* block = BlockOf(slot)) {
      block->count = head.size - 1;
      block->head = head.head;
    }
  }

 private:
  struct Block {
    std::uint32_t room;  // stamps there is room for
    std::uint32_t head;
    std::uint32_t count;

    std::byte* stamps() { return reinterpret_cast<std::byte*>(this + 1); }
  };

  static constexpr std::uint64_t kLeastRoom = 5;

  static std::size_t BytesFor(std::size_t room) { return sizeof(Block) + room * sizeof(Stamp); }

  static Block* BlockOf(Slot& slot) {
    Block* block;
    std::memcpy(&block, slot.payload(), sizeof block);
    return block;
  }

  static void SetBlock(Slot& slot, Block* block) {
    std::memcpy(slot.payload(), &block, sizeof block);
  }

  void Grow(Slot& slot, const Log& log, std::uint64_t needed) {
    const std::uint64_t room = std::min<std::uint64_t>(
        std::max({needed, std::uint64_t{log.size()} * 2, kLeastRoom}), log.capacity() - 1);
    auto* block = static_cast<Block*>(std::malloc(BytesFor(room)));
    if (block == nullptr) throw std::bad_alloc();
    *block = {static_cast<std::uint32_t>(room), 0, log.size() - 1};
    for (std::uint32_t i = 0; i + 1 < log.size(); ++i) {
      const auto stamp = static_cast<Stamp>(log.Nth(log.size() - i));
      std::memcpy(block->stamps() + i * sizeof(Stamp), &stamp, sizeof stamp);
    }
    extra_bytes_ += BytesFor(room);
    Destroy(slot);
    SetBlock(slot, block);
  }

  std::uint32_t capacity_;
  bool exceeds_log_;
  std::size_t extra_bytes_ = 0;
};

}  // namespace rollgate::memory
