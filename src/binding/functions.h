// Native functions that share one state and own it together.
//
// A function that runs once per check is a raw Node-API callback, because a wrapped one costs twice
// as much. The others take a Napi::CallbackInfo.
#pragma once

#include <napi.h>

#include <array>
#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

#include "core/inlining.h"

namespace rollgate::binding {

/// A native function as a property of an object in JavaScript.
struct Function {
  const char* property;
  napi_callback callback;
  const char* name = nullptr;  ///< in JavaScript, if not the property
};

/// The arguments and the `State` of a raw callback; missing arguments are undefined.
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

/// The `State` of a wrapped function.
template <class State>
State& StateOf(const Napi::CallbackInfo& info) {
  return *static_cast<State*>(info.Data());
}

/// A callback that runs kBody, raw or wrapped. If that throws, returns the result of kAnswer, which
/// has the same arguments and rethrows the exception to examine it.
template <auto kBody, napi_callback kAnswer>
napi_value Guarded(napi_env env, napi_callback_info info) {
  try {
    if constexpr (std::is_invocable_v<decltype(kBody), napi_env, napi_callback_info>) {
      return kBody(env, info);
    } else {
      return kBody(Napi::CallbackInfo(env, info));
    }
  } catch (...) {
    return kAnswer(env, info);
  }
}

/// For Guarded: throws in JavaScript. lib creates the errors again, in its realm.
inline napi_value ThrowInJs(napi_env env, napi_callback_info) {
  try {
    throw;
  } catch (const Napi::Error& error) {
    error.ThrowAsJavaScriptException();
  } catch (const std::exception& error) {
    napi_throw_error(env, "ERR_ROLLGATE_MEMORY", error.what());
  }
  return nullptr;
}

/// A weak reference to a function of `callbacks`, which lib keeps alive; empty if there is none.
inline Napi::FunctionReference Borrow(const Napi::Object& callbacks, const char* name) {
  const Napi::Value value = callbacks.Get(name);
  return value.IsFunction() ? Napi::Weak(value.As<Napi::Function>()) : Napi::FunctionReference();
}

/// Calls such a function. Returns null if it throws, with the exception pending, or cannot be
/// called. Raw, because a user's clock is called in each check.
ROLLGATE_COLD inline napi_value Invoke(const Napi::FunctionReference& function,
                                       std::span<const napi_value> arguments = {}) {
  if (function.IsEmpty()) return nullptr;
  const napi_env env = function.Env();
  napi_value callee = nullptr;
  napi_value receiver = nullptr;
  napi_value result = nullptr;
  napi_get_reference_value(env, function, &callee);
  napi_get_undefined(env, &receiver);
  const napi_status status =
      napi_call_function(env, receiver, callee, arguments.size(), arguments.data(), &result);
  return status == napi_ok ? result : nullptr;
}

/// For Guarded: exhausted memory becomes lib's exception.
template <class State>
ROLLGATE_COLD napi_value AnswerExhausted(napi_env env, napi_callback_info info) {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return Invoke(Call<State, 0>(env, info).state->exhausted);
  } catch (const Napi::Error& error) {
    error.ThrowAsJavaScriptException();
    return nullptr;
  }
}

/// Returns an object of functions, whose data is the state. They own it together: the last one to
/// be collected, at the latest at the end of the environment, releases it.
inline Napi::Object MakeFunctions(Napi::Env env, const std::shared_ptr<void>& state,
                                  std::span<const Function> functions) {
  const Napi::Object object = Napi::Object::New(env);
  for (const auto& [property, callback, name] : functions) {
    napi_value function = nullptr;
    const napi_status status = napi_create_function(
        env, name == nullptr ? property : name, NAPI_AUTO_LENGTH, callback, state.get(), &function);
    if (status != napi_ok) throw Napi::Error::New(env);
    Napi::Function(env, function)
        .AddFinalizer([](Napi::Env, std::shared_ptr<void>* owner) { delete owner; },
                      new std::shared_ptr<void>(state));
    object.Set(property, function);
  }
  return object;
}

}  // namespace rollgate::binding
