// The calls of a case one after the other, and the cases: known and new ids, evictions, clears,
// refunds and late callers.
#include "shared/model.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

namespace rollgate::testing {

std::vector<Identity> Ids(std::size_t count, std::uint64_t buckets,
                          std::vector<std::uint64_t> homes) {
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

void AddAnswer(End& end, const std::optional<Answer>& answer) {
  end.push_back(answer ? static_cast<std::int64_t>(answer->size()) : -1);
  if (answer) end.insert(end.end(), answer->begin(), answer->end());
}

std::string Text(const End& end) {
  std::string text;
  for (const std::int64_t value : end) text.append(" ").append(std::to_string(value));
  return text;
}

/// The same calls, one after the other. Where a new id finds no room, any may have to leave.
struct Model {
  std::map<int, Log> logs;
  Micros forgotten = Log::kNone;

  /// All that a call can come to.
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
        return {{next, is_known ? SummaryOf(found->second) : -1}};
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

Orders::Orders(const Case& c, const std::vector<Micros>& found) : case_(c) {
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

void Orders::Walk(const Model& model, const std::vector<Progress>& all, int kills) {
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
    using Optional = std::optional<Answer>;
    AddAnswer(end, progress.killed ? progress.answer : Optional(progress.heard));
    AddAnswer(end, progress.killed ? Optional(progress.heard) : Optional());
  }
  const std::vector<Micros> found = Found(model);
  end.insert(end.end(), found.begin(), found.end());
  ends_.insert(end);
}

std::vector<Micros> Orders::Found(const Model& model) const {
  std::vector<Micros> found;
  for (std::size_t id = 0; id < case_.ids.size(); ++id) {
    found.push_back(model.Do(Peek(static_cast<int>(id)), case_).front().second);
  }
  return found;
}

namespace {

Case AfterManyClears() {
  Case c{.name = "ALateCallerActsNoEarlierThanItsIdWasForgottenAfterManyClears",
         .max = 1,
         .slots = 1,
         .ids = Ids(2)};
  c.before = {Attempt(kB, 0), Attempt(kA, 150)};  // B is forgotten
  c.before.insert(c.before.end(), 200, ClearAll());
  c.before.push_back(Attempt(kA, 200));
  c.processes = {{Attempt(kB, 350)}, {Attempt(kA, 250)}};
  return c;
}

std::vector<Case> MakeCases() {
  std::vector<Case> cases = {
      {.name = "TwoAttemptAKnownId",
       .max = 2,
       .ids = Ids(1),
       .before = {Attempt(kA, 0)},
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "TwoAttemptAKnownIdThatHasExpired",
       .max = 1,
       .ids = Ids(1),
       .before = {Attempt(kA, 0)},
       .processes = {{Attempt(kA, 100)}, {Attempt(kA, 101)}},
       .after_recovery = {Attempt(kA, 102)}},
      {.name = "TwoInsertAnId",
       .max = 1,
       .ids = Ids(1),
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "TwoInsertAnIdThatOneSlotIsLeftFor",
       .max = 2,
       .slots = 1,
       .ids = Ids(1),
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "TwoInsertDifferentIdsIntoTheLastSlot",
       .slots = 1,
       .ids = Ids(2),
       .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20)}},
       .after_recovery = {Attempt(kB, 30)},
       .is_long = true},
      {.name = "AnIdIsEvictedWhileItIsAttempted",
       .max = 2,
       .ids = Ids(3),
       .before = {Attempt(kA, 0), Attempt(kB, 10)},
       .processes = {{Attempt(kC, 20)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kC, 30)},
       .is_long = true},
      {.name = "AnIdIsEvictedWhileAnotherIsAttempted",
       .max = 2,
       .ids = Ids(3),
       .before = {Attempt(kA, 0), Attempt(kB, 10)},
       .processes = {{Attempt(kC, 20)}, {Attempt(kB, 20)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "AnIdIsReadWhileItsRecordIsUsedAgain",
       .max = 2,
       .slots = 1,
       .ids = Ids(2),
       .before = {Attempt(kA, 0)},
       .processes = {{Attempt(kB, 20), Attempt(kB, 30)}, {Peek(kA)}}},
      {.name = "AnIdIsClearedWhileItIsAttempted",
       .max = 2,
       .ids = Ids(1),
       .before = {Attempt(kA, 0)},
       .processes = {{Clear(kA)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "TwoClearAnId",
       .ids = Ids(1),
       .before = {Attempt(kA, 0)},
       .processes = {{Clear(kA)}, {Clear(kA)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "AnActionIsTakenBackWhileItsIdIsAttempted",
       .max = 2,
       .ids = Ids(1),
       .before = {Attempt(kA, 0), Attempt(kA, 1)},
       .processes = {{Refund(kA, 1)}, {Attempt(kA, 20)}},
       .after_recovery = {Refund(kA, 0)}},
      {.name = "TheOnlyActionIsTakenBackWhileItsIdIsAttempted",
       .max = 2,
       .ids = Ids(1),
       .before = {Attempt(kA, 0)},
       .processes = {{Refund(kA, 0)}, {Attempt(kA, 20)}},
       .after_recovery = {Refund(kA, 0)}},
      {.name = "AnActionIsTakenBackOnce",
       .max = 2,
       .ids = Ids(1),
       .before = {Attempt(kA, 0), Attempt(kA, 1)},
       .processes = {{Refund(kA, 1)}, {Refund(kA, 1)}},
       .after_recovery = {Refund(kA, 1)}},
      {.name = "AllIsClearedWhileAKnownIdIsAttempted",
       .max = 2,
       .ids = Ids(1),
       .before = {Attempt(kA, 0)},
       .processes = {{ClearAll(), Attempt(kA, 20)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "AllIsClearedWhileANewIdIsAttempted",
       .max = 1,
       .slots = 1,
       .ids = Ids(2),
       .before = {Attempt(kA, 0)},
       .processes = {{ClearAll(), Attempt(kB, 20)}, {Attempt(kB, 20)}},
       .after_recovery = {Attempt(kA, 30)},
       .is_long = true},
      {.name = "AnIdThatWasClearedWithAllIsRevivedOnce",
       .max = 1,
       .ids = Ids(1),
       .before = {Attempt(kA, 0), ClearAll()},
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "AnIdThatWasClearedWithAllIsRevivedWhileAnotherTakesItsPlace",
       .max = 1,
       .slots = 1,
       .ids = Ids(2),
       .before = {Attempt(kA, 0), ClearAll()},
       .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20)}},
       .after_recovery = {Attempt(kA, 30)},
       .is_long = true},
      {.name = "ALateCallerActsNoEarlierThanItsIdWasForgotten",
       .max = 1,
       .slots = 1,
       .ids = Ids(2),
       .before = {Attempt(kA, 0)},
       .processes = {{Attempt(kB, 150)}, {Attempt(kA, 50)}}},
      {.name = "ALateCallerActsNoEarlierThanItsIdWasForgottenByAKilledProcess",
       .max = 1,
       .slots = 2,
       .ids = Ids(3),
       .before = {Attempt(kA, 0), Attempt(kB, 10)},
       .processes = {{Attempt(kC, 150)}, {Attempt(kA, 50), Attempt(kB, 60)}}},
      {.name = "IdsOfTwoBucketsCompeteForTheirSlots",
       .max = 2,
       .buckets = 2,
       .slots = 1,
       .ids = Ids(3, 2, {0, 1, 0}),
       .before = {Attempt(kC, 0)},
       .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20)}},
       .after_recovery = {Attempt(kC, 30)},
       .is_long = true},
      {.name = "IdsOfTwoBucketsCompeteForTheirSlotsTwice",
       .max = 2,
       .buckets = 2,
       .slots = 1,
       .ids = Ids(3, 2, {0, 1, 0}),
       .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20), Attempt(kA, 20)}},
       .after_recovery = {Attempt(kC, 30)},
       .is_long = true},
      AfterManyClears(),
      {.name = "AnIdIsReadWhileItsRecordIsUsedForAnotherId",
       .max = 2,
       .ids = Ids(2),
       .before = {Attempt(kA, 0)},
       .processes = {{Attempt(kA, 10), Attempt(kB, 20)}, {Peek(kA)}}},
      {.name = "AnIdIsReadWhileItsRecordIsUsedForAnAlmostEqualId",
       .max = 2,
       .ids = {{1, 0, 1}, {1, 1, 1}},
       .before = {Attempt(kA, 0)},
       .processes = {{Attempt(kA, 10), Attempt(kB, 20)}, {Peek(kA)}}},
      {.name = "AllIsClearedWhileARecordIsUsedAgain",
       .max = 2,
       .ids = Ids(1),
       .before = {Attempt(kA, 0)},
       .processes = {{Attempt(kA, 10), Attempt(kA, 20)}, {ClearAll(), Peek(kA)}}},
      {.name = "AnInsertionIsFinishedAndItsRecordUsedAgainBeforeItsOwnerIsRecovered",
       .max = 1,
       .slots = 1,
       .ids = Ids(1),
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20), Attempt(kA, 130), Attempt(kA, 250)}}},
  };
  for (Case& each : cases) each.kills = 1;
  return cases;
}

}  // namespace

const std::vector<Case>& ModelCases() {
  static const std::vector<Case> cases = MakeCases();
  return cases;
}

const Case& CaseNamed(const std::string& name) {
  const auto is_it = [&](const Case& each) { return each.name == name; };
  const auto found = std::find_if(ModelCases().begin(), ModelCases().end(), is_it);
  if (found == ModelCases().end()) throw std::invalid_argument("no case " + name);
  return *found;
}

}  // namespace rollgate::testing
