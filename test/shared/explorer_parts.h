// What the explorer is made of: the code of processes as trees, and the words that they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "shared/explorer.h"

namespace rollgate::testing::explorer {

using Word = Explored::Word;
using Place = std::uint32_t;  ///< a node of a tree
using Index = std::uint32_t;  ///< a word that has been accessed

constexpr Place kNowhere = ~Place{0};

enum class Kind : std::uint8_t { kLoad, kStore, kCompareExchange, kFinished, kFailed };

struct Operation {
  Kind kind;
  Index word = 0;
  std::uint64_t value = 0;     ///< to be stored
  std::uint64_t expected = 0;  ///< by a compare-and-swap
  std::uint32_t answer = 0;    ///< at the end, or what is wrong
};

/// Where accesses go while code, or a check, runs in this thread.
class Memory {
 public:
  virtual std::uint64_t Load(const Word& word) = 0;
  virtual void Store(Word& word, std::uint64_t value) = 0;
  virtual bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) = 0;

 protected:
  ~Memory() = default;
};

/// The words that any process has accessed, numbered, and what they held at first.
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

/// The trees of all processes. They grow as the code is run: it is fed with what it is to read and
/// never suspended.
class Trees {
 public:
  Trees(Words& words, std::size_t endless) : words_(words), endless_(endless) {}

  const Operation& at(Place place) const { return nodes_[place].operation; }
  const Answer& answer(std::uint32_t index) const { return answers_[index]; }
  const std::string& failure(std::uint32_t index) const { return failures_[index]; }
  bool is_endless() const { return endless_found_; }

  /// Where a process is that has read `heard` at `place`; `values` is what it would read later.
  Place After(const Code& code, Place place, std::uint64_t heard,
              const std::vector<std::uint64_t>& values) {
    for (const auto& [value, next] : nodes_[place].next) {
      if (value == heard) return next;
    }
    return Grow(code, place, heard, values);
  }

  /// Runs the code to its end, alone: fed with all that leads to `place` and what is read there,
  /// then with `values`. Returns the first new node.
  Place Grow(const Code& code, Place place, std::uint64_t heard,
             const std::vector<std::uint64_t>& values);

  /// The newest way on from a place, of so many steps at most: places and what is read there.
  std::vector<std::pair<Place, std::uint64_t>> Onward(Place place, std::size_t most) const;

 private:
  struct Node {
    Operation operation;
    Place parent = kNowhere;
    std::uint64_t heard = 0;  ///< by the parent
    std::vector<std::pair<std::uint64_t, Place>> next;
  };
  class Growth;

  std::uint32_t Intern(Answer answer);
  std::uint32_t Failure(std::string what);

  Words& words_;
  std::size_t endless_;
  std::vector<Node> nodes_;
  std::vector<Answer> answers_{{}};  ///< the first one: no answer
  std::map<Answer, std::uint32_t> interned_;
  std::vector<std::string> failures_;
  bool endless_found_ = false;
};

/// Runs the scenario's check on words that hold these values. They hold what they did at first
/// afterwards.
std::string Check(const Scenario& scenario, Words& words, const std::vector<std::uint64_t>& values,
                  const std::vector<Outcome>& outcomes);

inline std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

/// A hash of a state that is long enough to identify it.
struct Key {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  static Key Of(std::uint64_t a, std::uint64_t b) {
    return {Mix(Mix(a) + b), Mix(Mix(b ^ 0x5851f42d4c957f2d) * 3 + a)};
  }
  void Add(std::uint64_t a, std::uint64_t b) { *this = Of(low ^ a * 0x9e3779b97f4a7c15, high + b); }
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const { return key.low; }
};

/// One of the courses that an access can take. What it means is up to the memory.
using Way = std::uint32_t;

/// How an access went.
struct Effect {
  std::uint64_t heard = 0;  ///< the value loaded, or whether a swap succeeded
  bool is_stale = false;    ///< a newer value was there
};

/// The words that processes share, as the memory model lets them see these. A process is a number
/// below 32.
///
/// In weak memory each word keeps all its writes, and a view says of each word which write is the
/// oldest that may still be read.
/// - A store, or a swap that succeeds, is added after all writes of its word. A swap succeeds only
///   on the newest one, so nothing comes between what it reads and what it writes.
/// - A write carries the writer's view.
/// - A load returns any write from the process's view on, moves the view there, and joins what the
///   write carries to it.
/// - A swap fails on any such write that is not what it expects.
class SharedMemory {
 public:
  SharedMemory(Words& words, std::size_t processes, bool is_weak)
      : words_(words), is_weak_(is_weak), views_(processes) {}

  /// The ways in which an access can go now.
  std::vector<Way> WaysOf(std::uint32_t process, const Operation& operation);
  Effect Perform(std::uint32_t process, const Operation& operation, Way way);
  /// Whether nothing that other processes do makes a difference to this access, or is made
  /// different by having this access before it.
  bool IsOwn(std::uint32_t process, const Operation& operation);
  /// Whether what does not write can be put off until the process's next write: then no process
  /// has to be interrupted between the two. What can be read now can be read later, too.
  bool ReadsCanWait() const { return is_weak_; }

  /// Adds all that can make a difference to the processes of the bits of `active`.
  void AddTo(Key& key, std::uint32_t active) const;

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

 private:
  /// Bits of processes.
  struct Users {
    std::uint32_t readers = 0;
    std::uint32_t writers = 0;
  };
  /// Of each word, the number of a write.
  using View = std::vector<std::uint16_t>;

  struct Message {
    std::uint64_t value;
    std::shared_ptr<const View> view;  ///< none: empty
  };

  struct Change {
    enum What : std::uint8_t { kValue, kView, kMessage };
    What what;
    std::uint32_t at;         ///< the word, or the process of a view
    std::uint64_t value = 0;  ///< what the word held before
    View view = {};           ///< that the process had before
  };

  static std::uint16_t At(const View& view, Index word) {
    return word < view.size() ? view[word] : 0;
  }
  static void Set(View& view, Index word, std::size_t write);
  static void Join(View& view, const std::shared_ptr<const View>& other);

  /// Makes room for a word that is accessed for the first time.
  void Know(Index word);
  void SetValue(Index word, std::uint64_t value);
  void Read(std::uint32_t process, Index word, std::size_t write);
  void Write(std::uint32_t process, const Operation& operation);
  void Widen(std::uint32_t& users, std::uint32_t process);
  bool HasOtherReaders(std::uint32_t process, Index word) const {
    return (users_[word].readers & ~(1u << process)) != 0;
  }
  bool HasOtherWriters(std::uint32_t process, Index word) const {
    return (users_[word].writers & ~(1u << process)) != 0;
  }

  Words& words_;
  const bool is_weak_;
  std::vector<std::uint64_t> values_;
  std::vector<Users> users_;
  Key hash_;  ///< of the words that are not as at first
  std::vector<Change> changes_;
  bool widened_ = false;
  // Of weak memory alone.
  std::vector<std::vector<Message>> messages_;  ///< of each word, the initial value first
  std::vector<View> views_;                     ///< of each process
};

}  // namespace rollgate::testing::explorer
