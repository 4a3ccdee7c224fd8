// A region of a few ids in ordinary memory, the least store on it, and what must be true of any
// region.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "core/time.h"
#include "shared/layout.h"
#include "shared/table.h"

namespace rollgate::testing {

class TinyRegion {
 public:
  /// Each bucket uses its first `slots`.
  TinyRegion(std::uint64_t buckets, std::uint64_t slots, std::uint64_t record_words)
      : header_(std::make_unique<shared::Header>()),
        entries_(shared::kEntries),
        buckets_(buckets),
        geometry_(buckets, record_words),
        records_(geometry_.records() * record_words) {
    header_->secret = {0x9ae16a3b2f90404f, 0xc949d7c7509e6557, 0xff51afd7ed558ccd,
                       0xc4ceb9fe1a85ec53, 0x2545f4914f6cdd1d, 0xd6e8feb86659fd93};
    header_->max_keys = slots;
    header_->buckets = buckets;
    header_->record_words = record_words;
    const shared::Controls controls(geometry_.records());
    std::uint64_t record = 0;
    for (shared::Bucket& bucket : buckets_) {
      for (shared::Word& slot : bucket.slots) slot = controls.Make(record++, 0, 0);
    }
    for (shared::Entry& entry : entries_) {
      entry.spare = entry.expected = controls.Make(record++, 0, 0);
    }
  }

  shared::View view() {
    return {header_.get(), entries_.data(), buckets_.data(), records_.data(), geometry_};
  }

  /// For the list of steps.
  std::string NameOf(const shared::Word* word) const {
    if (word == &header_->era) return "era";
    if (word == &header_->forgotten) return "forgotten";
    if (word == &header_->entries_used) return "entries_used";
    const auto at = [word](const void* first) {
      return static_cast<std::size_t>(reinterpret_cast<const char*>(word) -
                                      static_cast<const char*>(first)) /
             sizeof(shared::Word);
    };
    constexpr std::size_t kEntryWords = sizeof(shared::Entry) / sizeof(shared::Word);
    if (const std::size_t i = at(entries_.data()); i < entries_.size() * kEntryWords) {
      static const char* const kNames[] = {"spare",  "target", "next",  "expected",
                                           "bucket", "keys",   "taken", "unused"};
      return "entry " + std::to_string(i / kEntryWords) + " " + kNames[i % kEntryWords];
    }
    constexpr std::size_t kBucketWords = sizeof(shared::Bucket) / sizeof(shared::Word);
    if (const std::size_t i = at(buckets_.data()); i < buckets_.size() * kBucketWords) {
      const std::string bucket = "bucket " + std::to_string(i / kBucketWords);
      const std::size_t word = i % kBucketWords;
      return bucket + (word == 0 ? " insertion" : " slot " + std::to_string(word - 1));
    }
    const std::size_t i = at(records_.data());
    return "record " + std::to_string(i / geometry_.record_words()) + " word " +
           std::to_string(i % geometry_.record_words());
  }

 private:
  std::unique_ptr<shared::Header> header_;
  std::vector<shared::Entry> entries_;
  std::vector<shared::Bucket> buckets_;
  shared::Geometry geometry_;
  std::vector<shared::Word> records_;
};

/// Where an id is looked for.
struct Homes {
  std::array<std::uint64_t, 2> buckets;
  std::uint64_t tag;
};

inline Homes HomesOf(const Identity& id, const shared::View& view) {
  Secret secret;
  for (std::size_t i = 0; i < secret.words.size(); ++i) secret.words[i] = view.header->secret[i];
  const std::uint64_t hash = HashOf(id, secret);
  const std::uint64_t buckets = view.geometry.buckets();
  const std::uint64_t first = (hash >> 32) * buckets >> 32;
  std::uint64_t second = (hash & 0xffffffff) * buckets >> 32;
  if (second == first) second = (first + 1) % buckets;
  return {{first, second}, (hash & 0xff) == 0 ? 1 : hash & 0xff};
}

/// What is wrong. Every entry in use has been recovered, or its owner has come to the end of a
/// call.
inline std::vector<std::string> Audit(const shared::View& view) {
  using namespace shared;
  std::vector<std::string> wrong;
  const Controls controls(view.geometry.records());
  // Slots, then entries.
  constexpr std::uint64_t kNobody = ~std::uint64_t{0};
  std::vector<std::uint64_t> owners(view.geometry.records(), kNobody);
  const auto name_of = [&](std::uint64_t owner) {
    if (owner >= view.geometry.slots()) {
      return "entry " + std::to_string(owner - view.geometry.slots());
    }
    return "slot " + std::to_string(owner % kSlotsPerBucket) + " of bucket " +
           std::to_string(owner / kSlotsPerBucket);
  };
  const auto own = [&](std::uint64_t control, std::uint64_t owner) {
    const std::uint64_t record = controls.Record(control);
    if (record >= owners.size()) {
      wrong.push_back(name_of(owner) + " has a record that there is not");
      return;
    }
    if (owners[record] != kNobody) {
      wrong.push_back("record " + std::to_string(record) + " is of " + name_of(owners[record]) +
                      " and of " + name_of(owner));
    }
    owners[record] = owner;
  };

  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint8_t>, std::string> ids;
  for (std::uint64_t b = 0; b < view.geometry.buckets(); ++b) {
    const Bucket& bucket = view.buckets[b];
    if ((bucket.insertion.load() >> 16 & 1) != 0) {
      wrong.push_back("bucket " + std::to_string(b) + " has a pending insertion");
    }
    for (std::uint64_t s = 0; s < kSlotsPerBucket; ++s) {
      const std::uint64_t control = bucket.slots[s].load();
      own(control, b * kSlotsPerBucket + s);
      if (controls.Tag(control) == 0) continue;
      const std::string slot = name_of(b * kSlotsPerBucket + s);
      if (s >= view.header->max_keys) wrong.push_back(slot + " is used");
      const Word* const record =
          view.records + controls.Record(control) * view.geometry.record_words();
      const std::uint64_t origin = record[kOrigin].load();
      const Identity id{record[kIdLow].load(), record[kIdHigh].load(),
                        static_cast<std::uint8_t>(origin >> 16)};
      const Homes homes = HomesOf(id, view);
      if (homes.tag != controls.Tag(control) || (homes.buckets[0] != b && homes.buckets[1] != b)) {
        wrong.push_back(slot + " has an id that is not looked for there");
      }
      const auto [found, added] = ids.try_emplace({id.low, id.high, id.kind}, slot);
      if (!added) wrong.push_back(slot + " and " + found->second + " have the same id");
      if ((origin & 0xffff) == 0 || (origin & 0xffff) > kEntries) {
        wrong.push_back(slot + " has a record that nobody wrote");
      }
    }
  }
  for (std::size_t e = 0; e < kEntries; ++e) {
    own(view.entries[e].spare.load(), view.geometry.slots() + e);
  }
  return wrong;
}

constexpr Micros kWindow = 100;
constexpr std::size_t kStateWords = 2;

/// A log of at most two actions: enough to tell whether one was lost, or is another id's.
struct Log {
  static constexpr Micros kNone = -1000;

  Micros older = kNone;
  Micros newest = kNone;

  /// The moment that was recorded, or -1.
  Micros Attempt(Micros now, int max) {
    const Micros at = std::max(now, newest);
    const Micros oldest = max == 1 ? newest : older;
    if (oldest > at - kWindow) return -1;
    older = newest;
    newest = at;
    return at;
  }
  bool Refund(Micros at) {
    if (newest == at && at != kNone) {
      newest = std::exchange(older, kNone);
      return true;
    }
    return older == at && at != kNone && (older = kNone, true);
  }
  bool is_empty() const { return newest == kNone; }
  Micros expires() const { return newest + kWindow; }
};

/// The result of a peek. It is -1 for an id that is not known.
inline Micros SummaryOf(const Log& log) {
  return log.newest * 10'000 + log.older;
}

struct Call {
  enum Kind { kAttempt, kRefund, kPeek, kClear, kClearAll };
  Kind kind;
  int id = 0;
  Micros now = 0;  ///< or the action that a refund takes back
};

inline Call Attempt(int id, Micros now) {
  return {Call::kAttempt, id, now};
}
inline Call Refund(int id, Micros at) {
  return {Call::kRefund, id, at};
}
inline Call Peek(int id) {
  return {Call::kPeek, id};
}
inline Call Clear(int id) {
  return {Call::kClear, id};
}
inline Call ClearAll() {
  return {Call::kClearAll};
}

using Calls = std::vector<Call>;

/// What a store makes of a table, in short.
template <class Access>
class Client {
 public:
  /// `ids` are the calls'. They outlive the client.
  Client(const std::vector<Identity>& ids, int max, const shared::View& view, std::size_t entry)
      : ids_(ids), max_(max), table_(view, entry) {}

  /// The moment that was recorded, or -1; whether there was anything; or the summary of the log.
  Micros Do(const Call& call) {
    const Identity& id = ids_[static_cast<std::size_t>(call.id)];
    switch (call.kind) {
      case Call::kAttempt:
        for (;;) {
          Micros at = call.now;
          if (table_.Find(id)) {
            Log log = Read(id);
            at = log.Attempt(call.now, max_);
            if (at == -1 || Replace(log, id)) return at;
          } else {
            using Insertion = typename shared::Table<Access>::Insertion;
            const Insertion insertion = table_.Insert(call.now, [&](Micros earliest) {
              Log log;
              at = log.Attempt(std::max(call.now, earliest), max_);
              Write(log, id);
              return shared::Saved{log.expires(), 2};
            });
            if (insertion != Insertion::kLost) return at;
          }
        }
      case Call::kRefund:
        for (;;) {
          if (!table_.Find(id)) return 0;
          Log log = Read(id);
          if (!log.Refund(call.now)) return 0;
          if (log.is_empty() ? table_.Remove() : Replace(log, id)) return 1;
        }
      case Call::kPeek: {
        if (!table_.Find(id)) return -1;
        const Log log = Read(id);
        return SummaryOf(log);
      }
      case Call::kClear:
        while (table_.Find(id)) {
          if (table_.Remove()) return 1;
        }
        return 0;
      case Call::kClearAll:
        table_.Clear();
        return 0;
    }
    return 0;
  }

 private:
  // Each word says whose it is.
  static std::uint64_t Encode(Micros moment, const Identity& id) {
    return id.low << kMomentBits | static_cast<std::uint64_t>(moment - Log::kNone);
  }
  static Micros Decode(std::uint64_t word, const Identity& id) {
    if (word >> kMomentBits != id.low) throw std::logic_error("a log is another id's");
    return static_cast<Micros>(word & ((std::uint64_t{1} << kMomentBits) - 1)) + Log::kNone;
  }

  Log Read(const Identity& id) {
    const std::uint64_t* state = table_.state();
    return {Decode(state[0], id), Decode(state[1], id)};
  }
  void Write(const Log& log, const Identity& id) {
    table_.state()[0] = Encode(log.older, id);
    table_.state()[1] = Encode(log.newest, id);
  }
  bool Replace(const Log& log, const Identity& id) {
    Write(log, id);
    return table_.Replace({log.expires(), 2});
  }

  static constexpr int kMomentBits = 40;

  const std::vector<Identity>& ids_;
  int max_;
  shared::Table<Access> table_;
};

}  // namespace rollgate::testing
