// Memory under sequential consistency and with store buffers.
#include "shared/explorer_memory.h"

#include <cstdlib>

#include "shared/explorer_weak_memory.h"

namespace rollgate::testing::explorer {
namespace {

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

/// Stores wait in a queue of their process. A swap waits until that is empty.
class StoreBuffers final : public SharedMemory {
 public:
  StoreBuffers(Words& words, std::size_t processes) : SharedMemory(words), buffers_(processes) {}

  std::vector<Way> WaysOf(std::uint32_t process, const Operation& operation) override {
    if (operation.kind == Kind::kCompareExchange && HasBuffered(process)) return {};
    return SharedMemory::WaysOf(process, operation);
  }

  Effect Perform(std::uint32_t process, const Operation& operation, Way way) override {
    if (operation.kind == Kind::kStore) {
      Know(operation.word);
      buffers_[process].push_back({operation.word, operation.value});
      Log({.what = Change::kBuffered, .process = process});
      return {};
    }
    const Effect effect = SharedMemory::Perform(process, operation, way);
    if (operation.kind == Kind::kLoad) {
      for (auto write = buffers_[process].rbegin(); write != buffers_[process].rend(); ++write) {
        if (write->word == operation.word) return {.heard = write->value};
      }
    }
    return effect;
  }

  bool IsOwn(std::uint32_t process, const Operation& operation) override {
    return operation.kind == Kind::kStore || SharedMemory::IsOwn(process, operation);
  }

  bool HasBuffered(std::uint32_t process) const override { return !buffers_[process].empty(); }
  bool IsFlushOwn(std::uint32_t process) override {
    const Index word = buffers_[process].front().word;
    return !HasOtherReaders(process, word) && !HasOtherWriters(process, word);
  }
  Write Flush(std::uint32_t process) override {
    const Write write = buffers_[process].front();
    buffers_[process].erase(buffers_[process].begin());
    Log({.what = Change::kFlushed, .process = process, .write = write});
    Apply(process, write);
    return write;
  }

  std::vector<std::uint64_t> ValuesFor(std::uint32_t process) const override {
    std::vector<std::uint64_t> seen = values();
    for (const Write& write : buffers_[process]) seen[write.word] = write.value;
    return seen;
  }

  void AddTo(Key& key, std::uint32_t active) const override {
    SharedMemory::AddTo(key, active);
    for (const std::vector<Write>& buffer : buffers_) {
      key.Add(buffer.size(), 0);
      for (const Write& write : buffer) key.Add(write.word, write.value);
    }
  }

 private:
  void Revert(Change& change) override {
    std::vector<Write>& buffer = buffers_[change.process];
    if (change.what == Change::kBuffered) {
      buffer.pop_back();
    } else if (change.what == Change::kFlushed) {
      buffer.insert(buffer.begin(), change.write);
    } else {
      SharedMemory::Revert(change);
    }
  }

  std::vector<std::vector<Write>> buffers_;
};

}  // namespace

void Key::Add(std::uint64_t a, std::uint64_t b) {
  *this = KeyOf(low ^ a * 0x9e3779b97f4a7c15, high + b);
}

std::unique_ptr<SharedMemory> SharedMemory::Make(MemoryModel model, Words& words,
                                                 std::size_t processes) {
  switch (model) {
    case MemoryModel::kSequential:
      return std::make_unique<SharedMemory>(words);
    case MemoryModel::kStoreBuffers:
      return std::make_unique<StoreBuffers>(words, processes);
    case MemoryModel::kWeak:
      return std::make_unique<WeakMemory>(words, processes);
  }
  std::abort();
}

std::vector<Way> SharedMemory::WaysOf(std::uint32_t, const Operation&) {
  return {0};
}

Effect SharedMemory::Perform(std::uint32_t process, const Operation& operation, Way) {
  const Index word = operation.word;
  Know(word);
  switch (operation.kind) {
    case Kind::kLoad:
      NoteReader(process, word);
      return {.heard = values_[word]};
    case Kind::kStore:
      Apply(process, {word, operation.value});
      return {};
    case Kind::kCompareExchange: {
      NoteReader(process, word);
      const bool succeeds = values_[word] == operation.expected;
      if (succeeds) Apply(process, {word, operation.value});
      return {.heard = succeeds};
    }
    default:
      std::abort();
  }
}

bool SharedMemory::IsOwn(std::uint32_t process, const Operation& operation) {
  const Index word = operation.word;
  Know(word);
  const bool writes = operation.kind == Kind::kStore || (operation.kind == Kind::kCompareExchange &&
                                                         values_[word] == operation.expected);
  return !HasOtherWriters(process, word) && !(writes && HasOtherReaders(process, word));
}

void SharedMemory::AddTo(Key& key, std::uint32_t) const {
  key.Add(hash_.low, hash_.high);
}

void SharedMemory::Know(Index word) {
  while (values_.size() <= word) {
    values_.push_back(words_.initial(static_cast<Index>(values_.size())));
    users_.emplace_back();
  }
}

void SharedMemory::Apply(std::uint32_t process, const Write& write) {
  Know(write.word);
  Log({.what = Change::kValue, .write = {write.word, values_[write.word]}});
  SetValue(write);
  NoteWriter(process, write.word);
}

void SharedMemory::SetValue(const Write& write) {
  std::uint64_t& held = values_[write.word];
  for (const std::uint64_t each : {held, write.value}) {
    if (each == words_.initial(write.word)) continue;
    const Key key = KeyOf(write.word, each);
    hash_.low ^= key.low;
    hash_.high ^= key.high;
  }
  held = write.value;
}

void SharedMemory::Widen(std::uint32_t& users, std::uint32_t process) {
  if ((users & 1u << process) != 0) return;
  users |= 1u << process;
  widened_ = true;
}

void SharedMemory::Revert(Change& change) {
  SetValue(change.write);
}

void SharedMemory::Rewind(std::size_t mark) {
  while (changes_.size() > mark) {
    Revert(changes_.back());
    changes_.pop_back();
  }
}

}  // namespace rollgate::testing::explorer
