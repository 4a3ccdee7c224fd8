// A limiter whose ids are in memory that threads and processes share.
#pragma once

#include <node_api.h>

namespace rollgate::binding {

/// createSharedLimiter(options, keep) -> the functions of MakeLocalFunctions, of which the first to
/// be called, close() left aside, attaches to the region; where that fails, the next one tries
/// again.
///
/// `options`, checked by lib: what ReadPolicy reads, name, directory and maxKeys.
napi_value CreateSharedLimiter(napi_env env, napi_callback_info info);

/// unlinkShared(directory, name, failed) -> whether there was such a region; `failed` as of
/// MakeLocalFunctions
napi_value UnlinkShared(napi_env env, napi_callback_info info);

}  // namespace rollgate::binding
