// Converts values between JavaScript and the core.
//
// lib has checked the values: these functions read one of another type as 0, false or empty. They
// are raw, because most of them run in each check.
#pragma once

#include <napi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/decision.h"
#include "core/numbers.h"
#include "core/policy.h"
#include "core/time.h"

namespace rollgate::binding {

inline napi_value ToJs(napi_env env, Micros millis) {
  napi_value value = nullptr;
  if (millis <= std::numeric_limits<std::int32_t>::max()) [[likely]] {
    napi_create_int32(env, static_cast<std::int32_t>(millis), &value);
  } else {
    napi_create_double(env, static_cast<double>(millis), &value);
  }
  return value;
}

inline bool IsType(napi_env env, napi_value value, napi_valuetype expected) {
  napi_valuetype type;
  return napi_typeof(env, value, &type) == napi_ok && type == expected;
}

inline double ReadDouble(napi_env env, napi_value value) {
  double number = 0;
  napi_get_value_double(env, value, &number);
  return number;
}

inline bool ReadBool(napi_env env, napi_value value) {
  bool fact = false;
  napi_get_value_bool(env, value, &fact);
  return fact;
}

inline Recording ReadRecording(napi_env env, napi_value value) {
  return static_cast<Recording>(ReadDouble(env, value));
}

/// The memory of a Float64Array (T is double) or a Uint8Array (T is a byte), valid as long as the
/// array lives.
template <class T>
std::span<T> ReadArray(napi_env env, napi_value value) {
  static_assert(std::is_same_v<T, double> || sizeof(T) == 1);
  constexpr napi_typedarray_type kExpected = sizeof(T) == 1 ? napi_uint8_array : napi_float64_array;
  napi_typedarray_type type;
  std::size_t length;
  void* elements;
  const napi_status status =
      napi_get_typedarray_info(env, value, &type, &length, &elements, nullptr, nullptr);
  if (status != napi_ok || type != kExpected) return {};
  return {static_cast<T*>(elements), length};
}

/// A string as UTF-8.
inline std::string ReadText(napi_env env, napi_value value) {
  std::array<char, 256> buffer;
  std::size_t length = 0;
  if (napi_get_value_string_utf8(env, value, buffer.data(), buffer.size(), &length) != napi_ok) {
    return {};
  }
  // Node-API truncates a longer string at the end of a character, and adds a NUL.
  if (length + 4 < buffer.size()) return std::string(buffer.data(), length);
  return Napi::String(env, value).Utf8Value();
}

/// An array of strings.
inline std::vector<std::string> ReadTexts(napi_env env, napi_value array) {
  std::vector<std::string> texts;
  std::uint32_t count = 0;
  napi_get_array_length(env, array, &count);
  for (std::uint32_t i = 0; i < count; ++i) {
    napi_value text = nullptr;
    napi_get_element(env, array, i, &text);
    texts.push_back(ReadText(env, text));
  }
  return texts;
}

/// A policy of lib/native/policy.js.
inline PolicyOptions ReadPolicy(napi_env env, napi_value value) {
  return PolicyFromJs(ReadArray<double>(env, value).data());
}

/// Reads a cost: a number, or a Float64Array with one for each window, which are copied to `each`.
inline Costs ReadCosts(napi_env env, napi_value value, std::vector<std::uint64_t>& each) {
  double cost;
  if (napi_get_value_double(env, value, &cost) == napi_ok) [[likely]] {
    return static_cast<std::uint64_t>(cost);
  }
  const std::span<double> costs = ReadArray<double>(env, value);
  each.assign(costs.begin(), costs.end());
  return Costs(each);
}

/// What to settle: of the second to the fifth argument.
struct Settlement {
  /// The first argument is the id or the state.
  explicit Settlement(const Napi::CallbackInfo& info)
      : receipt{TimeFromJs(ReadDouble(info.Env(), info[1])), ReadCosts(info.Env(), info[3], costs),
                static_cast<std::uint64_t>(ReadDouble(info.Env(), info[2]))},
        actual(ReadCosts(info.Env(), info[4], actual_costs)) {}
  Settlement(const Settlement&) = delete;
  Settlement& operator=(const Settlement&) = delete;

  /// Whether an attempt whose cost was the same in all windows came to more.
  bool IsOverdraft() const {
    return actual.IsUniform() && receipt.cost.IsUniform() &&
           actual.uniform() > receipt.cost.uniform();
  }

  std::vector<std::uint64_t> costs;
  std::vector<std::uint64_t> actual_costs;
  Receipt receipt;
  Costs actual;
};

}  // namespace rollgate::binding
