#include "core/portable_state.h"

#include <algorithm>
#include <bit>

#include "core/algorithms.h"
#include "core/bytes.h"

namespace rollgate {

static_assert(std::endian::native == std::endian::little, "states are little-endian");

bool PortableState::Read(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof header) return false;
  header = LoadAs<Header>(bytes.data());
  if (header.version != kVersion || header.reserved != 0 ||
      header.algorithm >= static_cast<std::uint8_t>(Algorithm::kEnd) ||
      (header.flags & ~(kHasBlock | kDisplaced | kWeighted)) != 0) {
    return false;
  }
  body = bytes.subspan(sizeof header);
  if ((header.flags & kHasBlock) != 0) {
    if (body.size() < Block::kBytes) return false;
    block = Block::Load(&body[body.size() - Block::kBytes]);
    block.until = std::clamp(block.until, kLongAgo, kLongest);
    body = body.first(body.size() - Block::kBytes);
  }
  return true;
}

void PortableState::Write(std::vector<std::byte>& out) const {
  const bool has_block = (header.flags & kHasBlock) != 0;
  assert(header.version == kVersion && header.reserved == 0);
  out.resize(sizeof header + body.size() + (has_block ? Block::kBytes : 0));
  StoreAs(out.data(), header);
  std::copy(body.begin(), body.end(), out.begin() + sizeof header);
  if (has_block) block.Store(&out[sizeof header + body.size()]);
}

}  // namespace rollgate
