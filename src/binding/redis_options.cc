// From a JavaScript object to the options of a client.
#include "binding/redis_options.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "binding/random.h"
#include "binding/texts.h"
#include "binding/values.h"

namespace rollgate::binding {

namespace {

redis::Script ReadScript(napi_env env, napi_value from) {
  return {ReadText(env, Get(env, from, "source")), ReadText(env, Get(env, from, "sha1"))};
}

#ifdef ROLLGATE_HAS_TLS
std::shared_ptr<const redis::TlsContext> ReadTls(napi_env env, napi_value from) {
  if (!IsType(env, from, napi_object)) return nullptr;
  const auto text = [&](const char* name) { return ReadText(env, Get(env, from, name)); };
  redis::TlsOptions options;
  options.authorities = ReadTexts(env, Get(env, from, "ca"));
  options.certificate = text("cert");
  options.key = text("key");
  options.passphrase = text("passphrase");
  options.verifies = ReadBool(env, Get(env, from, "verifies"));
  options.server_name = text("serverName");
  std::string error;
  std::shared_ptr<const redis::TlsContext> context = redis::TlsContext::Create(options, error);
  if (!context) throw std::invalid_argument(error);
  return context;
}
#endif

}  // namespace

redis::ClientOptions ReadClientOptions(napi_env env, napi_value from) {
  const auto number = [&](const char* name) {
    return static_cast<redis::Millis>(ReadDouble(env, Get(env, from, name)));
  };
  const auto text = [&](const char* name) { return ReadText(env, Get(env, from, name)); };
  redis::ClientOptions options;
  options.connection.username = text("username");
  options.connection.password = text("password");
  options.connection.name = text("name");
  options.connection.db = static_cast<int>(number("db"));
  options.connection.connect_timeout = number("connectTimeout");
  options.connection.retry_min = number("retryMin");
  options.connection.retry_max = number("retryMax");
  options.connection.jitter_seed = RandomWord();
  options.command_timeout = number("commandTimeout");
  options.connection.longest_silence =
      std::max(options.connection.connect_timeout, options.command_timeout);
  options.max_queue = static_cast<std::size_t>(number("maxQueue"));
  options.is_cluster = ReadBool(env, Get(env, from, "isCluster"));
  options.key_prefix = text("keyPrefix");
  options.policy = ReadTexts(env, Get(env, from, "policy"));
  options.windows = static_cast<std::size_t>(number("windows"));
  options.script = ReadScript(env, Get(env, from, "script"));
  const napi_value endpoints = Get(env, from, "endpoints");
  std::uint32_t count = 0;
  napi_get_array_length(env, endpoints, &count);
  for (std::uint32_t i = 0; i < count; ++i) {
    napi_value endpoint = nullptr;
    napi_get_element(env, endpoints, i, &endpoint);
    options.endpoints.push_back({ReadText(env, Get(env, endpoint, "host")),
                                 static_cast<int>(ReadDouble(env, Get(env, endpoint, "port"))),
                                 ReadText(env, Get(env, endpoint, "path"))});
  }
#ifdef ROLLGATE_HAS_TLS
  options.connection.tls = ReadTls(env, Get(env, from, "tls"));
#endif
  return options;
}

}  // namespace rollgate::binding
