// The calls of a case one after the other, and the cases: known and new ids, evictions, clears,
// refunds and late callers.
#include "shared/model.h"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>

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

std::vector<std::pair<Model, Micros>> Model::Do(std::size_t, std::size_t, const Call& call) const {
  Model next = *this;
  const auto found = next.logs.find(call.id);
  const bool is_known = found != next.logs.end();
  switch (call.kind) {
    case Call::kAttempt: {
      if (is_known) {
        const Micros at = found->second.Attempt(call.now, of->max);
        return {{next, at}};
      }
      std::vector<std::pair<Model, Micros>> all;
      const auto insert = [&](Model& model) {
        const Micros at = model.logs[call.id].Attempt(std::max(call.now, model.forgotten), of->max);
        all.emplace_back(model, at);
      };
      if (logs.size() < of->buckets * of->slots) {
        insert(next);
        if (!of->makes_room_in_vain) return all;
      }
      for (const auto& [id, log] : logs) {
        Model without = *this;
        if (log.expires() <= call.now) without.forgotten = std::max(forgotten, log.expires());
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

std::vector<Micros> Model::Found() const {
  std::vector<Micros> found;
  for (std::size_t id = 0; id < of->ids.size(); ++id) {
    found.push_back(Do(0, 0, Peek(static_cast<int>(id))).front().second);
  }
  return found;
}

Model Model::AfterBefore(const Case& c, const std::vector<Micros>& found) {
  std::vector<Model> models = {Model{.of = &c}};
  for (const Call& call : c.before) {
    std::vector<Model> next;
    for (const Model& model : models) {
      for (const auto& [then, heard] : model.Do(0, 0, call)) next.push_back(then);
    }
    models = std::move(next);
  }
  return *std::ranges::find(models, found, &Model::Found);
}

std::string Text(const std::vector<Outcome>& outcomes, const std::vector<std::int64_t>& found) {
  std::string text = "no order of calls comes to this:";
  const auto add = [&](const std::optional<Answer>& answer) {
    text.append(answer ? " (" : " killed");
    for (const std::int64_t each : answer.value_or(Answer{})) text += " " + std::to_string(each);
    if (answer) text.append(" )");
  };
  for (const Outcome& outcome : outcomes) {
    add(outcome.answer);
    if (outcome.recovered) add(outcome.recovered);
  }
  text.append(", then");
  for (const std::int64_t each : found) text += " " + std::to_string(each);
  return text;
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
       .ids = Ids(2),
       .before = {Attempt(kB, 0), Attempt(kA, 0)},
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "TwoAttemptAKnownIdOneOfThemTwice",
       .max = 2,
       .ids = Ids(2),
       .before = {Attempt(kB, 0), Attempt(kA, 0)},
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20), Attempt(kA, 21)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "AnIdExpiresTwice",
       .max = 1,
       .ids = Ids(2),
       .before = {Attempt(kB, 0), Attempt(kA, 0)},
       .processes = {{Attempt(kA, 100)}, {Attempt(kA, 101), Attempt(kA, 300)}},
       .after_recovery = {Attempt(kA, 301)}},
      {.name = "AnIdOfTheSecondBucketIsInserted",
       .buckets = 2,
       .slots = 1,
       .ids = Ids(3, 2, {1, 0, 1}),
       .processes = {{Attempt(kA, 10)}}},
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
