// How values cross between JavaScript and the module: two areas of memory, which JavaScript fills
// before a call and reads after it.
//
// lib has checked the values, as it has for the addon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/decision.h"
#include "core/identity.h"
#include "core/policy.h"

/// A function for JavaScript.
#define ROLLGATE_EXPORT(name) extern "C" __attribute__((export_name(#name)))

namespace rollgate::wasm {

/// What calls return: bits.
enum Status : std::int32_t {
  kDone = 0,
  kFound = 1,      ///< the attempt to settle, the id to clear
  kEvicted = 2,    ///< an id was dropped to make room
  kExhausted = 4,  ///< there is no memory; nothing was recorded
};

/// `call()`, or kExhausted if it throws.
template <class Call>
std::int32_t Guarded(Call call) {
  try {
    return call();
  } catch (...) {
    return kExhausted;
  }
}

/// What a call brings of its own: bits.
enum Terms : std::int32_t {
  kLimits = 1,     ///< one for each window, in Numbers behind the room for costs
  kCalendars = 2,  ///< JavaScript finds windows of these
};

/// The limits of a call; none without kLimits.
std::vector<std::uint64_t> ReadLimits(std::int32_t terms, std::size_t windows);

/// Asks JavaScript, which knows the calendars of the limiter of the current call.
class HostCalendars final : public Calendars {
 public:
  Span Find(std::size_t window, Micros at) override;
};

/// The area for policies, costs, decisions and statistics. JavaScript has reserved enough of it.
double* Numbers();

/// The area for ids, states and secrets.
std::byte* Bytes();

/// The secret in Bytes: 48 of them.
Secret ReadSecret();

/// The identity of the id in Bytes. If `length` is at least 0: so many Latin-1 characters, at most
/// 16, whatever follows them. Else ~length UTF-16 code units.
Identity ReadIdentity(std::int32_t length, const Secret& secret);

/// `cost`; if it is negative, the costs at `numbers`, one for each window, which are copied to
/// `each`.
Costs ReadCosts(double cost, const double* numbers, std::vector<std::uint64_t>& each);

}  // namespace rollgate::wasm
