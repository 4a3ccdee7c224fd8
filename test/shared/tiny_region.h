// A region of a few ids in ordinary memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/identity.h"
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
      static const char* const kNames[] = {"spare", "target", "next", "expected", "bucket", "keys"};
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

}  // namespace rollgate::testing
