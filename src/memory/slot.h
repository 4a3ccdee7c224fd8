// The bytes of one id in the table.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bytes.h"
#include "core/decision.h"
#include "core/identity.h"
#include "core/time.h"

namespace rollgate::memory {

/// The fixed part of a slot, at any alignment; the store's payload follows. An id expires a
/// retention after its moment: its newest action, or what its store sets.
class Slot {
 public:
  bool Holds(const Identity& identity) const {
    const Identity held = this->identity();
    return ((held.low ^ identity.low) | (held.high ^ identity.high)) == 0 &&
           held.kind == identity.kind;
  }

  Identity identity() const {
    return {LoadAs<std::uint64_t>(&identity_[0]), LoadAs<std::uint64_t>(&identity_[8]),
            identity_kind_};
  }
  void set_identity(const Identity& identity) {
    StoreAs(&identity_[0], identity.low);
    StoreAs(&identity_[8], identity.high);
    identity_kind_ = identity.kind;
  }

  Micros moment() const { return LoadAs<Micros>(moment_.data()); }
  void set_moment(Micros moment) { StoreAs(moment_.data(), moment); }

  Generation generation() const { return LoadAs<Generation>(generation_.data()); }
  void set_generation(Generation generation) { StoreAs(generation_.data(), generation); }

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
