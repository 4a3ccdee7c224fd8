// Runs a few processes on shared words in every order there is: a model checker for code that
// accesses memory through an Access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/alignment.h"

namespace rollgate::testing {

/// The Access of code that is explored. Outside of Explore it is ordinary memory.
struct Explored {
  using Word = rollgate::Word;

  static std::uint64_t Load(const Word& word);
  static void Store(Word& word, std::uint64_t value);
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired);
};

// The orders that weak memory has, and by which it contains all that ARMv8 can do.
static_assert(Hardware::kLoad == std::memory_order_acquire &&
                  Hardware::kFailedSwap == std::memory_order_acquire,
              "nothing that follows a read may take effect before it");
static_assert(Hardware::kStore == std::memory_order_release &&
                  Hardware::kSwap == std::memory_order_acq_rel,
              "no store may take effect before what precedes it");

/// What the others see of a process's accesses, and when.
enum class MemoryModel {
  /// Every access takes effect at once (sequential consistency).
  kSequential,
  /// The C++ model as a machine of messages and views (strong release-acquire), for code whose
  /// loads are all acquires and whose stores are all releases. A word keeps all that was written to
  /// it, in one order for all. A load, or compare-and-swap, may return any write that is not older
  /// than what the process is known to have seen of the word, and also sees what the writer had
  /// seen. Contains all that an ARMv8 processor can do, see docs/design/memory-orders.md, and all
  /// that store buffers (x86, TSO) can do.
  kWeak,
};

/// The results that a process returns at its end.
using Answer = std::vector<std::int64_t>;

/// Code that accesses shared words through Explored alone, and whose course depends on nothing but
/// what it reads there: it is run again, from its start, any number of times.
using Code = std::function<Answer()>;

struct Process {
  std::string name;
  Code run;
  Code recover = {};  ///< what follows once the process has been killed; may be killed itself
};

struct Outcome {
  std::optional<Answer> answer;     ///< none if it was killed before its end
  std::optional<Answer> recovered;  ///< of the recovery, if it was killed
};

struct Scenario {
  std::vector<Process> processes;
  /// Looks at memory, through Explored or not, when all have ended; returns what is wrong with it.
  /// Whatever it does to memory through Explored is undone.
  std::function<std::string(const std::vector<Outcome>&)> check = {};
  /// How many kills there may be in one execution, each before any access or after the last.
  int kills = 0;
  MemoryModel memory = MemoryModel::kSequential;
  /// Leaves out executions that differ in the order of independent accesses alone.
  bool reduce = true;
  /// More accesses than any process makes alone, or all make together.
  std::size_t endless = 5000;
  /// A word's name, for the list of steps.
  std::function<std::string(const Explored::Word*)> name_of = {};
};

struct Exploration {
  std::string violation;   ///< what is wrong and the steps to it; empty if nothing is
  std::size_t states = 0;  ///< only those in which there was a choice

  bool ok() const { return violation.empty(); }
};

/// Explores all executions from what the words hold now, which they hold again afterwards. Each
/// process must also end when it runs alone, whatever the others have left half done.
Exploration Explore(const Scenario& scenario);

}  // namespace rollgate::testing
