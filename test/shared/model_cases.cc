// The cases of the model: known and new ids, evictions, clears, refunds and late callers.
#include "shared/model_cases.h"

#include <algorithm>
#include <stdexcept>

namespace rollgate::testing {
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
