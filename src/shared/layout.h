// The layout of a shared region: Header | entries | buckets | records.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "core/alignment.h"

namespace rollgate::shared {

/// All that several processes access consists of these.
using rollgate::Hardware;
using rollgate::Word;

static_assert(sizeof(Word) == 8 && Word::is_always_lock_free,
              "a lock would not be shared between processes");

inline void RaiseTo(Word& word, std::uint64_t least) {
  std::uint64_t value = word.load();
  while (value < least && !word.compare_exchange_weak(value, least)) {
  }
}

inline constexpr std::uint64_t kMagic = 0x657461676c6c6f72;  // "rollgate"
inline constexpr std::uint64_t kVersion = 4;                 ///< of the meaning of words
inline constexpr std::size_t kLine = 64;

/// How many limiters, one per thread, can be attached at once.
inline constexpr std::size_t kEntries = 1024;

inline constexpr std::size_t kSlotsPerBucket = 15;

inline constexpr std::size_t kConfigurationWords = 1015;

/// The start of a host: clocks of different starts do not compare.
using Boot = std::array<std::uint64_t, 2>;

/// Constant in a region, but for the words from `era` on. Every version has the first
/// four at these offsets, to recognise regions from before the host's last start.
struct Header {
  std::uint64_t magic;
  std::uint64_t version;
  std::uint64_t bytes;                  ///< size of the region
  Boot boot;                            ///< of the host that created it
  std::array<std::uint64_t, 6> secret;  ///< see Secret
  std::uint64_t max_keys;
  std::uint64_t buckets;
  std::uint64_t record_words;
  std::uint64_t configuration_words;
  std::array<std::uint64_t, kConfigurationWords> configuration;  ///< see configuration.h

  alignas(2 * kLine) Word era;  ///< how many times all ids were forgotten
  Word forgotten;               ///< see ForgottenUntil
  Word entries_used;            ///< all entries ever taken are before this one
  Word log_capacity;            ///< the most actions that a log of any limiter here needs
  Word retention;               ///< how long after its moment an id affects any limiter here
  Word blocked_until;           ///< no id is blocked by a call for longer: since kLongAgo, or 0
  AlignmentWords alignment;     ///< of aligned windows to the wall clock's
};

/// What one attached limiter is doing, so that another can finish it. Only its owner writes.
struct alignas(kLine) Entry {
  Word spare;     ///< the last control word of its spare record
  Word target;    ///< the slot that it is about to swap
  Word next;      ///< to this
  Word expected;  ///< from this
  Word bucket;    ///< where it announces an insertion
  Word keys;      ///< see Attachment::CountKeys
  Word taken;     ///< how many times a holder of slots took it, see Holder
};

/// The slots of ids whose hash begins here, in two cache lines that processors like to fetch
/// together. The control word in a slot names its record.
struct alignas(2 * kLine) Bucket {
  Word insertion;  ///< which entry is inserting, see Attachment
  std::array<Word, kSlotsPerBucket> slots;
};

/// The words of a record; those of the id's state begin at kState.
enum RecordWord : std::size_t { kOrigin, kIdLow, kIdHigh, kExpires, kState };

static_assert(sizeof(Entry) == kLine && sizeof(Bucket) == 2 * kLine,
              "no two owners may write to one cache line");
static_assert(offsetof(Header, magic) == 0 && offsetof(Header, version) == 8 &&
                  offsetof(Header, bytes) == 16 && offsetof(Header, boot) == 24,
              "every version has these here");
static_assert(offsetof(Header, era) % (2 * kLine) == 0,
              "what is written later shares no line with the rest");
static_assert(std::is_standard_layout_v<Header> && std::is_standard_layout_v<Entry> &&
              std::is_standard_layout_v<Bucket>);

/// The offsets in a region with so many buckets and records of so many words.
class Geometry {
 public:
  Geometry() = default;
  Geometry(std::uint64_t buckets, std::uint64_t record_words)
      : buckets_(buckets), record_words_(record_words) {}

  /// Buckets for `max_keys` at a load of 0.75; of a hundred thousand ids that come and go, three
  /// then find both of their buckets full. One bucket is used up to `max_keys` exactly.
  static std::uint64_t BucketsFor(std::uint64_t max_keys) {
    if (max_keys <= kSlotsPerBucket) return 1;
    return (max_keys + max_keys / 3 + kSlotsPerBucket - 1) / kSlotsPerBucket;
  }

  /// How many ids fit into so many bytes.
  static std::uint64_t KeysIn(std::uint64_t bytes, std::uint64_t record_words) {
    const std::uint64_t record = record_words * sizeof(Word);
    const std::uint64_t fixed = Geometry(0, record_words).bytes();
    const std::uint64_t buckets =
        (bytes - std::min(bytes, fixed)) / (sizeof(Bucket) + kSlotsPerBucket * record);
    return buckets <= 1 ? buckets * kSlotsPerBucket : buckets * kSlotsPerBucket / 4 * 3;
  }

  /// Whole cache lines for small records; larger ones share a line only at their ends.
  static std::uint64_t RecordWordsFor(std::size_t state_words) {
    assert(state_words >= 1);
    const std::uint64_t words = kState + state_words;
    const std::uint64_t unit = words <= 8 ? 8 : 4;
    return (words + unit - 1) / unit * unit;
  }

  std::uint64_t buckets() const { return buckets_; }
  std::uint64_t record_words() const { return record_words_; }
  std::uint64_t slots() const { return buckets_ * kSlotsPerBucket; }
  std::uint64_t records() const { return slots() + kEntries; }

  std::size_t entries_at() const { return sizeof(Header); }
  std::size_t buckets_at() const { return entries_at() + kEntries * sizeof(Entry); }
  std::size_t records_at() const { return buckets_at() + buckets_ * sizeof(Bucket); }
  std::size_t bytes() const { return records_at() + records() * record_words_ * sizeof(Word); }

 private:
  std::uint64_t buckets_ = 0;
  std::uint64_t record_words_ = 0;
};

/// The geometry of so many buckets and of records of so many words, if it is possible.
inline std::optional<Geometry> PossibleGeometry(std::uint64_t buckets, std::uint64_t record_words) {
  // Leaves 28 bits or more of control words for versions.
  constexpr std::uint64_t kMostRecords = std::uint64_t{1} << 28;
  // Keeps products in bounds; the largest log has fewer.
  constexpr std::uint64_t kMostRecordWords = std::uint64_t{1} << 22;
  if (buckets < 1 || buckets > kMostRecords) return std::nullopt;
  if (record_words <= kState || record_words > kMostRecordWords) return std::nullopt;
  const Geometry geometry(buckets, record_words);
  if (geometry.records() > kMostRecords) return std::nullopt;
  constexpr std::uint64_t kMostBytes = std::numeric_limits<std::ptrdiff_t>::max();
  if (geometry.records() > kMostBytes / 2 / sizeof(Word) / record_words) return std::nullopt;
  return geometry;
}

/// The parts of a region in this process.
struct View {
  Header* header = nullptr;
  Entry* entries = nullptr;
  Bucket* buckets = nullptr;
  Word* records = nullptr;
  Geometry geometry;
};

static_assert(sizeof(Header) % (2 * kLine) == 0 && kEntries % 2 == 0, "buckets begin at a line");

/// A control word: the record, a part of the id's hash (0: no id), and how many times the record
/// was in a slot before. So no control word occurs twice, until the last number overflows.
class Controls {
 public:
  explicit Controls(std::uint64_t records)
      : record_bits_(static_cast<int>(std::bit_width(records - 1))) {
    assert(records >= 2 && record_bits_ < 56);
  }
  Controls() = default;

  static constexpr std::uint64_t kTags = 256;

  std::uint64_t Make(std::uint64_t record, std::uint64_t tag, std::uint64_t version) const {
    assert(tag < kTags && Record(record) == record);
    return (version << 8 | tag) << record_bits_ | record;
  }
  std::uint64_t Record(std::uint64_t control) const {
    return control & ((std::uint64_t{1} << record_bits_) - 1);
  }
  std::uint64_t Tag(std::uint64_t control) const { return control >> record_bits_ & 0xff; }
  std::uint64_t Version(std::uint64_t control) const { return control >> record_bits_ >> 8; }

  /// The control word after `last` of the same record.
  std::uint64_t After(std::uint64_t last, std::uint64_t tag) const {
    return Make(Record(last), tag, Version(last) + 1);
  }

 private:
  int record_bits_ = 0;
};

}  // namespace rollgate::shared
