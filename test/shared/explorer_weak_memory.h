// Memory under MemoryModel::kWeak: all writes of a word, and what each process has seen of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "shared/explorer_memory.h"

namespace rollgate::testing::explorer {

/// A view says of each word which write is the oldest that may still be read.
///
/// - A store, or a swap that succeeds, is added after all writes of its word. A swap succeeds only
///   on the newest one, so nothing comes between what it reads and what it writes.
/// - A release write carries the writer's view; a relaxed one only itself. A swap's write also
///   carries what the write before it carried, which is a release sequence.
/// - A load returns any write from the process's view on, and moves the view there. An acquire
///   joins what the write carries to the view.
/// - A swap fails on any such write that is not what it expects.
class WeakMemory final : public SharedMemory {
 public:
  WeakMemory(Words& words, std::size_t processes) : SharedMemory(words), views_(processes) {}

  std::vector<Way> WaysOf(std::uint32_t process, const Operation& operation) override;
  Effect Perform(std::uint32_t process, const Operation& operation, Way way) override;

  /// A write is no hindrance to who wants to read an older one. So one to a word that no other
  /// process writes to can as well be first.
  bool IsOwn(std::uint32_t process, const Operation& operation) override {
    Know(operation.word);
    return !HasOtherWriters(process, operation.word);
  }
  /// What can be read now can be read after writes of others, too.
  bool ReadsCanWait() const override { return true; }

  void AddTo(Key& key, std::uint32_t active) const override;

 private:
  struct Message {
    std::uint64_t value;
    std::shared_ptr<const View> view;  ///< none: empty
  };

  void Know(Index word) override;
  void Revert(Change& change) override;

  static std::uint16_t At(const View& view, Index word) {
    return word < view.size() ? view[word] : 0;
  }
  static void Set(View& view, Index word, std::size_t write);
  static void Join(View& view, const std::shared_ptr<const View>& other);

  void Read(std::uint32_t process, Index word, std::size_t write, std::memory_order order);
  void Add(std::uint32_t process, const Operation& operation, bool continues);

  std::vector<std::vector<Message>> messages_;  ///< of each word, the initial value first
  std::vector<View> views_;                     ///< of each process
};

}  // namespace rollgate::testing::explorer
