// The bytes of a shared region: what is where, and nothing of how it is used.
//
// Header | configuration | entries | buckets | records
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rollgate::shared {

/// Everything that several processes look at is made of such words.
using Word = std::atomic<std::uint64_t>;

static_assert(sizeof(Word) == 8 && Word::is_always_lock_free,
              "words are shared between processes, so their locks would have to be, too");

inline constexpr std::uint64_t kMagic = 0x657461676c6c6f72;  // "rollgate"
inline constexpr std::uint64_t kVersion = 2;  ///< changes with what the words of a region mean
inline constexpr std::size_t kLine = 64;

/// How many limiters (threads that hold one) can be attached at once.
inline constexpr std::size_t kEntries = 1024;

inline constexpr std::size_t kSlotsPerBucket = 15;

/// The longest configuration.
inline constexpr std::size_t kConfigurationWords = 1015;

/// Written once, before anybody can see the region, but for `era`, `forgotten` and
/// `entries_used`. The first four stay where they are in every version: by these a region is known,
/// and one from before the host's last start that nobody holds is removed.
struct Header {
  std::uint64_t magic;
  std::uint64_t version;
  std::uint64_t bytes;                  ///< of the whole region
  std::array<std::uint64_t, 2> boot;    ///< which start of the host made it
  std::array<std::uint64_t, 6> secret;  ///< see Secret
  std::int64_t epoch_offset;
  std::uint64_t max_keys;
  std::uint64_t buckets;
  std::uint64_t record_words;
  std::uint64_t configuration_words;
  std::array<std::uint64_t, kConfigurationWords> configuration;  ///< see configuration.h

  alignas(2 * kLine) Word era;  ///< how many times everything was forgotten
  Word forgotten;               ///< see Table
  Word entries_used;            ///< no entry from here on was ever taken
};

/// What one attached limiter is doing: everything that is needed to tidy up behind it if it is
/// killed. Written by its owner alone.
struct alignas(kLine) Entry {
  Word spare;     ///< the control word that its spare record had when it was last in a slot
  Word target;    ///< the slot that it is about to change,
  Word next;      ///< to this,
  Word expected;  ///< from this
  Word bucket;    ///< where it has announced an insertion
  Word keys;      ///< see Table
};

/// The slots of the ids whose hash begins here, in two cache lines that processors like to read
/// together. A slot's control word names the record that belongs to it now.
struct alignas(2 * kLine) Bucket {
  Word insertion;  ///< which entry is inserting, see Table
  std::array<Word, kSlotsPerBucket> slots;
};

/// The first words of a record; the state of its id follows.
enum RecordWord : std::size_t { kOrigin, kIdLow, kIdHigh, kExpires, kState };

static_assert(sizeof(Entry) == kLine && sizeof(Bucket) == 2 * kLine,
              "no two owners may write to one cache line");

/// Where everything is in a region for so many ids with records of so many words.
class Geometry {
 public:
  Geometry() = default;
  Geometry(std::uint64_t buckets, std::uint64_t record_words)
      : buckets_(buckets), record_words_(record_words) {}

  /// Room for `max_keys` at a load of 0.75, at which of a hundred thousand ids that come and go
  /// three find both of their buckets full; exactly so many where one bucket is enough.
  static std::uint64_t BucketsFor(std::uint64_t max_keys) {
    if (max_keys <= kSlotsPerBucket) return 1;
    return (max_keys + max_keys / 3 + kSlotsPerBucket - 1) / kSlotsPerBucket;
  }

  /// How many ids fit into so many bytes; 0 if not even one does.
  static std::uint64_t KeysIn(std::uint64_t bytes, std::uint64_t record_words) {
    const std::uint64_t record = record_words * sizeof(Word);
    const std::uint64_t fixed = Geometry(0, record_words).bytes();
    const std::uint64_t buckets =
        (bytes - std::min(bytes, fixed)) / (sizeof(Bucket) + kSlotsPerBucket * record);
    return buckets <= 1 ? buckets * kSlotsPerBucket : buckets * kSlotsPerBucket / 4 * 3;
  }

  /// No two records share a cache line that is often written, and small ones fill theirs.
  static std::uint64_t RecordWordsFor(std::size_t state_words) {
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

static_assert(sizeof(Header) % (2 * kLine) == 0 && kEntries % 2 == 0, "buckets begin at a line");

/// A control word: the record, a part of the id's hash (0: no id), and how many times the record
/// was in a slot before. So no word ever comes again, for as long as the last number has bits.
class Controls {
 public:
  explicit Controls(std::uint64_t records)
      : record_bits_(static_cast<int>(std::bit_width(records - 1))) {}
  Controls() = default;

  static constexpr std::uint64_t kTags = 256;

  std::uint64_t Make(std::uint64_t record, std::uint64_t tag, std::uint64_t version) const {
    return (version << 8 | tag) << record_bits_ | record;
  }
  std::uint64_t Record(std::uint64_t control) const {
    return control & ((std::uint64_t{1} << record_bits_) - 1);
  }
  std::uint64_t Tag(std::uint64_t control) const { return control >> record_bits_ & 0xff; }
  std::uint64_t Version(std::uint64_t control) const { return control >> record_bits_ >> 8; }

  /// What a record's next control word is, given its last.
  std::uint64_t After(std::uint64_t last, std::uint64_t tag) const {
    return Make(Record(last), tag, Version(last) + 1);
  }

 private:
  int record_bits_ = 0;
};

}  // namespace rollgate::shared
