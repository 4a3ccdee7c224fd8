// Native functions that share what is behind them and own it together.
#pragma once

#include <node_api.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <span>

#include "binding/values.h"

namespace rollgate::binding {

/// A function of an object in JavaScript.
struct Function {
  const char* property;
  napi_callback callback;
  const char* name = nullptr;  ///< what JavaScript shows it as, if not as the property
};

/// A callback that answers exhausted memory with an exception in JavaScript: that of the `State`'s
/// `exhausted`, a Borrowed.
template <class State, napi_value (*kCallback)(napi_env, napi_callback_info)>
napi_value Guarded(napi_env env, napi_callback_info info) {
  try {
    return kCallback(env, info);
  } catch (const std::bad_alloc&) {
    return Call<State, 0>(env, info).state->exhausted.Call();
  }
}

/// A callback that makes such functions, and throws in JavaScript where there is no memory for
/// them.
template <napi_value (*kCreate)(napi_env, napi_callback_info)>
napi_value Creating(napi_env env, napi_callback_info info) {
  try {
    return kCreate(env, info);
  } catch (const std::exception& error) {
    napi_throw_error(env, "ERR_ROLLGATE_MEMORY", error.what());
    return nullptr;
  }
}

/// Runs when one of the functions is collected, or at the end of the environment.
template <class State>
void Release(napi_env env, void* data, void*) {
  auto* const state = static_cast<State*>(data);
  if (--state->functions > 0) return;
  Dispose(env, *state);
  delete state;
}

/// An object of functions whose data is the `State`; null if that failed. They count themselves in
/// its `functions`; the last one that is collected calls Dispose(env, state) and deletes it.
template <class State>
napi_value MakeFunctions(napi_env env, std::unique_ptr<State> owned,
                         std::span<const Function> functions) {
  napi_value object = nullptr;
  if (napi_create_object(env, &object) != napi_ok) return nullptr;
  State* const state = owned.get();
  for (const Function& function : functions) {
    const char* const name = function.name == nullptr ? function.property : function.name;
    napi_value value = nullptr;
    if (napi_create_function(env, name, NAPI_AUTO_LENGTH, function.callback, state, &value) !=
            napi_ok ||
        napi_add_finalizer(env, value, state, Release<State>, nullptr, nullptr) != napi_ok) {
      return nullptr;
    }
    ++state->functions;
    static_cast<void>(owned.release());  // theirs from the first one on
    if (napi_set_named_property(env, object, function.property, value) != napi_ok) return nullptr;
  }
  return object;
}

}  // namespace rollgate::binding
