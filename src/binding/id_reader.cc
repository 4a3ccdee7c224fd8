// Reads ids that are long strings, strings with other characters, or numbers.
#include "binding/id_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#if defined(__linux__)
#include <sys/random.h>

#include <stdexcept>
#else
#include <random>
#endif

namespace rollgate::binding {
namespace {

/// Below this magnitude, JavaScript writes every whole number in plain digits.
constexpr double kLargestPlainInteger = 9007199254740992.0;

Identity IdentityOfInteger(std::int64_t number, const Secret& secret) {
  std::array<char, 20> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  std::array<char16_t, 20> units;
  std::copy(digits.data(), end, units.data());
  return IdentityOf(std::span(units.data(), static_cast<std::size_t>(end - digits.data())), secret);
}

/// Reads a number or bigint as the string that JavaScript converts it to.
bool ReadWritten(napi_env env, napi_value value, const Secret& secret, Identity& identity) {
  napi_value text = nullptr;
  return napi_coerce_to_string(env, value, &text) == napi_ok &&
         ReadIdentity(env, text, secret, identity);
}

bool ReadNumber(napi_env env, napi_value value, const Secret& secret, Identity& identity) {
  double number;
  if (napi_get_value_double(env, value, &number) != napi_ok || !std::isfinite(number)) return false;
  if (std::trunc(number) != number || std::abs(number) >= kLargestPlainInteger) {
    return ReadWritten(env, value, secret, identity);
  }
  identity = IdentityOfInteger(static_cast<std::int64_t>(number), secret);
  return true;
}

}  // namespace

bool ReadOtherString(napi_env env, napi_value value, const Secret& secret, const IdUnits& units,
                     std::size_t length, Identity& identity) {
  if (length < units.size() - 1) {
    identity = IdentityOf(std::span(units.data(), length), secret);
    return true;
  }
  if (napi_get_value_string_utf16(env, value, nullptr, 0, &length) != napi_ok) return false;
  std::vector<char16_t> all(length + 1);
  if (napi_get_value_string_utf16(env, value, all.data(), all.size(), &length) != napi_ok) {
    return false;
  }
  identity = IdentityOf(std::span(all.data(), length), secret);
  return true;
}

bool ReadNoString(napi_env env, napi_value value, const Secret& secret, Identity& identity) {
  napi_valuetype type;
  if (napi_typeof(env, value, &type) != napi_ok) return false;
  switch (type) {
    case napi_undefined:
    case napi_null:
      identity = Identity{};
      return true;
    case napi_number:
      return ReadNumber(env, value, secret, identity);
    case napi_bigint:
      return ReadWritten(env, value, secret, identity);
    default:
      return false;
  }
}

Secret RandomSecret() {
  Secret secret;
#if defined(__linux__)
  // std::random_device would need functions of glibc that older systems do not have.
  if (getrandom(secret.words.data(), sizeof(secret.words), 0) != sizeof(secret.words)) {
    throw std::runtime_error("the system has no random numbers");
  }
#else
  std::random_device random;
  for (std::uint64_t& word : secret.words) word = std::uint64_t{random()} << 32 | random();
#endif
  return secret;
}

}  // namespace rollgate::binding
