// Arguments and results of raw Node-API callbacks.
#pragma once

#include <node_api.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/time.h"

namespace rollgate::binding {

inline napi_value ToJs(napi_env env, Micros millis) {
  napi_value value;
  if (millis <= INT32_MAX) [[likely]] {
    napi_create_int32(env, static_cast<std::int32_t>(millis), &value);
  } else {
    napi_create_double(env, static_cast<double>(millis), &value);
  }
  return value;
}

inline napi_value ToJs(napi_env env, bool fact) {
  napi_value value;
  napi_get_boolean(env, fact, &value);
  return value;
}

/// What a callback whose data is a `State` was called with; arguments that were left out are
/// undefined.
template <class State, std::size_t kCount>
struct Call {
  Call(napi_env env, napi_callback_info info) {
    void* data;
    napi_get_cb_info(env, info, &count, arguments.data(), nullptr, &data);
    state = static_cast<State*>(data);
  }

  std::size_t count = kCount;
  std::array<napi_value, kCount> arguments;
  State* state;
};

inline bool IsType(napi_env env, napi_value value, napi_valuetype expected) {
  napi_valuetype type;
  napi_typeof(env, value, &type);
  return type == expected;
}

inline double ReadDouble(napi_env env, napi_value value) {
  double number = 0;
  napi_get_value_double(env, value, &number);
  return number;
}

}  // namespace rollgate::binding
