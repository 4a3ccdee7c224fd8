// Calls of a few processes to a tiny region, and all that some order of whole calls comes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "core/identity.h"
#include "shared/explorer.h"
#include "shared/tiny_client.h"

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
  int kills = 0;
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

/// What calls have returned and what is left at the end.
using End = std::vector<std::int64_t>;

void AddAnswer(End& end, const std::optional<Answer>& answer);
std::string Text(const End& end);

struct Model;

/// All that some order of whole calls comes to. Those of a killed process are the first ones of its
/// own, then those after its recovery.
class Orders {
 public:
  /// `found` is what Peek returns for each id after `before`. The case outlives this.
  Orders(const Case& c, const std::vector<Micros>& found);

  bool Contain(const End& end) const { return ends_.count(end) != 0; }

 private:
  struct Progress {
    bool killed = false;
    std::optional<Answer> answer = {};  ///< if it had come to its end
    Answer heard = {};
  };

  void Walk(const Model& model, const std::vector<Progress>& all, int kills);
  std::vector<Micros> Found(const Model& model) const;

  const Case& case_;
  std::set<End> ends_;
};

}  // namespace rollgate::testing
