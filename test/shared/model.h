// Calls of a few processes to a tiny region, all that some order of whole calls comes to, and the
// exploration that compares them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <type_traits>
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

/// Each has `kills` = 1.
const std::vector<Case>& ModelCases();

/// The case of that name. Throws if there is none.
const Case& CaseNamed(const std::string& name);

constexpr std::size_t kSpectator = 9;  ///< the entry of the client that looks at the end

/// Explored, with the memory orders that the table has on hardware.
struct TableAccess {
  using Word = shared::Word;
  using Hardware = shared::Hardware;

  static std::uint64_t Load(const Word& word) { return Explored::Load(word, Hardware::kLoad); }
  static void Store(Word& word, std::uint64_t value) {
    Explored::Store(word, value, Hardware::kStore);
  }
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    return Explored::CompareExchange(word, expected, desired, Hardware::kSwap,
                                     Hardware::kFailedSwap);
  }
};

/// The region that is explored, for what an Access has to know of it.
inline TinyRegion* explored_region = nullptr;

/// Which field of a part of the region a word is, or -1.
inline int FieldOf(const shared::Word* word, const void* part, std::size_t count,
                   std::size_t words) {
  const auto at = reinterpret_cast<std::uintptr_t>(word) - reinterpret_cast<std::uintptr_t>(part);
  const std::size_t index = at / sizeof(shared::Word);
  return index < count * words ? static_cast<int>(index % words) : -1;
}
enum EntryWord { kSpare, kTarget, kNext, kExpected, kBucket };

inline int EntryField(const shared::Word* word) {
  return FieldOf(word, explored_region->view().entries, shared::kEntries,
                 sizeof(shared::Entry) / sizeof(shared::Word));
}
inline int BucketField(const shared::Word* word) {  // 0: insertion
  const shared::View view = explored_region->view();
  return FieldOf(word, view.buckets, view.geometry.buckets(),
                 sizeof(shared::Bucket) / sizeof(shared::Word));
}
inline int RecordField(const shared::Word* word) {
  const shared::View view = explored_region->view();
  return FieldOf(word, view.records, view.geometry.records(), view.geometry.record_words());
}

/// What has been done before is done right, unless the Access is broken from the start.
template <class Access>
using FirstAccess = std::conditional_t < requires {
  Access::kFromTheStart;
}
, Access, TableAccess > ;

template <class Access = TableAccess>
Exploration RunCase(const Case& c) {
  TinyRegion region(c.buckets, c.slots, shared::kState + kStateWords);
  explored_region = &region;
  const shared::View view = region.view();
  view.header->entries_used = c.processes.size();
  {
    Client<FirstAccess<Access>> first(c.ids, c.max, view, 0);
    for (const Call& call : c.before) first.Do(call);
  }
  const auto peek = [&] {
    Client<TableAccess> spectator(c.ids, c.max, view, kSpectator);
    std::vector<Micros> found;
    for (std::size_t id = 0; id < c.ids.size(); ++id) {
      found.push_back(spectator.Do(Peek(static_cast<int>(id))));
    }
    return found;
  };
  const Orders orders(c, peek());
  Scenario scenario;
  scenario.kills = c.kills;
  scenario.memory = c.memory;
  scenario.name_of = [&](const shared::Word* word) { return region.NameOf(word); };
  for (std::size_t i = 0; i < c.processes.size(); ++i) {
    const auto code = [&c, view, i](const Calls& calls) {
      return [&c, &calls, view, i] {
        if constexpr (requires { Access::Begin(); }) Access::Begin();
        Client<Access> client(c.ids, c.max, view, i);
        Answer answer;
        for (const Call& call : calls) answer.push_back(client.Do(call));
        return answer;
      };
    };
    scenario.processes.push_back(
        {std::string(1, static_cast<char>('A' + i)), code(c.processes[i]), code(c.after_recovery)});
  }
  scenario.check = [&](const std::vector<Outcome>& outcomes) -> std::string {
    for (const std::string& wrong : Audit(view)) return wrong;
    End end;
    for (const Outcome& outcome : outcomes) {
      AddAnswer(end, outcome.answer);
      AddAnswer(end, outcome.recovered);
    }
    const std::vector<Micros> found = peek();
    end.insert(end.end(), found.begin(), found.end());
    if (!orders.Contain(end)) return "no order of calls comes to this:" + Text(end);
    const auto known =
        std::count_if(found.begin(), found.end(), [](Micros at) { return at != -1; });
    const auto keys =
        static_cast<std::int64_t>(shared::Table<TableAccess>(view, kSpectator).Keys());
    if (std::abs(keys - known) > c.kills) {
      return "there are " + std::to_string(known) + " ids, not " + std::to_string(keys);
    }
    return "";
  };
  Exploration exploration = Explore(scenario);
  explored_region = nullptr;
  return exploration;
}

}  // namespace rollgate::testing
