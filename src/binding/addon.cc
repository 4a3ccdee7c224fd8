// What the addon exports.
#include <napi.h>

#include "binding/memory_limiter.h"

namespace {

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  using rollgate::binding::CreateMemoryLimiter;
  using rollgate::binding::LiveLimiters;
  exports["createMemoryLimiter"] = Napi::Function::New<CreateMemoryLimiter>(env);
  exports["liveLimiters"] = Napi::Function::New<LiveLimiters>(env);
  return exports;
}

}  // namespace

NODE_API_MODULE(rollgate, Init)
