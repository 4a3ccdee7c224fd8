// Makes a limiter that finds its store when it is first asked: a constructor does no I/O.
#include "binding/shared_limiter.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "binding/functions.h"
#include "binding/local_functions.h"
#include "binding/local_limiter.h"
#include "binding/policy_reader.h"
#include "binding/texts.h"
#include "binding/values.h"
#include "shared/shared_store.h"
#include "shared/store_types.h"

namespace rollgate::binding {
namespace {

/// A region is no memory of this process. But an attachment takes one of its few entries, so
/// dropped limiters are to be found before these run out.
std::int64_t BytesToTell(const Store&) {
  return std::int64_t{128} << 10;
}

napi_value Create(napi_env env, napi_callback_info info) {
  const Call<void, 2> call(env, info);
  const auto [options, keep] = call.arguments;
  PolicyOptions policy_options = ReadPolicy(env, options);
  SharedStoreOptions store;
  store.name = ReadText(env, Get(env, options, "name"));
  store.directory = ReadText(env, Get(env, options, "directory"));
  store.max_keys = static_cast<std::size_t>(ReadDouble(env, Get(env, options, "maxKeys")));
  // lib has checked all this: what is missing could not be read, for the thread is to end.
  const bool is_read = !policy_options.windows.empty() && !store.name.empty() &&
                       !store.directory.empty() && store.max_keys != 0;
  if (!is_read) return nullptr;
  const Policy policy(std::move(policy_options));
  std::unique_ptr<LocalLimiter> limiter = ReadLocalLimiter(env, keep, policy);
  if (!limiter) return nullptr;

  limiter->bytes_to_tell = BytesToTell;
  store.has_own_clock = static_cast<bool>(limiter->clock);
  store.epoch_offset = limiter->epoch_offset;
  store.on_eviction = [state = limiter.get()] { state->has_evicted = true; };
  return shared::WithSharedStore<napi_value>(policy, [&]<class S>() -> napi_value {
    limiter->attach = [policy, options = std::move(store)](LocalLimiter& attached) {
      auto found = std::make_unique<S>(policy, options);
      attached.secret = found->secret();
      attached.epoch_offset = found->epoch_offset();
      attached.store = std::move(found);
    };
    return MakeLocalFunctions<S>(env, std::move(limiter));
  });
}

}  // namespace

napi_value CreateSharedLimiter(napi_env env, napi_callback_info info) {
  return Creating<Create>(env, info);
}

napi_value UnlinkShared(napi_env env, napi_callback_info info) {
  const Call<void, 3> call(env, info);
  const auto [directory, name, failed] = call.arguments;
  try {
    return ToJs(env, rollgate::UnlinkShared(ReadText(env, directory), ReadText(env, name)));
  } catch (const SharedError& error) {
    return Fail(env, Borrowed(env, failed), error);
  } catch (const std::exception& error) {
    napi_throw_error(env, "ERR_ROLLGATE_MEMORY", error.what());
    return nullptr;
  }
}

}  // namespace rollgate::binding
