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
         .slots = 1,
         .ids = Ids(2)};
  c.before = {Attempt(kB, 0), Attempt(kA, 150)};  // B is forgotten
  c.before.insert(c.before.end(), 200, ClearAll());
  c.before.push_back(Attempt(kA, 200));
  c.processes = {{Attempt(kB, 350)}, {Attempt(kA, 250)}};
  return c;
}

std::vector<Case> MakeCases() {
  return {
      {.name = "TwoAttemptAKnownId",
       .max = 2,
       .ids = Ids(2),
       .before = {Attempt(kB, 0), Attempt(kA, 0)},
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "TwoInsertAnId",
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
      {.name = "TheOnlyActionIsTakenBackWhileItsIdIsAttempted",
       .max = 2,
       .ids = Ids(1),
       .before = {Attempt(kA, 0)},
       .processes = {{Refund(kA, 0)}, {Attempt(kA, 20)}},
       .after_recovery = {Refund(kA, 0)}},
      {.name = "AllIsClearedWhileAKnownIdIsAttempted",
       .max = 2,
       .ids = Ids(1),
       .before = {Attempt(kA, 0)},
       .processes = {{ClearAll(), Attempt(kA, 20)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "AllIsClearedWhileANewIdIsAttempted",
       .slots = 1,
       .ids = Ids(2),
       .before = {Attempt(kA, 0)},
       .processes = {{ClearAll(), Attempt(kB, 20)}, {Attempt(kB, 20)}},
       .after_recovery = {Attempt(kA, 30)},
       .is_long = true},
      {.name = "AnIdThatWasClearedWithAllIsRevivedOnce",
       .ids = Ids(1),
       .before = {Attempt(kA, 0), ClearAll()},
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kA, 30)}},
      {.name = "AnIdThatWasClearedWithAllIsRevivedWhileAnotherTakesItsPlace",
       .slots = 1,
       .ids = Ids(2),
       .before = {Attempt(kA, 0), ClearAll()},
       .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20)}},
       .after_recovery = {Attempt(kA, 30)},
       .is_long = true},
      {.name = "ALateCallerActsNoEarlierThanItsIdWasForgotten",
       .slots = 1,
       .ids = Ids(2),
       .before = {Attempt(kA, 0)},
       .processes = {{Attempt(kB, 150)}, {Attempt(kA, 50)}}},
      {.name = "ALateCallerActsNoEarlierThanItsIdWasForgottenByAKilledProcess",
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
      AfterManyClears(),
      {.name = "ThreeAttemptAKnownId",
       .max = 2,
       .ids = Ids(1),
       .before = {Attempt(kA, 0)},
       .processes = {{Attempt(kA, 100)}, {Attempt(kA, 101)}, {Attempt(kA, 102)}}},
      {.name = "ThreeInsertAnId",
       .max = 2,
       .slots = 1,
       .ids = Ids(1),
       .processes = {{Attempt(kA, 100)}, {Attempt(kA, 101)}, {Attempt(kA, 102)}},
       .kills = 0,
       .is_long = true},
      {.name = "TwoInsertAnIdThatAThirdClears",
       .slots = 1,
       .ids = Ids(1),
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}, {Clear(kA)}},
       .is_long = true},
      {.name = "BothAreKilledThatAttemptAnId",
       .max = 2,
       .slots = 1,
       .ids = Ids(1),
       .before = {Attempt(kA, 0)},
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20)}},
       .after_recovery = {Attempt(kA, 30)},
       .kills = 2},
      {.name = "BothAreKilledThatInsertDifferentIds",
       .slots = 1,
       .ids = Ids(2),
       .processes = {{Attempt(kA, 10)}, {Attempt(kB, 20)}},
       .kills = 2},
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
       .slots = 1,
       .ids = Ids(1),
       .processes = {{Attempt(kA, 10)}, {Attempt(kA, 20), Attempt(kA, 130), Attempt(kA, 250)}}},
  };
}

}  // namespace

const std::vector<Case>& ModelCases() {
  static const std::vector<Case> cases = MakeCases();
  return cases;
}

Exploration RunCase(const Case& c) {
  TinyRegion region(c.buckets, c.slots, shared::kState + kStateWords);
  const shared::View view = region.view();
  view.header->entries_used = c.processes.size();
  {
    Client<Explored> first(c.ids, c.max, view, 0);
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
  const Model start = Model::AfterBefore(c, peek());
  Scenario scenario =
      ScenarioOf(c, [&](std::size_t i) { return Client<Explored>(c.ids, c.max, view, i); });
  scenario.name_of = [&](const shared::Word* word) { return region.NameOf(word); };
  scenario.check = [&](const std::vector<Outcome>& outcomes) -> std::string {
    for (const std::string& wrong : Audit(view)) return wrong;
    const std::vector<Micros> found = peek();
    const auto fits = [&](const Model& model) { return model.Found() == found; };
    if (!Orders<Model, Case>(c, outcomes, fits).Exist(start)) return Text(outcomes, found);
    const auto known =
        std::count_if(found.begin(), found.end(), [](Micros at) { return at != -1; });
    const auto keys = static_cast<std::int64_t>(shared::Table<Explored>(view, kSpectator).Keys());
    if (std::abs(keys - known) > c.kills) {
      return "there are " + std::to_string(known) + " ids, not " + std::to_string(keys);
    }
    return "";
  };
  return Explore(scenario);
}

}  // namespace rollgate::testing
