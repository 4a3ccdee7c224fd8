// What holds of a region in which nobody is at work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/identity.h"
#include "shared/layout.h"
#include "shared/table.h"

namespace rollgate::testing {

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

}  // namespace rollgate::testing
