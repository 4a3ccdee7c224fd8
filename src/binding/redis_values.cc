// Reads the options of a Redis client, and converts replies to JavaScript values.
#include "binding/redis_values.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "binding/id_reader.h"
#include "binding/values.h"

namespace rollgate::binding {
namespace {

redis::Script ReadScript(const Napi::Object& from) {
  const Napi::Env env = from.Env();
  return {ReadText(env, from.Get("source")), ReadText(env, from.Get("sha1"))};
}

redis::Endpoint ReadEndpoint(const Napi::Object& from) {
  const Napi::Env env = from.Env();
  return {ReadText(env, from.Get("host")), static_cast<int>(ReadDouble(env, from.Get("port"))),
          ReadText(env, from.Get("path"))};
}

#ifdef ROLLGATE_HAS_TLS
std::shared_ptr<const redis::TlsContext> ReadTls(const Napi::Object& from) {
  const Napi::Env env = from.Env();
  const auto text = [&](const char* name) { return ReadText(env, from.Get(name)); };
  redis::TlsOptions options;
  options.authorities = ReadTexts(env, from.Get("ca"));
  options.certificate = text("cert");
  options.key = text("key");
  options.passphrase = text("passphrase");
  options.verifies = ReadBool(env, from.Get("verifies"));
  options.server_name = text("serverName");
  std::string error;
  std::shared_ptr<const redis::TlsContext> context = redis::TlsContext::Create(options, error);
  if (!context) throw std::invalid_argument(error);
  return context;
}
#endif

}  // namespace

redis::ClientOptions ReadClientOptions(const Napi::Object& from) {
  const Napi::Env env = from.Env();
  const auto number = [&](const char* name) {
    return static_cast<redis::Millis>(ReadDouble(env, from.Get(name)));
  };
  const auto text = [&](const char* name) { return ReadText(env, from.Get(name)); };
  redis::ClientOptions options;
  options.connection.username = text("username");
  options.connection.password = text("password");
  options.connection.name = text("name");
  options.connection.db = static_cast<int>(number("db"));
  options.connection.connect_timeout = number("connectTimeout");
  options.connection.retry_min = number("retryMin");
  options.connection.retry_max = number("retryMax");
  options.connection.jitter_seed = RandomSecret().words.front();
  options.command_timeout = number("commandTimeout");
  options.connection.longest_silence =
      std::max(options.connection.connect_timeout, options.command_timeout);
  options.max_queue = static_cast<std::size_t>(number("maxQueue"));
  options.is_cluster = ReadBool(env, from.Get("isCluster"));
  options.key_prefix = text("keyPrefix");
  options.policy = ReadTexts(env, from.Get("policy"));
  options.windows = static_cast<std::size_t>(number("windows"));
  options.script = ReadScript(from.Get("script").As<Napi::Object>());
  const auto endpoints = from.Get("endpoints").As<Napi::Array>();
  for (std::uint32_t i = 0; i < endpoints.Length(); ++i) {
    options.endpoints.push_back(ReadEndpoint(endpoints.Get(i).As<Napi::Object>()));
  }
#ifdef ROLLGATE_HAS_TLS
  const Napi::Value tls = from.Get("tls");
  if (tls.IsObject()) options.connection.tls = ReadTls(tls.As<Napi::Object>());
#endif
  return options;
}

Reply Reply::Copy(const redisReply& from) {
  Reply reply{from.type};
  if (from.type == REDIS_REPLY_INTEGER) reply.integer = from.integer;
  if (from.type == REDIS_REPLY_ARRAY) {
    for (std::size_t i = 0; i < from.elements; ++i) {
      reply.elements.push_back(Copy(*from.element[i]));
    }
  } else if (from.str != nullptr) {
    reply.text.assign(from.str, from.len);
  }
  return reply;
}

Napi::Value ToJs(Napi::Env env, const Reply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      return Napi::Number::New(env, static_cast<double>(reply.integer));
    case REDIS_REPLY_NIL:
      return env.Null();
    case REDIS_REPLY_ARRAY: {
      const auto elements = Napi::Array::New(env, reply.elements.size());
      for (std::uint32_t i = 0; i < reply.elements.size(); ++i) {
        elements.Set(i, ToJs(env, reply.elements[i]));
      }
      return elements;
    }
    default:
      return Napi::String::New(env, reply.text);
  }
}

}  // namespace rollgate::binding
