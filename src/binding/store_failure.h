// What becomes of exceptions of stores.
#pragma once

#include <napi.h>

#include <array>

#include "binding/functions.h"
#include "binding/values.h"
#include "core/inlining.h"
#include "shared/shared_error.h"

namespace rollgate::binding {

/// For Guarded: an exception of the store becomes one of lib's.
template <class State>
ROLLGATE_COLD napi_value AnswerStoreFailure(napi_env env, napi_callback_info info) {
  try {
    throw;
  } catch (const SharedError& error) {
    return Invoke(Call<State, 0>(env, info).state->failed,
                  std::array{ToJs(env, static_cast<Micros>(error.kind())),
                             napi_value(Napi::String::New(env, error.what()))});
  } catch (...) {
    return AnswerExhausted<State>(env, info);
  }
}

}  // namespace rollgate::binding
