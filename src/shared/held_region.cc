// Makes regions of slots, attaches to them, and looks who is still attached.
#include "shared/held_region.h"

#include <algorithm>
#include <bit>

#include "shared/configuration.h"

namespace rollgate::shared {
namespace {

/// More is for many processes that hold one id together.
constexpr std::uint32_t kLeastRoom = 16;
constexpr std::uint32_t kMostRoom = 128;

/// With the least room; about 20 MB. With more room there are fewer.
constexpr std::size_t kMostKeys = 50'000;

RegionOptions RegionFor(const HeldRegionOptions& options) {
  const std::uint32_t usual = std::clamp(std::bit_ceil(options.max), kLeastRoom, kMostRoom);
  const std::uint32_t room = options.room == 0 ? usual : options.room;
  const std::size_t keys = kMostKeys * kLeastRoom / std::max(room, kLeastRoom);
  return {.directory = options.directory,
          .name = options.name,
          .max_keys = options.max_keys == 0 ? std::max<std::size_t>(keys, 1) : options.max_keys,
          .record_words = Geometry::RecordWordsFor(HeldList::WordsFor(room)),
          .configuration = ConfigurationOfSlots(options.clock, options.room, room)};
}

}  // namespace

bool Holders::IsHeld(std::size_t entry) {
  if (held_in_[entry] == looks_) return true;
  if (!region_.IsHeldByAnother(entry)) return false;
  held_in_[entry] = looks_;
  return true;
}

HeldRegion::HeldRegion(const HeldRegionOptions& options)
    : region_(Region::Attach(RegionFor(options))),
      holders_(region_),
      table_(region_.view(), region_.entry(), RoomOfSlots(region_.configuration()), holders_) {}

void HeldRegion::TakeEntryAgain() {
  region_.TakeEntryAgain();
  table_.UseEntry(region_.entry());
}

}  // namespace rollgate::shared
