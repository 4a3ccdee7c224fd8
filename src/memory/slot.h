// The bytes of one id in the table.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/decision.h"
#include "core/identity.h"
#include "core/time.h"

namespace rollgate::memory {

/// The fixed part of a slot, at any alignment; the store's payload follows. An id expires a
/// retention after its moment: its newest action, or what its store sets.
class Slot {
 public:
  bool Holds(const Identity& identity) const {
    std::uint64_t low;
    std::uint64_t high;
    std::memcpy(&low, &identity_[0], sizeof low);
    std::memcpy(&high, &identity_[8], sizeof high);
    return ((low ^ identity.low) | (high ^ identity.high)) == 0 && identity_kind_ == identity.kind;
  }

  Identity identity() const {
    Identity identity;
    std::memcpy(&identity.low, &identity_[0], sizeof identity.low);
    std::memcpy(&identity.high, &identity_[8], sizeof identity.high);
    identity.kind = identity_kind_;
    return identity;
  }

  void set_identity(const Identity& identity) {
    std::memcpy(&identity_[0], &identity.low, sizeof identity.low);
    std::memcpy(&identity_[8], &identity.high, sizeof identity.high);
    identity_kind_ = identity.kind;
  }

  Micros moment() const {
    Micros moment;
    std::memcpy(&moment, moment_.data(), sizeof moment);
    return moment;
  }
  void set_moment(Micros moment) { std::memcpy(moment_.data(), &moment, sizeof moment); }

  Generation generation() const {
    Generation generation;
    std::memcpy(&generation, generation_.data(), sizeof generation);
    return generation;
  }
  void set_generation(Generation generation) {
    std::memcpy(generation_.data(), &generation, sizeof generation);
  }

  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }

 private:
  std::array<std::byte, 16> identity_;
  std::uint8_t identity_kind_;
  std::array<std::byte, sizeof(Generation)> generation_;
  std::array<std::byte, sizeof(Micros)> moment_;
};

static_assert(sizeof(Slot) == 29, "a million ids pay for each byte");
static_assert(alignof(Slot) == 1 && std::is_trivially_copyable_v<Slot>, "slots move by memcpy");

}  // namespace rollgate::memory
