// Arguments and results of raw Node-API callbacks.
//
// Once a worker thread is told to terminate, any call that could run JavaScript fails. So every
// status that leads to a value is checked, and whoever gets none returns to JavaScript, which goes
// no further.
#pragma once

#include <node_api.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/time.h"

namespace rollgate::binding {

inline napi_value ToJs(napi_env env, Micros millis) {
  napi_value value = nullptr;
  if (millis <= INT32_MAX) [[likely]] {
    napi_create_int32(env, static_cast<std::int32_t>(millis), &value);
  } else {
    napi_create_double(env, static_cast<double>(millis), &value);
  }
  return value;
}

inline napi_value ToJs(napi_env env, bool fact) {
  napi_value value = nullptr;
  napi_get_boolean(env, fact, &value);
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

/// The memory of a Float64Array, which stays where it is as long as the array lives; empty if the
/// value is none.
inline std::span<double> ReadDoubles(napi_env env, napi_value value) {
  napi_typedarray_type type;
  std::size_t length;
  void* doubles;
  const bool is_array =
      napi_get_typedarray_info(env, value, &type, &length, &doubles, nullptr, nullptr) == napi_ok &&
      type == napi_float64_array;
  return is_array ? std::span(static_cast<double*>(doubles), length) : std::span<double>();
}

/// The byte of a Uint8Array of one; null for anything else.
inline const std::uint8_t* ReadByte(napi_env env, napi_value value) {
  napi_typedarray_type type;
  std::size_t length;
  void* bytes;
  const bool is_byte =
      napi_get_typedarray_info(env, value, &type, &length, &bytes, nullptr, nullptr) == napi_ok &&
      type == napi_uint8_array && length == 1;
  return is_byte ? static_cast<const std::uint8_t*>(bytes) : nullptr;
}

/// A property of an object, null if it cannot be had.
inline napi_value Get(napi_env env, napi_value object, const char* name) {
  napi_value value = nullptr;
  napi_get_named_property(env, object, name, &value);
  return value;
}

/// What a callback whose data is a `State` was called with; arguments that were left out are
/// undefined.
template <class State, std::size_t kCount>
struct Call {
  Call(napi_env env, napi_callback_info info) {
    void* data = nullptr;
    napi_get_cb_info(env, info, &count, arguments.data(), nullptr, &data);
    state = static_cast<State*>(data);
  }

  std::size_t count = kCount;
  std::array<napi_value, kCount> arguments;
  State* state;
};

}  // namespace rollgate::binding
