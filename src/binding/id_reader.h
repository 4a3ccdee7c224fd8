// Reads the identity of an id from a JavaScript value, without a string on the heap.
//
// Ids are read as UTF-16, so that different strings have different identities: Latin-1 would cut
// code units, and UTF-8 would replace every lone surrogate by the same character.
#pragma once

#include <node_api.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/identity.h"
#include "core/inlining.h"

namespace rollgate::binding {

/// Long enough for most ids. Node-API truncates longer strings, and adds a NUL.
using IdUnits = std::array<char16_t, 128>;

/// ReadIdentity of a string that has more than 16 characters, or some that are not Latin-1. Its
/// first `length` units are in `units`.
ROLLGATE_NOINLINE bool ReadOtherString(napi_env env, napi_value value, const Secret& secret,
                                       const IdUnits& units, std::size_t length,
                                       Identity& identity);

/// ReadIdentity of a value that is not a string.
ROLLGATE_NOINLINE bool ReadNoString(napi_env env, napi_value value, const Secret& secret,
                                    Identity& identity);

/// Reads the identity of a string, a finite number, a bigint, undefined or null; returns false for
/// any other value. 1, 1n and '1' are one id, and so are undefined, null and ''. Runs no code of
/// the user.
inline bool ReadIdentity(napi_env env, napi_value value, const Secret& secret, Identity& identity) {
  IdUnits units;
  std::fill_n(units.begin(), Identity::kLongestInline, u'\0');
  std::size_t length = 0;
  const napi_status status =
      napi_get_value_string_utf16(env, value, units.data(), units.size(), &length);
  if (status != napi_ok) [[unlikely]] {
    return ReadNoString(env, value, secret, identity);
  }
  const ShortUnits first(units.data(), Identity::kLongestInline);
  if (length > first.size() || !IsLatin1(first)) {
    return ReadOtherString(env, value, secret, units, length, identity);
  }
  identity = IdentityOfLatin1(first, length);
  return true;
}

/// A Secret of random numbers from the system. Throws std::runtime_error if there are none.
Secret RandomSecret();

}  // namespace rollgate::binding
