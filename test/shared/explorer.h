// Runs a few processes on shared words in every order there is: a model checker for code that
// reaches memory through an Access.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rollgate::testing {

/// The Access of code that is explored. Outside of Explore it is ordinary memory.
struct Explored {
  using Word = std::atomic<std::uint64_t>;

  static std::uint64_t Load(const Word& word);
  static void Store(Word& word, std::uint64_t value);
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired);
};

/// What a process tells at its end.
using Answer = std::vector<std::int64_t>;

/// Code that touches shared words through Explored alone, and whose course depends on nothing but
/// what it hears from there: it is run anew, from its start, any number of times.
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
  /// Looks at memory, through Explored or not, when all have ended; tells what is wrong with it.
  /// Whatever it does to memory through Explored is undone.
  std::function<std::string(const std::vector<Outcome>&)> check = {};
  /// How many kills there may be in one execution, each before any access or after the last.
  int kills = 0;
  /// Whether stores wait, in their order, before the others see them, as on x86; without it every
  /// access takes effect at once (sequential consistency).
  bool store_buffers = false;
  /// Leaves out executions that differ in the order of independent accesses alone.
  bool reduce = true;
  /// More accesses than any process makes alone, or all make together.
  std::size_t endless = 5000;
  /// A word's name, for the list of steps.
  std::function<std::string(const Explored::Word*)> name_of = {};
};

struct Exploration {
  std::string violation;    ///< what is wrong and the steps to it; empty if nothing is
  std::size_t states = 0;   ///< in the last pass; only those in which there was a choice
  std::size_t steps = 0;    ///< from one state to the next, in the last pass
  std::size_t ends = 0;     ///< different ones
  std::size_t longest = 0;  ///< steps of the longest execution
  std::size_t passes = 0;   ///< until it was known which words are shared
  std::size_t runs = 0;     ///< of processes

  bool ok() const { return violation.empty(); }
  std::string Summary() const;
};

/// Explores all executions from what the words hold now, which they hold again afterwards. That
/// each process ends when it runs alone, whatever the others have left half done, is part of it.
Exploration Explore(const Scenario& scenario);

}  // namespace rollgate::testing
