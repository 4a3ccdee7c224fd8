// From a JavaScript value to the identity of an id, without a string on the heap.
//
// Ids are read as UTF-16: measured, it is the fastest of the exact ways. Latin-1 would cut code
// units in half and UTF-8 turn every lone surrogate into the same character: ids would collide.
#pragma once

#include <node_api.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/identity.h"
#include "core/inlining.h"

namespace rollgate::binding {

/// Room for most ids. Node-API cuts what is longer, silently, and always ends with a NUL.
using IdUnits = std::array<char16_t, 128>;

/// ReadIdentity of a string that is longer than sixteen characters or has some that are not
/// Latin-1. Its first `length` units have been read.
ROLLGATE_NOINLINE bool ReadOtherString(napi_env env, napi_value value, const Secret& secret,
                                       const IdUnits& units, std::size_t length,
                                       Identity& identity);

/// ReadIdentity of what is no string.
ROLLGATE_NOINLINE bool ReadNoString(napi_env env, napi_value value, const Secret& secret,
                                    Identity& identity);

/// Reads the identity of a string, a finite number, a bigint, undefined or null; false for any
/// other value. 1, 1n and '1' are one id; undefined, null and '' are the one of callers without an
/// id. Runs no code of the caller's.
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

/// A fresh Secret from the system's random numbers. Throws std::runtime_error if it has none.
Secret RandomSecret();

}  // namespace rollgate::binding
