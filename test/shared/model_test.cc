// Every order in which a few processes can use a tiny region, and every moment at which one of them
// can be killed, comes to what some order of whole calls comes to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "shared/audit.h"
#include "shared/explorer.h"
#include "shared/table.h"
#include "shared/tiny_client.h"
#include "shared/tiny_region.h"
#include "support/traces.h"

namespace rollgate::testing {
namespace {

using shared::Entry;
using shared::Table;
using shared::Word;

constexpr std::size_t kSpectator = 9;  ///< the entry of whoever looks at the end

struct Case {
  int max = 1;
  std::uint64_t buckets = 1;
  std::uint64_t slots = 2;  ///< of each bucket
  std::vector<Identity> ids;
  Calls before = {};
  std::vector<Calls> processes = {};
  Calls after_recovery = {};
  int kills = 0;
  MemoryModel memory = MemoryModel::kSequential;
  /// Whether a new id may take the place of another although there is room by now.
  bool makes_room_in_vain = false;
};

/// The same calls, one after the other. Where a new id finds no room, any may have to leave.
struct Model {
  std::map<int, Log> logs;
  Micros forgotten = Log::kNone;

  /// All that can come of a call.
  std::vector<std::pair<Model, Micros>> Do(const Call& call, const Case& c) const {
    Model next = *this;
    const auto found = next.logs.find(call.id);
    const bool is_known = found != next.logs.end();
    switch (call.kind) {
      case Call::kAttempt: {
        if (is_known) {
          const Micros at = found->second.Attempt(call.now, c.max);
          return {{next, at}};
        }
        std::vector<std::pair<Model, Micros>> all;
        const auto insert = [&](Model& model) {
          const Micros at = model.logs[call.id].Attempt(std::max(call.now, model.forgotten), c.max);
          all.emplace_back(model, at);
        };
        if (logs.size() < c.buckets * c.slots) {
          insert(next);
          if (!c.makes_room_in_vain) return all;
        }
        for (const auto& [id, log] : logs) {
          Model without = *this;
          if (log.expires() <= call.now) {
            without.forgotten = std::max(forgotten, log.expires());
          }
          without.logs.erase(id);
          insert(without);
        }
        return all;
      }
      case Call::kRefund: {
        if (!is_known || !found->second.Refund(call.now)) return {{next, 0}};
        if (found->second.is_empty()) next.logs.erase(found);
        return {{next, 1}};
      }
      case Call::kPeek:
        return {{next, is_known ? Told(found->second) : -1}};
      case Call::kClear:
        next.logs.erase(call.id);
        return {{next, is_known}};
      case Call::kClearAll:
        next.logs.clear();
        next.forgotten = Log::kNone;
        return {{next, 0}};
    }
    return {};
  }
};

/// What calls have told and what is left at the end.
using End = std::vector<std::int64_t>;

void AddAnswer(End& end, const std::optional<Answer>& answer) {
  end.push_back(answer ? static_cast<std::int64_t>(answer->size()) : -1);
  if (answer) end.insert(end.end(), answer->begin(), answer->end());
}

/// All that some order of whole calls comes to. Those of a killed process are the first ones of its
/// own, then those after its recovery.
class Orders {
 public:
  /// `found` is what Peek tells of each id after `before`.
  Orders(const Case& c, const std::vector<Micros>& found) : case_(c) {
    std::vector<Model> models(1);
    for (const Call& call : c.before) {
      std::vector<Model> next;
      for (const Model& model : models) {
        for (const auto& [then, heard] : model.Do(call, c)) next.push_back(then);
      }
      models = std::move(next);
    }
    // Who had to leave is known.
    const auto is_it = [&](const Model& model) { return Found(model) == found; };
    Walk(*std::find_if(models.begin(), models.end(), is_it),
         std::vector<Progress>(c.processes.size()), c.kills);
  }

  bool Contain(const End& end) const { return ends_.count(end) != 0; }

 private:
  struct Progress {
    bool killed = false;
    std::optional<Answer> answer = {};  ///< if it had come to its end
    Answer heard = {};
  };

  void Walk(const Model& model, const std::vector<Progress>& all, int kills) {
    bool is_end = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const Progress& progress = all[i];
      const Calls& calls = progress.killed ? case_.after_recovery : case_.processes[i];
      if (progress.heard.size() < calls.size()) {
        is_end = false;
        for (const auto& [next, heard] : model.Do(calls[progress.heard.size()], case_)) {
          std::vector<Progress> then = all;
          then[i].heard.push_back(heard);
          Walk(next, then, kills);
        }
      }
      if (kills > 0) {
        std::vector<Progress> then = all;
        then[i] = {.killed = true, .answer = progress.answer};
        Walk(model, then, kills - 1);
        if (!progress.killed && progress.heard.size() == calls.size()) {
          then[i].answer = progress.heard;
          Walk(model, then, kills - 1);
        }
      }
    }
    if (!is_end) return;
    End end;
    for (const Progress& progress : all) {
      using Told = std::optional<Answer>;
      AddAnswer(end, progress.killed ? progress.answer : Told(progress.heard));
      AddAnswer(end, progress.killed ? Told(progress.heard) : Told());
    }
    const std::vector<Micros> found = Found(model);
    end.insert(end.end(), found.begin(), found.end());
    ends_.insert(end);
  }

  std::vector<Micros> Found(const Model& model) const {
    std::vector<Micros> found;
    for (std::size_t id = 0; id < case_.ids.size(); ++id) {
      found.push_back(model.Do(Peek(static_cast<int>(id)), case_).front().second);
    }
    return found;
  }

  const Case& case_;
  std::set<End> ends_;
};

std::string Text(const End& end) {
  std::string text;
  for (const std::int64_t value : end) text.append(" ").append(std::to_string(value));
  return text;
}

/// The region that is explored, for what an Access has to know of it.
TinyRegion* explored_region = nullptr;

/// What has been done before is done right, unless the Access is broken from the start.
template <class Access>
using FirstAccess = std::conditional_t < requires {
  Access::kFromTheStart;
}
, Access, Explored > ;

template <class Access = Explored>
Exploration Run(const Case& c) {
  TinyRegion region(c.buckets, c.slots, shared::kState + kStateWords);
  explored_region = &region;
  const shared::View view = region.view();
  view.header->entries_used = c.processes.size();
  {
    Client<FirstAccess<Access>> first(c.ids, c.max, view, 0);
    for (const Call& call : c.before) first.Do(call);
  }
  const auto peek = [&] {
    Client<Explored> spectator(c.ids, c.max, view, kSpectator);
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
  scenario.name_of = [&](const Word* word) { return region.NameOf(word); };
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
    const auto keys = static_cast<std::int64_t>(Table<Explored>(view, kSpectator).Keys());
    if (std::abs(keys - known) > c.kills) {
      return "there are " + std::to_string(known) + " ids, not " + std::to_string(keys);
    }
    return "";
  };
  Exploration exploration = Explore(scenario);
  explored_region = nullptr;
  return exploration;
}

/// So many ids whose first bucket is the `home`th of `buckets`, told apart by their tags.
std::vector<Identity> Ids(std::size_t count, std::uint64_t buckets = 1,
                          std::vector<std::uint64_t> homes = {}) {
  TinyRegion region(buckets, 1, 1);
  homes.resize(count);
  std::vector<Identity> ids;
  std::set<std::uint64_t> tags;
  for (std::uint64_t low = 1; ids.size() < count; ++low) {
    const Identity id{low, 0, 1};
    const Homes places = HomesOf(id, region.view());
    if (places.buckets[0] == homes[ids.size()] && tags.insert(places.tag).second) {
      ids.push_back(id);
    }
  }
  return ids;
}

constexpr int kA = 0;
constexpr int kB = 1;
constexpr int kC = 2;

void Expect(const Case& c) {
  const Exploration exploration = Run(c);
  EXPECT_TRUE(exploration.ok()) << exploration.violation;
  ::testing::Test::RecordProperty("explored", exploration.Summary());
}

/// With stores that are seen late, or not, and a kill anywhere, or none.
void ExpectExact(Case c) {
  c.kills = 1;
  c.memory = MemoryModel::kStoreBuffers;
  Expect(c);
}

/// The same where there are so many executions that a sanitizer would take minutes.
void ExpectExactAtLength(const Case& c) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  Expect(c);
#else
  ExpectExact(c);
#endif
}

TEST(Model, TwoAttemptAKnownId) {
  ExpectExact({.max = 2,
               .ids = Ids(1),
               .before = {Attempt(kA, 0)},
               .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
               .after_recovery = {Attempt(kA, 30)}});
}

TEST(Model, TwoAttemptAKnownIdThatHasExpired) {
  ExpectExact({.max = 1,
               .ids = Ids(1),
               .before = {Attempt(kA, 0)},
               .processes = {{Attempt(kA, 100)}, {Attempt(kA, 101)}},
               .after_recovery = {Attempt(kA, 102)}});
}

TEST(Model, TwoInsertAnId) {
  ExpectExact({.max = 1,
               .ids = Ids(1),
               .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
               .after_recovery = {Attempt(kA, 30)}});
}

TEST(Model, TwoInsertAnIdThatOneSlotIsLeftFor) {
  ExpectExact({.max = 2,
               .slots = 1,
               .ids = Ids(1),
               .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
               .after_recovery = {Attempt(kA, 30)}});
}

TEST(Model, TwoInsertDifferentIdsIntoTheLastSlot) {
  ExpectExactAtLength({.slots = 1,
                       .ids = Ids(2),
                       .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20)}},
                       .after_recovery = {Attempt(kB, 30)}});
}

TEST(Model, AnIdIsEvictedWhileItIsAttempted) {
  ExpectExactAtLength({.max = 2,
                       .ids = Ids(3),
                       .before = {Attempt(kA, 0), Attempt(kB, 10)},
                       .processes = {{Attempt(kC, 20)}, {Attempt(kA, 20)}},
                       .after_recovery = {Attempt(kC, 30)}});
}

TEST(Model, AnIdIsEvictedWhileAnotherIsAttempted) {
  ExpectExact({.max = 2,
               .ids = Ids(3),
               .before = {Attempt(kA, 0), Attempt(kB, 10)},
               .processes = {{Attempt(kC, 20)}, {Attempt(kB, 20)}},
               .after_recovery = {Attempt(kA, 30)}});
}

TEST(Model, AnIdIsReadWhileItsRecordIsUsedAgain) {
  ExpectExact({.max = 2,
               .slots = 1,
               .ids = Ids(2),
               .before = {Attempt(kA, 0)},
               .processes = {{Attempt(kB, 20), Attempt(kB, 30)}, {Peek(kA)}}});
}

TEST(Model, AnIdIsClearedWhileItIsAttempted) {
  ExpectExact({.max = 2,
               .ids = Ids(1),
               .before = {Attempt(kA, 0)},
               .processes = {{Clear(kA)}, {Attempt(kA, 20)}},
               .after_recovery = {Attempt(kA, 30)}});
}

TEST(Model, TwoClearAnId) {
  ExpectExact({.ids = Ids(1),
               .before = {Attempt(kA, 0)},
               .processes = {{Clear(kA)}, {Clear(kA)}},
               .after_recovery = {Attempt(kA, 30)}});
}

TEST(Model, AnActionIsTakenBackWhileItsIdIsAttempted) {
  ExpectExact({.max = 2,
               .ids = Ids(1),
               .before = {Attempt(kA, 0), Attempt(kA, 1)},
               .processes = {{Refund(kA, 1)}, {Attempt(kA, 20)}},
               .after_recovery = {Refund(kA, 0)}});
}

TEST(Model, TheOnlyActionIsTakenBackWhileItsIdIsAttempted) {
  ExpectExact({.max = 2,
               .ids = Ids(1),
               .before = {Attempt(kA, 0)},
               .processes = {{Refund(kA, 0)}, {Attempt(kA, 20)}},
               .after_recovery = {Refund(kA, 0)}});
}

TEST(Model, AnActionIsTakenBackOnce) {
  ExpectExact({.max = 2,
               .ids = Ids(1),
               .before = {Attempt(kA, 0), Attempt(kA, 1)},
               .processes = {{Refund(kA, 1)}, {Refund(kA, 1)}},
               .after_recovery = {Refund(kA, 1)}});
}

TEST(Model, AllIsClearedWhileAKnownIdIsAttempted) {
  ExpectExact({.max = 2,
               .ids = Ids(1),
               .before = {Attempt(kA, 0)},
               .processes = {{ClearAll(), Attempt(kA, 20)}, {Attempt(kA, 20)}},
               .after_recovery = {Attempt(kA, 30)}});
}

TEST(Model, AllIsClearedWhileANewIdIsAttempted) {
  ExpectExactAtLength({.max = 1,
                       .slots = 1,
                       .ids = Ids(2),
                       .before = {Attempt(kA, 0)},
                       .processes = {{ClearAll(), Attempt(kB, 20)}, {Attempt(kB, 20)}},
                       .after_recovery = {Attempt(kA, 30)}});
}

TEST(Model, AnIdThatWasClearedWithAllIsRevivedOnce) {
  ExpectExact({.max = 1,
               .ids = Ids(1),
               .before = {Attempt(kA, 0), ClearAll()},
               .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
               .after_recovery = {Attempt(kA, 30)}});
}

TEST(Model, AnIdThatWasClearedWithAllIsRevivedWhileAnotherTakesItsPlace) {
  ExpectExactAtLength({.max = 1,
                       .slots = 1,
                       .ids = Ids(2),
                       .before = {Attempt(kA, 0), ClearAll()},
                       .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20)}},
                       .after_recovery = {Attempt(kA, 30)}});
}

TEST(Model, WhoIsLateActsNoEarlierThanHisIdWasForgotten) {
  ExpectExact({.max = 1,
               .slots = 1,
               .ids = Ids(2),
               .before = {Attempt(kA, 0)},
               .processes = {{Attempt(kB, 150)}, {Attempt(kA, 50)}}});
}

TEST(Model, WhoIsLateActsNoEarlierThanHisIdWasForgottenByOneWhoWasKilled) {
  ExpectExact({.max = 1,
               .slots = 2,
               .ids = Ids(3),
               .before = {Attempt(kA, 0), Attempt(kB, 10)},
               .processes = {{Attempt(kC, 150)}, {Attempt(kA, 50), Attempt(kB, 60)}}});
}

TEST(Model, IdsOfTwoBucketsCompeteForTheirSlots) {
  const std::vector<Identity> ids = Ids(3, 2, {0, 1, 0});
  ExpectExactAtLength({.max = 2,
                       .buckets = 2,
                       .slots = 1,
                       .ids = ids,
                       .before = {Attempt(kC, 0)},
                       .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20)}},
                       .after_recovery = {Attempt(kC, 30)}});
  ExpectExactAtLength({.max = 2,
                       .buckets = 2,
                       .slots = 1,
                       .ids = ids,
                       .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20), Attempt(kA, 20)}},
                       .after_recovery = {Attempt(kC, 30)}});
}

TEST(Model, WhoIsLateActsNoEarlierThanHisIdWasForgottenAfterManyClears) {
  Case c{.max = 1, .slots = 1, .ids = Ids(2)};
  c.before = {Attempt(kB, 0), Attempt(kA, 150)};  // B is forgotten
  c.before.insert(c.before.end(), 200, ClearAll());
  c.before.push_back(Attempt(kA, 200));
  c.processes = {{Attempt(kB, 350)}, {Attempt(kA, 250)}};
  ExpectExact(c);
}

TEST(Model, AnInsertionIsFinishedAndItsRecordUsedAgainBeforeItsOwnerIsRecovered) {
  Expect({.max = 1,
          .slots = 1,
          .ids = Ids(1),
          .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20), Attempt(kA, 130), Attempt(kA, 250)}},
          .kills = 1});
}

TEST(Model, NobodyActsLaterThanHisNowHoweverEarlyThatIs) {
  const std::vector<Identity> ids = Ids(2);
  for (const Micros now : {-kLongest, -(Micros{1} << 55) - 20, -(Micros{1} << 55), Micros{0},
                           Micros{1} << 55, kLongest - 100}) {
    SCOPED_TRACE(now);
    TinyRegion region(1, 1, shared::kState + kStateWords);
    Table<shared::Hardware> table(region.view(), 0);
    ASSERT_FALSE(table.Find(ids[kA]));
    table.Insert(now, [&](Micros) { return now + 10; });
    ASSERT_FALSE(table.Find(ids[kB]));
    Micros earliest = 0;
    table.Insert(now + 10, [&](Micros moment) {
      earliest = moment;
      return now + 20;
    });
    EXPECT_LE(earliest, now + 10);
  }
}

TEST(Model, ThreeAttemptAKnownId) {
  Expect({.max = 2,
          .ids = Ids(1),
          .before = {Attempt(kA, 0)},
          .processes = {{Attempt(kA, 100)}, {Attempt(kA, 101)}, {Attempt(kA, 102)}},
          .kills = 1});
}

TEST(Model, ThreeInsertAnId) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "takes minutes with a sanitizer";
#endif
  Expect({.max = 2,
          .slots = 1,
          .ids = Ids(1),
          .processes = {{Attempt(kA, 100)}, {Attempt(kA, 101)}, {Attempt(kA, 102)}}});
}

TEST(Model, TwoInsertAnIdThatAThirdClears) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "takes minutes with a sanitizer";
#endif
  Expect({.max = 1,
          .slots = 1,
          .ids = Ids(1),
          .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}, {Clear(kA)}},
          .kills = 1});
}

TEST(Model, TwoAreKilled) {
  Expect({.max = 2,
          .slots = 1,
          .ids = Ids(1),
          .before = {Attempt(kA, 0)},
          .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
          .after_recovery = {Attempt(kA, 30)},
          .kills = 2});
  Expect(
      {.slots = 1, .ids = Ids(2), .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20)}}, .kills = 2});
}

TEST(Model, AnyTwo) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const std::uint64_t buckets = random.Chance(30) ? 2 : 1;
    Case c{.max = random.Chance(50) ? 1 : 2,
           .buckets = buckets,
           .slots = random.Chance(70) ? 1u : 2u,
           .ids = Ids(3, buckets, {0, 1 % buckets, 0})};
    // Nobody is late: what is forgotten was so before any of these.
    Micros now = 1000;
    const auto any = [&] {
      const int id = static_cast<int>(random.Between(0, 2));
      switch (random.Between(0, 9)) {
        case 0:
          return Refund(id, 1000);
        case 1:
        case 2:
          return Clear(id);
        case 3:
          return ClearAll();
        case 4:
          return Peek(id);
        default:
          return Attempt(id, ++now);
      }
    };
    for (int id = 0; id < 3; ++id) {
      if (random.Chance(60)) c.before.push_back(Attempt(id, random.Chance(50) ? 500 : 1000));
    }
    if (random.Chance(20)) c.before.push_back(ClearAll());
    c.processes = {{any()}, {any()}};
    if (random.Chance(30)) c.processes[0].push_back(any());
    c.kills = c.processes[0].size() == 1;
    c.makes_room_in_vain = true;
    Expect(c);
  }
}

// What must be found: a table whose steps are not all done.

/// Which field of a part of the region a word is, or -1.
int FieldOf(const Word* word, const void* part, std::size_t count, std::size_t words) {
  const auto at = reinterpret_cast<std::uintptr_t>(word) - reinterpret_cast<std::uintptr_t>(part);
  const std::size_t index = at / sizeof(Word);
  return index < count * words ? static_cast<int>(index % words) : -1;
}
int EntryField(const Word* word) {
  return FieldOf(word, explored_region->view().entries, shared::kEntries,
                 sizeof(Entry) / sizeof(Word));
}
int BucketField(const Word* word) {  // 0: insertion
  const shared::View view = explored_region->view();
  return FieldOf(word, view.buckets, view.geometry.buckets(),
                 sizeof(shared::Bucket) / sizeof(Word));
}
int RecordField(const Word* word) {
  const shared::View view = explored_region->view();
  return FieldOf(word, view.records, view.geometry.records(), view.geometry.record_words());
}

enum EntryWord { kSpare, kTarget, kNext, kExpected, kBucket };

/// Never stores one of the words of an entry.
template <int field>
struct WithoutEntry : Explored {
  static void Store(Word& word, std::uint64_t value) {
    if (EntryField(&word) != field) Explored::Store(word, value);
  }
};

/// Says that it is about to swap before it says what.
struct ExpectedFirst : Explored {
  static void Store(Word& word, std::uint64_t value) {
    static thread_local std::uint64_t target = 0;
    static thread_local std::uint64_t next = 0;
    Entry* const entries = explored_region->view().entries;
    const auto entry = static_cast<std::size_t>(reinterpret_cast<char*>(&word) -
                                                reinterpret_cast<char*>(entries)) /
                       sizeof(Entry);
    switch (EntryField(&word)) {
      case kTarget:
        target = value;
        return;
      case kNext:
        next = value;
        return;
      case kExpected:
        Explored::Store(word, value);
        Explored::Store(entries[entry].target, target);
        Explored::Store(entries[entry].next, next);
        return;
      default:
        Explored::Store(word, value);
    }
  }
};

/// Records all say that the first entry wrote them.
struct WithoutWriter : Explored {
  static void Store(Word& word, std::uint64_t value) {
    const bool is_origin = RecordField(&word) == shared::kOrigin;
    Explored::Store(word, is_origin ? (value & ~std::uint64_t{0xffff}) | 1 : value);
  }
};

struct NotAtomic : Explored {
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    if (Explored::Load(word) != expected) return false;
    Explored::Store(word, desired);
    return true;
  }
};

/// Announces an insertion whatever has been announced since.
struct InsertsAnyway : Explored {
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    if (BucketField(&word) == 0 && (desired >> 16 & 1) != 0) {
      expected = Explored::Load(word);
      if ((expected >> 16 & 1) != 0) return false;
    }
    return Explored::CompareExchange(word, expected, desired);
  }
};

/// A record's control word is always the same.
struct WithoutVersions : Explored {
  static constexpr bool kFromTheStart = true;
  static std::uint64_t WithoutVersion(std::uint64_t control) {
    const shared::Controls controls(explored_region->view().geometry.records());
    return controls.Make(controls.Record(control), controls.Tag(control), 0);
  }
  static void Store(Word& word, std::uint64_t value) {
    Explored::Store(word, EntryField(&word) == kNext ? WithoutVersion(value) : value);
  }
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    if (BucketField(&word) > 0) desired = WithoutVersion(desired);
    return Explored::CompareExchange(word, expected, desired);
  }
};

/// Never says until when it has forgotten an id.
struct WithoutForgotten : Explored {
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    if (&word == &explored_region->view().header->forgotten) return true;
    return Explored::CompareExchange(word, expected, desired);
  }
};

/// Reads records without looking whether they were still in their slot in the end.
struct WithoutAnotherLook : Explored {
  static std::uint64_t Load(const Word& word) {
    const bool looks_again = has_read && slot == &word;
    has_read = RecordField(&word) >= 0;
    if (looks_again) return control;
    const std::uint64_t value = Explored::Load(word);
    if (BucketField(&word) > 0) {
      slot = &word;
      control = value;
    }
    return value;
  }
  static void Begin() { has_read = false; }

  static inline bool has_read = false;  ///< a record, just now
  static inline const Word* slot = nullptr;
  static inline std::uint64_t control = 0;
};

template <class Access>
void ExpectFound(Case c, const std::string& what = "") {
  c.kills = 1;
  const Exploration exploration = Run<Access>(c);
  EXPECT_FALSE(exploration.ok());
  EXPECT_NE(exploration.violation.find(what), std::string::npos) << exploration.violation;
}

Case Hits() {
  return {.max = 2,
          .ids = Ids(2),
          .before = {Attempt(kB, 0), Attempt(kA, 0)},
          .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
          .after_recovery = {Attempt(kA, 30)}};
}

TEST(BrokenModel, EntriesWithoutSpares) {
  ExpectFound<WithoutEntry<kSpare>>(Hits());
}
TEST(BrokenModel, EntriesWithoutTargets) {
  ExpectFound<WithoutEntry<kTarget>>(Hits());
}
TEST(BrokenModel, EntriesWithoutNext) {
  ExpectFound<WithoutEntry<kNext>>(Hits());
}
TEST(BrokenModel, EntriesWithoutExpected) {
  ExpectFound<WithoutEntry<kExpected>>(Hits());
}
TEST(BrokenModel, EntriesWithoutBuckets) {
  const std::vector<Identity> ids = Ids(3, 2, {1, 0, 1});
  ExpectFound<WithoutEntry<kBucket>>(
      {.buckets = 2, .slots = 1, .ids = ids, .processes = {{Attempt(kA, 10)}}});
}
TEST(BrokenModel, EntriesThatTellTooEarly) {
  ExpectFound<ExpectedFirst>(Hits());
}
TEST(BrokenModel, RecordsWithoutWriters) {
  Case c = Hits();
  c.processes[1].push_back(Attempt(kA, 21));
  ExpectFound<WithoutWriter>(c);
}
TEST(BrokenModel, SwapsThatAreNotAtomic) {
  ExpectFound<NotAtomic>(Hits());
}
TEST(BrokenModel, InsertionsOfWhatWasInsertedMeanwhile) {
  ExpectFound<InsertsAnyway>({.ids = Ids(1), .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}}});
}
TEST(BrokenModel, ControlWordsThatComeAgain) {
  Case c = Hits();
  c.max = 1;
  c.processes = {{Attempt(kA, 100)}, {Attempt(kA, 101), Attempt(kA, 300)}};
  ExpectFound<WithoutVersions>(c);
}
TEST(BrokenModel, IdsThatAreForgottenInSilence) {
  ExpectFound<WithoutForgotten>({.max = 1,
                                 .slots = 1,
                                 .ids = Ids(2),
                                 .before = {Attempt(kA, 0)},
                                 .processes = {{Attempt(kB, 150)}, {Attempt(kA, 50)}}});
}
TEST(BrokenModel, RecordsThatAreNotWhole) {
  const Case c{.max = 2,
               .slots = 1,
               .ids = Ids(2),
               .before = {Attempt(kA, 0)},
               .processes = {{Attempt(kB, 20), Attempt(kB, 30)}, {Peek(kA)}}};
  ExpectFound<WithoutAnotherLook>(c);
}

}  // namespace
}  // namespace rollgate::testing
