// The bytes of an id's state in a key-value store, little-endian:
//
// version, algorithm, flags, width of a stamp (a byte each) | generation, ignored, 0
// (four bytes each) | moment (eight bytes) | body | block, if a flag says so. The body of a log is
// its older actions, oldest first, as the low bytes of their moments, or if a flag says so the
// words of weighted entries, whose width is the number of windows. That of another algorithm is its
// Account's state; with GCRA and calendar windows, the version is 2.
//
// A block without offences is one by a call. If there is also one of blockFor, the end of that by a
// call follows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/algorithms.h"
#include "core/bytes.h"
#include "core/decision.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate {

static_assert(std::endian::native == std::endian::little, "states are little-endian");

/// A parsed state; `body` points into the parsed bytes.
struct PortableState {
  static constexpr std::uint8_t kVersion = 1;
  /// Of states that the releases before must not take for their own: see StateBody.
  static constexpr std::uint8_t kStatesOfTheirOwn = 2;
  static constexpr std::uint8_t kHasBlock = 1;
  static constexpr std::uint8_t kDisplaced = 2;
  static constexpr std::uint8_t kWeighted = 4;
  static constexpr std::uint8_t kHasTwoBlocks = 8;

  struct Header {
    std::uint8_t version = kVersion;
    std::uint8_t algorithm = 0;
    std::uint8_t flags = 0;
    std::uint8_t width = 0;
    Generation generation = 0;
    std::uint32_t unused = 0;
    std::uint32_t reserved = 0;
    Micros moment = kLongAgo;
  };
  static_assert(sizeof(Header) == 24 && std::is_trivially_copyable_v<Header>);
  static_assert(offsetof(Header, generation) == 4 && offsetof(Header, moment) == 16);

  Header header;
  std::span<const std::byte> body;
  Block block;                        ///< of blockFor
  Micros blocked_by_call = kLongAgo;  ///< until then
  bool keeps_block = false;           ///< whether there are bytes for a block that is none

  bool displaced() const { return (header.flags & kDisplaced) != 0; }
  bool weighted() const { return (header.flags & kWeighted) != 0; }

  /// Returns false if the bytes are not a state.
  bool Read(std::span<const std::byte> bytes) {
    if (bytes.size() < sizeof header) return false;
    header = LoadAs<Header>(bytes.data());
    if (header.version < kVersion || header.version > kStatesOfTheirOwn || header.reserved != 0 ||
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

  void Write(std::vector<std::byte>& out) {
    assert(header.version <= kStatesOfTheirOwn && header.reserved == 0);
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

  static constexpr std::size_t kMostBlockBytes = Block::kBytes + sizeof(Micros);
};

}  // namespace rollgate
