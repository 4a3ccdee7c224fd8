#include "core/portable_state.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/algorithms.h"
#include "core/bytes.h"

namespace rollgate {

static_assert(std::endian::native == std::endian::little, "states are little-endian");

bool PortableState::Read(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof header) return false;
  header = LoadAs<Header>(bytes.data());
  if (header.version != kVersion || header.reserved != 0 ||
      header.algorithm >= static_cast<std::uint8_t>(Algorithm::kEnd) ||
      (header.flags & ~(kHasBlock | kDisplaced | kWeighted | kHasTwoBlocks)) != 0) {
    return false;
  }
  body = bytes.subspan(sizeof header);
  const auto moment = [](Micros stored) { return std::clamp(stored, kLongAgo, kLongest); };
  if ((header.flags & kHasTwoBlocks) != 0) {
    if (body.size() < sizeof(Micros)) return false;
    blocked_by_call = moment(LoadAs<Micros>(&body[body.size() - sizeof(Micros)]));
    body = body.first(body.size() - sizeof(Micros));
  }
  if ((header.flags & kHasBlock) != 0) {
    if (body.size() < Block::kBytes) return false;
    block = Block::Load(&body[body.size() - Block::kBytes]);
    block.until = moment(block.until);
    body = body.first(body.size() - Block::kBytes);
    if (block.offences == 0) blocked_by_call = std::exchange(block.until, kLongAgo);
  }
  return true;
}

void PortableState::Write(std::vector<std::byte>& out) {
  assert(header.version == kVersion && header.reserved == 0);
  assert(block.offences > 0 || block.until == kLongAgo);
  const bool is_by_call = blocked_by_call != kLongAgo;
  const bool has_two = is_by_call && block.offences > 0;
  const bool has_block = is_by_call || block.offences > 0 || keeps_block;
  header.flags =
      static_cast<std::uint8_t>((header.flags & (kDisplaced | kWeighted)) |
                                (has_block ? kHasBlock : 0) | (has_two ? kHasTwoBlocks : 0));
  const std::size_t block_at = sizeof header + body.size();
  out.resize(block_at + (has_block ? Block::kBytes : 0) + (has_two ? sizeof(Micros) : 0));
  StoreAs(out.data(), header);
  std::copy(body.begin(), body.end(), out.begin() + sizeof header);
  if (has_block) (is_by_call && !has_two ? Block{blocked_by_call} : block).Store(&out[block_at]);
  if (has_two) StoreAs(&out[block_at + Block::kBytes], blocked_by_call);
}

}  // namespace rollgate
