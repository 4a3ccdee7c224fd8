// Reads what JavaScript has written to the two areas.
#include "wasm/exchange.h"

#include <algorithm>
#include <cstring>

#include "core/numbers.h"

namespace rollgate::wasm {
namespace {

std::vector<double> numbers_area;
std::vector<std::uint64_t> bytes_area;  // aligned for every use

/// A word with its first `count` bytes, at most 8.
std::uint64_t FirstBytes(std::uint64_t word, std::int32_t count) {
  if (count >= 8) return word;
  return count <= 0 ? 0 : word & ((std::uint64_t{1} << (8 * count)) - 1);
}

/// Makes an area of so many elements; returns its address, null if there is no memory.
template <class T>
T* Reserve(std::vector<T>& area, std::size_t count) {
  try {
    std::vector<T>(count).swap(area);
    return area.data();
  } catch (...) {
    return nullptr;
  }
}

}  // namespace

double* Numbers() {
  return numbers_area.data();
}

std::byte* Bytes() {
  return reinterpret_cast<std::byte*>(bytes_area.data());
}

Secret ReadSecret() {
  Secret secret;
  std::memcpy(&secret, bytes_area.data(), sizeof secret);
  return secret;
}

Identity ReadIdentity(std::int32_t length, const Secret& secret) {
  if (length >= 0) [[likely]] {
    Identity identity;
    identity.low = FirstBytes(bytes_area[0], length);
    identity.high = FirstBytes(bytes_area[1], length - 8);
    identity.kind = static_cast<std::uint8_t>(length);
    return identity;
  }
  const auto* units = reinterpret_cast<const char16_t*>(bytes_area.data());
  return IdentityOf(std::span(units, static_cast<std::size_t>(~length)), secret);
}

Costs ReadCosts(double cost, const double* numbers, std::vector<std::uint64_t>& each) {
  if (cost >= 0) return static_cast<std::uint64_t>(cost);
  std::copy_n(numbers, each.size(), each.begin());
  return Costs(each);
}

std::vector<std::uint64_t> ReadLimits(std::int32_t terms, std::size_t windows) {
  if ((terms & kLimits) == 0) return {};
  const double* const limits = Numbers() + windows;
  return {limits, limits + windows};
}

/// Writes ordinal, start and end of the calendar window that contains `at` to Numbers.
/// `is_of_call`: the call brings calendars.
extern "C" __attribute__((import_module("rollgate"), import_name("find_window"))) void FindWindow(
    std::int32_t window, double at, bool is_of_call);

Calendars::Span HostCalendars::Find(std::size_t window, Micros at) {
  FindWindow(static_cast<std::int32_t>(window), static_cast<double>(at), are_of_call);
  return SpanFromJs(Numbers());
}

}  // namespace rollgate::wasm

/// Makes room for so many numbers and returns where it is; 0 if there is no memory. If there is
/// none, the area stays; else what it held is lost.
ROLLGATE_EXPORT(numbers) double* ReserveNumbers(std::size_t count) {
  return rollgate::wasm::Reserve(rollgate::wasm::numbers_area, count);
}

/// The same for bytes.
ROLLGATE_EXPORT(bytes) std::uint64_t* ReserveBytes(std::size_t count) {
  return rollgate::wasm::Reserve(rollgate::wasm::bytes_area, count / 8 + 1);
}
