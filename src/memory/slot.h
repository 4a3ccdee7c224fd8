// The bytes of one id in the table: its identity and what leads to its older actions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/identity.h"

namespace rollgate::memory {

/// The fixed part of a slot; the log's payload follows it. The id's newest action is not here but
/// in the group's header, where the search for the id nearest to expiry wants it.
struct Slot {
  std::uint32_t identity_words[4];
  std::uint8_t identity_kind;
  std::uint8_t ring;  ///< LogStorage's: head and number of the stamps kept in the payload
  std::uint16_t incarnation : 15;  ///< tells this life of the id from its earlier ones
  std::uint16_t displaced : 1;     ///< LogHead::displaced

  bool Holds(const Identity& identity) const {
    std::uint64_t low;
    std::uint64_t high;
    std::memcpy(&low, &identity_words[0], sizeof low);
    std::memcpy(&high, &identity_words[2], sizeof high);
    return ((low ^ identity.low) | (high ^ identity.high)) == 0 && identity_kind == identity.kind;
  }

  Identity identity() const {
    Identity identity;
    std::memcpy(&identity.low, &identity_words[0], sizeof identity.low);
    std::memcpy(&identity.high, &identity_words[2], sizeof identity.high);
    identity.kind = identity_kind;
    return identity;
  }

  void set_identity(const Identity& identity) {
    std::memcpy(&identity_words[0], &identity.low, sizeof identity.low);
    std::memcpy(&identity_words[2], &identity.high, sizeof identity.high);
    identity_kind = identity.kind;
  }

  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }
};

static_assert(sizeof(Slot) == 20, "every byte here is paid a million times");
static_assert(alignof(Slot) == 4, "payloads of 4-byte stamps leave no gap");

}  // namespace rollgate::memory
