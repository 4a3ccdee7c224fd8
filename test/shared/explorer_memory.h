// The words that explored processes share, as each memory model lets them see these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "shared/explorer_code.h"

namespace rollgate::testing::explorer {

/// A hash of a state that is long enough to stand for it.
struct Key {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  void Add(std::uint64_t a, std::uint64_t b);
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const { return key.low; }
};

struct Write {
  Index word;
  std::uint64_t value;
};

/// One of the courses that an access can take. What it means is up to the model.
using Way = std::uint32_t;

/// How an access went.
struct Effect {
  std::uint64_t heard = 0;  ///< the value loaded, or whether a swap succeeded
  bool is_stale = false;    ///< a newer value was there
};

/// Shared words under sequential consistency; other models derive from it. A process is a number
/// below 32.
class SharedMemory {
 public:
  static std::unique_ptr<SharedMemory> Make(MemoryModel model, Words& words, std::size_t processes);

  explicit SharedMemory(Words& words) : words_(words) {}
  virtual ~SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// The ways in which an access can go now; none if it has to wait.
  virtual std::vector<Way> WaysOf(std::uint32_t process, const Operation& operation);
  virtual Effect Perform(std::uint32_t process, const Operation& operation, Way way);
  /// Whether nothing that other processes do makes a difference to this access, or is made
  /// different by having this access before it.
  virtual bool IsOwn(std::uint32_t process, const Operation& operation);
  /// Whether what does not write can be put off until the process's next write: then no process
  /// has to be interrupted between the two.
  virtual bool ReadsCanWait() const { return false; }

  // Stores that nobody else sees yet.
  virtual bool HasBuffered(std::uint32_t) const { return false; }
  virtual bool IsFlushOwn(std::uint32_t) { return false; }
  virtual Write Flush(std::uint32_t) { return {}; }

  /// What a process would read if it went on alone.
  virtual std::vector<std::uint64_t> ValuesFor(std::uint32_t) const { return values_; }

  /// Adds all that can make a difference to the processes of the bits of `active`.
  virtual void AddTo(Key& key, std::uint32_t active) const;

  /// The newest value of each word that has been accessed.
  const std::vector<std::uint64_t>& values() const { return values_; }
  /// A hash of these.
  Key hash() const { return hash_; }

  /// Whether a process has read or written a word for the first time since the last call.
  bool is_widened() const { return widened_; }
  void ForgetWidened() { widened_ = false; }

  std::size_t mark() const { return changes_.size(); }
  /// Takes everything back that was changed since the mark.
  void Rewind(std::size_t mark);

 protected:
  struct Users {
    std::uint32_t readers = 0;  ///< a bit for each process
    std::uint32_t writers = 0;
  };
  /// What each process knows: of each word, the number of the newest write it has seen.
  using View = std::vector<std::uint16_t>;

  struct Change {
    enum What : std::uint8_t { kValue, kBuffered, kFlushed, kView, kMessage };
    What what;
    std::uint32_t process = 0;
    Write write = {};  ///< what the word held before
    View view = {};    ///< that the process had before
  };

  virtual void Revert(Change& change);

  void Log(Change change) { changes_.push_back(std::move(change)); }
  /// Makes room for a word that is accessed for the first time.
  virtual void Know(Index word);
  void Apply(std::uint32_t process, const Write& write);
  void NoteReader(std::uint32_t process, Index word) { Widen(users_[word].readers, process); }
  void NoteWriter(std::uint32_t process, Index word) { Widen(users_[word].writers, process); }
  bool HasOtherReaders(std::uint32_t process, Index word) const {
    return (users_[word].readers & ~(1u << process)) != 0;
  }
  bool HasOtherWriters(std::uint32_t process, Index word) const {
    return (users_[word].writers & ~(1u << process)) != 0;
  }
  const Users& users(Index word) const { return users_[word]; }

 private:
  void SetValue(const Write& write);
  void Widen(std::uint32_t& users, std::uint32_t process);

  Words& words_;
  std::vector<std::uint64_t> values_;
  std::vector<Users> users_;
  Key hash_;  ///< of the words that are not as at first
  std::vector<Change> changes_;
  bool widened_ = false;
};

}  // namespace rollgate::testing::explorer
