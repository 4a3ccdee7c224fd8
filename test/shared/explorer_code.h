// Code that is explored, as a tree: what a process does next is a function of what it has read so
// far.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
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
  std::memory_order order = std::memory_order_seq_cst;
  std::memory_order failure = std::memory_order_seq_cst;  ///< order of a swap that fails
  Index word = 0;
  std::uint64_t value = 0;     ///< to be stored
  std::uint64_t expected = 0;  ///< by a compare-and-swap
  std::uint32_t answer = 0;    ///< at the end, or what is wrong
};

inline bool IsAcquire(std::memory_order order) {
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}
inline bool IsRelease(std::memory_order order) {
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

/// Where accesses go while code, or a check, runs in this thread.
class Memory {
 public:
  virtual std::uint64_t Load(const Word& word, std::memory_order order) = 0;
  virtual void Store(Word& word, std::uint64_t value, std::memory_order order) = 0;
  virtual bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired,
                               std::memory_order success, std::memory_order failure) = 0;

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
  std::size_t runs() const { return runs_; }
  std::size_t relaxed_stores() const { return relaxed_stores_; }
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
  std::vector<Answer> answers_{{}};  ///< the first stands for none
  std::map<Answer, std::uint32_t> interned_;
  std::vector<std::string> failures_;
  std::size_t runs_ = 0;
  std::size_t relaxed_stores_ = 0;
  bool endless_found_ = false;
};

/// Runs the scenario's check on words that hold these values. They hold what they did at first
/// afterwards.
std::string Check(const Scenario& scenario, Words& words, const std::vector<std::uint64_t>& values,
                  const std::vector<Outcome>& outcomes);

}  // namespace rollgate::testing::explorer
