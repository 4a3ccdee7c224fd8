// A limiter whose ids are in this process's memory.
#pragma once

#include <node_api.h>

namespace rollgate::binding {

/// createMemoryLimiter(options, keep) -> the functions of MakeLocalFunctions
///
/// `options`, checked by lib: what ReadPolicy reads, and maxKeys.
napi_value CreateMemoryLimiter(napi_env env, napi_callback_info info);

}  // namespace rollgate::binding
