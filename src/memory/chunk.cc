// Inserts and erases ids, and finds the one nearest to expiry.
#include "memory/chunk.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>

namespace rollgate::memory {
namespace {

constexpr std::align_val_t kAlignment{kLine};

}  // namespace

void Chunk::AlignedDelete::operator()(std::byte* bytes) const {
  ::operator delete[](bytes, kAlignment);
}

Chunk::Chunk(const SlotLayout& layout, std::uint32_t group_count)
    : group_count_(static_cast<std::uint16_t>(group_count)) {
  assert(group_count >= 1);
  if (group_count > std::numeric_limits<std::uint16_t>::max()) throw std::bad_alloc();
  bytes_.reset(static_cast<std::byte*>(::operator new[](bytes(layout), kAlignment)));
  for (std::uint32_t group = 0; group < group_count; ++group) {
    new (&Header(group)) GroupHeader{};
    new (&bounds()[group]) Micros{kNever};
  }
}

Place Chunk::Insert(const SlotLayout& layout, Tag tag, std::uint32_t home, Micros moment) {
  assert(live_ < slot_count() && tag != 0);
  std::uint32_t group = HomeGroup(home);
  std::uint32_t free = Header(group).Free();
  while (free == 0) {
    std::uint8_t& passed = Header(group).passed;
    if (passed < GroupHeader::kManyPassed) ++passed;
    group = Next(group);
    free = Header(group).Free();
  }
  const std::uint32_t first = FirstChoice(tag);
  const std::uint32_t from_first = free >> first << first;
  const auto index =
      static_cast<std::uint32_t>(std::countr_zero(from_first != 0 ? from_first : free));
  const Place place = {this, SlotAt(layout, group, index), group, index, false};
  Header(group).tags[index] = tag;
  place.slot->set_moment(moment);
  LowerBound(place, moment);
  ++live_;
  return place;
}

void Chunk::Erase(const Place& place, std::uint32_t home) {
  assert(live_ > 0 && place.chunk == this && Header(place.group).tags[place.index] != 0);
  for (std::uint32_t group = HomeGroup(home); group != place.group; group = Next(group)) {
    std::uint8_t& passed = Header(group).passed;
    assert(passed > 0);
    if (passed < GroupHeader::kManyPassed) --passed;
  }
  Header(place.group).tags[place.index] = 0;
  --live_;
}

Micros Chunk::FindEarliest() {
  // In four lanes: each minimum depends on the one before.
  constexpr std::uint32_t kLanes = 4;
  const Micros* const moments = bounds();
  std::array<Micros, kLanes> least;
  least.fill(kNever);
  std::uint32_t i = 0;
  for (; i + kLanes <= group_count_; i += kLanes) {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      least[lane] = std::min(least[lane], moments[i + lane]);
    }
  }
  for (; i < group_count_; ++i) least[0] = std::min(least[0], moments[i]);
  const Micros earliest = *std::min_element(least.begin(), least.end());
  earliest_ =
      static_cast<std::uint32_t>(std::find(moments, moments + group_count_, earliest) - moments);
  return earliest;
}

Place Chunk::NearestOf(const SlotLayout& layout, std::uint32_t group) {
  const std::uint8_t index = Header(group).nearest;
  if (Header(group).tags[index] == 0) return {};
  Slot* const slot = SlotAt(layout, group, index);
  if (slot->moment() != bounds()[group]) return {};
  return {this, slot, group, index, false};
}

Micros Chunk::FindNearest(const SlotLayout& layout, std::uint32_t group) {
  std::uint32_t nearest = 0;
  Micros earliest = kNever;
  for (std::uint32_t taken = Header(group).Taken(); taken != 0; taken &= taken - 1) {
    const auto index = static_cast<std::uint32_t>(std::countr_zero(taken));
    const Micros moment = SlotAt(layout, group, index)->moment();
    const bool is_earlier = moment < earliest;
    earliest = is_earlier ? moment : earliest;
    nearest = is_earlier ? index : nearest;
  }
  Header(group).nearest = static_cast<std::uint8_t>(nearest);
  assert(earliest >= bounds()[group]);
  return earliest;
}

}  // namespace rollgate::memory
