// Calls of a few processes to a tiny region, and the exploration that compares them with whole
// calls in some order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "shared/explorer.h"
#include "shared/table.h"
#include "shared/tiny_region.h"

namespace rollgate::testing {

struct Case {
  std::string name = {};
  int max = 1;
  std::uint64_t buckets = 1;
  std::uint64_t slots = 2;  ///< of each bucket
  std::vector<Identity> ids = {};
  Calls before = {};
  std::vector<Calls> processes = {};
  Calls after_recovery = {};
  int kills = 1;  ///< at most
  MemoryModel memory = MemoryModel::kSequential;
  /// Whether a new id may take the place of another although there is room by now.
  bool makes_room_in_vain = false;
  /// Whether there are so many executions that exploring them takes seconds.
  bool is_long = false;
};

inline void PrintTo(const Case& c, std::ostream* out) {
  *out << c.name;
}

// Indices of a case's ids.
constexpr int kA = 0;
constexpr int kB = 1;
constexpr int kC = 2;

/// So many ids whose first bucket is the `home`th of `buckets`, told apart by their tags.
std::vector<Identity> Ids(std::size_t count, std::uint64_t buckets = 1,
                          std::vector<std::uint64_t> homes = {});

/// Whether some order of whole calls has the answers that were given, and an end that fits. Those
/// of a killed process are the first ones of its own, then those after its recovery. A copy of a
/// Model has
/// - Do(process, number, call): all that the call can come to, each with its answer
/// - Kill(process)
template <class Model, class C>
class Orders {
 public:
  using Fits = std::function<bool(const Model&)>;

  Orders(const C& c, const std::vector<Outcome>& outcomes, Fits fits)
      : case_(c), outcomes_(outcomes), fits_(std::move(fits)) {}

  bool Exist(const Model& start) const {
    std::vector<Progress> all;
    for (const Outcome& outcome : outcomes_) all.push_back({.is_last = !outcome.recovered});
    return Walk(start, all, case_.kills);
  }

 private:
  struct Progress {
    std::size_t calls = 0;  ///< of its own, or since its latest recovery
    bool is_recovered = false;
    bool is_last = true;  ///< it is not killed any more
  };

  bool Walk(const Model& model, const std::vector<Progress>& all, int kills) const {
    bool has_ended = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto [done, is_recovered, is_last] = all[i];
      const auto& calls = is_recovered ? case_.after_recovery : case_.processes[i];
      const auto& answer = is_recovered ? outcomes_[i].recovered : outcomes_[i].answer;
      // Nothing is known of a recovery that was killed.
      const bool is_known = answer && (is_last || !is_recovered);
      has_ended = has_ended && is_last && done == calls.size();
      std::vector<Progress> then = all;
      if (done < calls.size()) {
        then[i].calls = done + 1;
        const std::size_t number = done + (is_recovered ? 100 : 0);
        for (const auto& [next, heard] : model.Do(i, number, calls[done])) {
          const bool can_be = !is_known || heard == (*answer)[done];
          if (can_be && Walk(next, then, kills)) return true;
        }
      }
      if (is_last || kills == 0 || (is_known && done < calls.size())) continue;
      Model without = model;
      without.Kill(i);
      then[i] = {.is_recovered = true, .is_last = true};
      if (Walk(without, then, kills - 1)) return true;
      then[i].is_last = false;
      if (kills > 1 && Walk(without, then, kills - 1)) return true;
    }
    return has_ended && fits_(model);
  }

  const C& case_;
  const std::vector<Outcome>& outcomes_;
  Fits fits_;
};

/// The calls, one after the other. Where a new id finds no room, any may have to leave.
struct Model {
  const Case* of = nullptr;
  std::map<int, Log> logs = {};
  Micros forgotten = Log::kNone;

  std::vector<std::pair<Model, Micros>> Do(std::size_t, std::size_t, const Call& call) const;
  void Kill(std::size_t) {}

  /// What Peek returns for each id.
  std::vector<Micros> Found() const;

  /// After `before`, if Peek returns this then: who had to leave is known.
  static Model AfterBefore(const Case& c, const std::vector<Micros>& found);
};

/// What processes have answered and what was found at the end.
std::string Text(const std::vector<Outcome>& outcomes, const std::vector<std::int64_t>& found);

const std::vector<Case>& ModelCases();

constexpr std::size_t kSpectator = 9;  ///< the entry of the client that looks at the end

/// Processes whose calls are made by the clients that `make(number)` returns.
template <class C, class Make>
Scenario ScenarioOf(const C& c, Make make) {
  Scenario scenario{.processes = {}, .kills = c.kills, .memory = c.memory};
  for (std::size_t i = 0; i < c.processes.size(); ++i) {
    const auto code = [make, i](const auto& calls) {
      return [make, i, &calls] {
        auto client = make(i);
        Answer answer;
        for (const auto& call : calls) answer.push_back(client.Do(call));
        return answer;
      };
    };
    scenario.processes.push_back(
        {std::string(1, static_cast<char>('A' + i)), code(c.processes[i]), code(c.after_recovery)});
  }
  return scenario;
}

Exploration RunCase(const Case& c);

}  // namespace rollgate::testing
