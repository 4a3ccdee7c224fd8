// The bytes of an id's state in a key-value store, little-endian:
//
// version, algorithm, flags, width of a stamp (a byte each) | generation, ignored, 0
// (four bytes each) | moment (eight bytes) | body | block, if a flag says so. The body of a log is
// its older actions, oldest first, as the low bytes of their moments, or if a flag says so the
// words of weighted entries, whose width is the number of windows. That of another algorithm is its
// Account's state, with GCRA followed by the windows that it is of.
//
// A block without offences is one by a call. If there is also one of blockFor, the end of that by a
// call follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/block.h"
#include "core/decision.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate {

/// A parsed state; `body` points into the parsed bytes.
struct PortableState {
  static constexpr std::uint8_t kVersion = 1;
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
  bool Read(std::span<const std::byte> bytes);
  void Write(std::vector<std::byte>& out);

  static constexpr std::size_t kMostBlockBytes = Block::kBytes + sizeof(Micros);
};

}  // namespace rollgate
