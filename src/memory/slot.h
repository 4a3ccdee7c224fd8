// The bytes of one id in the table: its identity, and behind it what its store keeps of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/identity.h"
#include "core/time.h"

namespace rollgate::memory {

/// The fixed part of a slot, at any alignment; the store's payload follows it. An id's moment is
/// what its expiry is counted from: its newest action, or whatever its store sets.
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

  /// Fifteen bits that tell this life of the id from its earlier ones.
  std::uint16_t incarnation() const { return Life() & kIncarnation; }

  /// Begins a life; it has no mark.
  void set_incarnation(std::uint16_t incarnation) { SetLife(incarnation & kIncarnation); }

  /// One bit for the store.
  bool mark() const { return (Life() & kMark) != 0; }
  void set_mark(bool mark) {
    SetLife(static_cast<std::uint16_t>((Life() & kIncarnation) | (mark ? kMark : 0)));
  }

  std::byte* payload() { return reinterpret_cast<std::byte*>(this + 1); }

 private:
  static constexpr std::uint16_t kIncarnation = 0x7fff;
  static constexpr std::uint16_t kMark = 0x8000;

  std::uint16_t Life() const {
    std::uint16_t life;
    std::memcpy(&life, life_.data(), sizeof life);
    return life;
  }
  void SetLife(std::uint16_t life) { std::memcpy(life_.data(), &life, sizeof life); }

  std::array<std::byte, 16> identity_;
  std::uint8_t identity_kind_;
  std::array<std::byte, 2> life_;
  std::array<std::byte, sizeof(Micros)> moment_;
};

static_assert(sizeof(Slot) == 27, "every byte here is paid a million times");
static_assert(alignof(Slot) == 1);

}  // namespace rollgate::memory
