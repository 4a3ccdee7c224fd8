// What the model must find: a table whose steps are not all done, or with a weaker memory order.
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

using shared::Entry;
using shared::Word;

/// Never stores one of the words of an entry.
template <int field>
struct WithoutEntry : TableAccess {
  static void Store(Word& word, std::uint64_t value) {
    if (EntryField(&word) != field) TableAccess::Store(word, value);
  }
};

/// Says that it is about to swap before it says what.
struct ExpectedFirst : TableAccess {
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
        TableAccess::Store(word, value);
        TableAccess::Store(entries[entry].target, target);
        TableAccess::Store(entries[entry].next, next);
        return;
      default:
        TableAccess::Store(word, value);
    }
  }
};

/// Records all say that the first entry wrote them.
struct WithoutWriter : TableAccess {
  static void Store(Word& word, std::uint64_t value) {
    const bool is_origin = RecordField(&word) == shared::kOrigin;
    TableAccess::Store(word, is_origin ? (value & ~std::uint64_t{0xffff}) | 1 : value);
  }
};

struct NotAtomic : TableAccess {
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    if (TableAccess::Load(word) != expected) return false;
    TableAccess::Store(word, desired);
    return true;
  }
};

/// Announces an insertion whatever has been announced since.
struct InsertsAnyway : TableAccess {
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    if (BucketField(&word) == 0 && (desired >> 16 & 1) != 0) {
      expected = TableAccess::Load(word);
      if ((expected >> 16 & 1) != 0) return false;
    }
    return TableAccess::CompareExchange(word, expected, desired);
  }
};

/// A record's control word is always the same.
struct WithoutVersions : TableAccess {
  static constexpr bool kFromTheStart = true;
  static std::uint64_t WithoutVersion(std::uint64_t control) {
    const shared::Controls controls(explored_region->view().geometry.records());
    return controls.Make(controls.Record(control), controls.Tag(control), 0);
  }
  static void Store(Word& word, std::uint64_t value) {
    TableAccess::Store(word, EntryField(&word) == kNext ? WithoutVersion(value) : value);
  }
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    if (BucketField(&word) > 0) desired = WithoutVersion(desired);
    return TableAccess::CompareExchange(word, expected, desired);
  }
};

/// Never says until when it has forgotten an id.
struct WithoutForgotten : TableAccess {
  static bool CompareExchange(Word& word, std::uint64_t expected, std::uint64_t desired) {
    if (&word == &explored_region->view().header->forgotten) return true;
    return TableAccess::CompareExchange(word, expected, desired);
  }
};

/// Reads records without looking whether they were still in their slot in the end.
struct WithoutAnotherLook : TableAccess {
  static std::uint64_t Load(const Word& word) {
    const bool looks_again = has_read && slot == &word;
    has_read = RecordField(&word) >= 0;
    if (looks_again) return control;
    const std::uint64_t value = TableAccess::Load(word);
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
  const Exploration exploration = RunCase<Access>(c);
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
