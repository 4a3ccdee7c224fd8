// A JavaScript function that somebody else keeps alive.
#pragma once

#include <node_api.h>

#include <span>
#include <utility>

#include "binding/values.h"
#include "core/inlining.h"

namespace rollgate::binding {

/// A weak reference: what it leads to must be held by JavaScript objects as long as it is called.
class Borrowed {
 public:
  Borrowed() = default;
  /// Without a value to refer to, it is empty.
  Borrowed(napi_env env, napi_value value) : env_(env) {
    if (value != nullptr) napi_create_reference(env, value, 0, &reference_);
  }
  Borrowed(Borrowed&& other) noexcept
      : env_(other.env_), reference_(std::exchange(other.reference_, nullptr)) {}
  Borrowed& operator=(Borrowed&& other) noexcept {
    std::swap(env_, other.env_);
    std::swap(reference_, other.reference_);
    return *this;
  }
  ~Borrowed() {
    if (reference_ != nullptr) napi_delete_reference(env_, reference_);
  }

  explicit operator bool() const { return reference_ != nullptr; }

  /// Calls the function; null when it throws, which is left pending, or cannot be called.
  ROLLGATE_COLD napi_value Call(std::span<const napi_value> arguments = {}) const {
    napi_value function = nullptr;
    napi_value receiver = nullptr;
    napi_value result = nullptr;
    if (reference_ != nullptr) napi_get_reference_value(env_, reference_, &function);
    napi_get_undefined(env_, &receiver);
    if (function == nullptr || receiver == nullptr) return nullptr;
    const napi_status status =
        napi_call_function(env_, receiver, function, arguments.size(), arguments.data(), &result);
    return status == napi_ok ? result : nullptr;
  }

 private:
  napi_env env_ = nullptr;
  napi_ref reference_ = nullptr;
};

/// The function that `keep` has under this name; empty if it has none.
inline Borrowed Borrow(napi_env env, napi_value keep, const char* name) {
  const napi_value value = Get(env, keep, name);
  return IsType(env, value, napi_function) ? Borrowed(env, value) : Borrowed();
}

}  // namespace rollgate::binding
