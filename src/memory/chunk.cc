// Placing ids in a chunk and taking them out again.
#include "memory/chunk.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

namespace rollgate::memory {
namespace {

constexpr std::align_val_t kAlignment{128};

}  // namespace

void Chunk::AlignedDelete::operator()(std::byte* bytes) const {
  ::operator delete[](bytes, kAlignment);
}

Chunk::Chunk(const SlotLayout& layout, std::uint32_t group_count) : group_count_(group_count) {
  groups_.reset(static_cast<std::byte*>(::operator new[](bytes(layout), kAlignment)));
  earliest_ = reinterpret_cast<Micros*>(groups_.get() + group_count * layout.group_bytes);
  for (std::uint32_t group = 0; group < group_count; ++group) {
    GroupHeader* header = new (Header(layout, group)) GroupHeader{};
    header->moment.fill(kNever);
    earliest_[group] = kNever;
  }
}

Place Chunk::Insert(const SlotLayout& layout, Tag tag, std::uint32_t home, Micros moment) {
  assert(live_ < slot_count());
  std::uint32_t group = HomeGroup(home);
  GroupHeader* header = Header(layout, group);
  std::uint32_t free = header->Free();
  while (free == 0) {
    if (header->passed < GroupHeader::kManyPassed) ++header->passed;
    group = Next(group);
    header = Header(layout, group);
    free = header->Free();
  }
  auto index = static_cast<std::uint32_t>(std::countr_zero(free));
  for (const std::uint32_t choice : {SecondChoice(tag), FirstChoice(tag)}) {
    if ((free >> choice & 1) != 0) index = choice;
  }
  header->tags[index] = tag;
  header->moment[index] = moment;
  if (moment < earliest_[group]) {
    header->nearest = static_cast<std::uint8_t>(index);
    earliest_[group] = moment;
  }
  ++live_;
  return {this, header, SlotAt(layout, header, index), group, index, false};
}

void Chunk::Erase(const SlotLayout& layout, const Place& place, std::uint32_t home) {
  for (std::uint32_t group = HomeGroup(home); group != place.group; group = Next(group)) {
    GroupHeader* header = Header(layout, group);
    if (header->passed < GroupHeader::kManyPassed) --header->passed;
  }
  place.header->tags[place.index] = 0;
  place.header->moment[place.index] = kNever;
  if (place.index == place.header->nearest) {
    earliest_[place.group] = place.header->FindNearest();
  }
  --live_;
}

Micros Chunk::Earliest() const {
  return *std::min_element(earliest_, earliest_ + group_count_);
}

Place Chunk::Nearest(const SlotLayout& layout) {
  assert(live_ > 0);
  const auto group =
      static_cast<std::uint32_t>(std::min_element(earliest_, earliest_ + group_count_) - earliest_);
  GroupHeader* header = Header(layout, group);
  return {this, header, SlotAt(layout, header, header->nearest), group, header->nearest, false};
}

}  // namespace rollgate::memory
