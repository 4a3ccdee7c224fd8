// What the model must find: a table with a weaker memory order. (test/mutants.txt has those that
// lack a step.)
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <ostream>
#include <string>
#include <vector>

#include "shared/explorer.h"
#include "shared/layout.h"
#include "shared/model.h"
#include "shared/table.h"

namespace rollgate::testing {
namespace {

using shared::Word;

enum class Access { kLoad, kStore, kSwap };

/// What a word is for.
enum class Part {
  kOther,
  kAny,
  kIntent,  ///< `target`, `next` and `expected` of an entry
  kExpected,
  kInsertion,
  kSlot,
  kOrigin,
  kIdLow,
  kIdHigh,
  kExpires,
  kState,
};

bool IsOf(Part part, const Word& word) {
  if (part == Part::kAny) return true;
  if (const int field = EntryField(&word); field >= 0) {
    return part == Part::kIntent ? field >= kTarget && field <= kExpected
                                 : part == Part::kExpected && field == kExpected;
  }
  if (const int field = BucketField(&word); field >= 0) {
    return part == (field == 0 ? Part::kInsertion : Part::kSlot);
  }
  const int field = std::min<int>(RecordField(&word), shared::kState);
  return field >= 0 && static_cast<int>(part) == static_cast<int>(Part::kOrigin) + field;
}

struct Weakening {
  std::string name;
  Access access;
  Part part;
  std::memory_order order;
  std::string found_by;  ///< a case
};

void PrintTo(const Weakening& weakening, std::ostream* out) {
  *out << weakening.name;
}

/// The table's orders but for one.
struct Weakened : TableAccess {
  static inline const Weakening* weakening = nullptr;

  static std::memory_order Order(Access access, const Word& word, std::memory_order order) {
    const bool is_it = weakening->access == access && IsOf(weakening->part, word);
    return is_it ? weakening->order : order;
  }
  static std::uint64_t Load(const Word& word) {
    return Explored::Load(word, Order(Access::kLoad, word, Hardware::kLoad));
  }
  static void Store(Word& word, std::uint64_t value) {
    Explored::Store(word, value, Order(Access::kStore, word, Hardware::kStore));
  }
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    return Explored::CompareExchange(word, expected, desired,
                                     Order(Access::kSwap, word, Hardware::kSwap),
                                     Hardware::kFailedSwap);
  }
};

std::vector<Weakening> Weakenings() {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  constexpr auto kAcquire = std::memory_order_acquire;
  const std::string known = "TwoAttemptAKnownId";
  const std::string inserted = "TwoInsertAnId";
  const std::string helped = "TwoInsertAnIdThatOneSlotIsLeftFor";
  const std::string recovered =
      "AnInsertionIsFinishedAndItsRecordUsedAgainBeforeItsOwnerIsRecovered";
  const std::string read = "AnIdIsReadWhileItsRecordIsUsedAgain";
  const std::string cleared = "AllIsClearedWhileARecordIsUsedAgain";
  const std::string other_id = "AnIdIsReadWhileItsRecordIsUsedForAnotherId";
  const std::string like_id = "AnIdIsReadWhileItsRecordIsUsedForAnAlmostEqualId";
  return {
      {"LoadsOfAnything", Access::kLoad, Part::kAny, kRelaxed, known},
      {"StoresOfAnything", Access::kStore, Part::kAny, kRelaxed, read},
      {"SwapsOfAnything", Access::kSwap, Part::kAny, kAcquire, known},
      {"SwapsOfSlots", Access::kSwap, Part::kSlot, kAcquire, known},
      {"LoadsOfSlots", Access::kLoad, Part::kSlot, kRelaxed, known},
      {"SwapsOfInsertions", Access::kSwap, Part::kInsertion, kAcquire, inserted},
      {"LoadsOfInsertions", Access::kLoad, Part::kInsertion, kRelaxed, inserted},
      {"StoresOfIntents", Access::kStore, Part::kIntent, kRelaxed, helped},
      {"LoadsOfIntents", Access::kLoad, Part::kIntent, kRelaxed, helped},
      {"StoresOfExpected", Access::kStore, Part::kExpected, kRelaxed, recovered},
      {"LoadsOfExpected", Access::kLoad, Part::kExpected, kRelaxed, recovered},
      {"StoresOfOrigins", Access::kStore, Part::kOrigin, kRelaxed, cleared},
      {"LoadsOfOrigins", Access::kLoad, Part::kOrigin, kRelaxed, cleared},
      {"StoresOfTheLowHalfOfIds", Access::kStore, Part::kIdLow, kRelaxed, other_id},
      {"LoadsOfTheLowHalfOfIds", Access::kLoad, Part::kIdLow, kRelaxed, other_id},
      {"StoresOfTheHighHalfOfIds", Access::kStore, Part::kIdHigh, kRelaxed, like_id},
      {"LoadsOfTheHighHalfOfIds", Access::kLoad, Part::kIdHigh, kRelaxed, like_id},
      {"StoresOfStates", Access::kStore, Part::kState, kRelaxed, read},
      {"LoadsOfStates", Access::kLoad, Part::kState, kRelaxed, read},
  };
}

class BrokenModelOrders : public ::testing::TestWithParam<Weakening> {};

TEST_P(BrokenModelOrders, AreNeeded) {
  Case c = CaseNamed(GetParam().found_by);
  c.memory = MemoryModel::kWeak;
  Weakened::weakening = &GetParam();
  const Exploration exploration = RunCase<Weakened>(c);
  EXPECT_FALSE(exploration.ok()) << "no longer needed";
}

INSTANTIATE_TEST_SUITE_P(, BrokenModelOrders, ::testing::ValuesIn(Weakenings()),
                         [](const auto& info) { return info.param.name; });

// The argument that weak memory contains all that ARMv8 can do.
static_assert(shared::Hardware::kLoad == std::memory_order_acquire &&
                  shared::Hardware::kFailedSwap == std::memory_order_acquire,
              "nothing that follows a read may take effect before it");
static_assert(shared::Hardware::kStore == std::memory_order_release &&
                  shared::Hardware::kSwap == std::memory_order_acq_rel,
              "no store may take effect before what precedes it");

}  // namespace
}  // namespace rollgate::testing
