// Runs a few processes on shared words in every order there is: a model checker for code that
// accesses memory through an Access.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rollgate::testing {

/// The Access of code that is explored. Outside of Explore it is ordinary memory.
struct Explored {
  using Word = std::atomic<std::uint64_t>;

  static std::uint64_t Load(const Word& word, std::memory_order order = std::memory_order_acquire);
  static void Store(Word& word, std::uint64_t value,
                    std::memory_order order = std::memory_order_release);
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired,
                              std::memory_order success = std::memory_order_acq_rel,
                              std::memory_order failure = std::memory_order_acquire);
};

/// What the others see of a process's accesses, and when.
enum class MemoryModel {
  /// Every access takes effect at once (sequential consistency). Orders make no difference.
  kSequential,
  /// The C++ model as a machine of messages and views (strong release-acquire). A word keeps all
  /// that was written to it, in one order for all. A load may return any write that is not older
  /// than what the process is known to have seen of the word. An acquire load, or
  /// compare-and-swap, also sees what the writer had seen at its release. Contains all that an
  /// ARMv8 processor can do with code whose loads are all acquires and whose stores are all
  /// releases; see docs/design/memory-orders.md. memory_order_seq_cst counts as acquire and
  /// release only. Contains all that store buffers (x86, TSO) can do.
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
  std::string violation;           ///< what is wrong and the steps to it; empty if nothing is
  std::size_t states = 0;          ///< only those in which there was a choice
  std::size_t relaxed_stores = 0;  ///< and swaps, that are not releases

  bool ok() const { return violation.empty(); }
};

/// Explores all executions from what the words hold now, which they hold again afterwards. Each
/// process must also end when it runs alone, whatever the others have left half done.
Exploration Explore(const Scenario& scenario);

}  // namespace rollgate::testing
