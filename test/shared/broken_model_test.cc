// What the model must find: a table whose steps are not all done.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shared/explorer.h"
#include "shared/model.h"
#include "shared/model_run.h"
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

}  // namespace
}  // namespace rollgate::testing
