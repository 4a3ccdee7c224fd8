// Reads the options of a Redis client, and converts replies to JavaScript values.
#include "binding/redis_values.h"

#include <cstdint>

#include "binding/id_reader.h"
#include "binding/values.h"
#include "redis/command.h"

namespace rollgate::binding {

redis::ClientOptions ReadClientOptions(const Napi::Object& from) {
  const Napi::Env env = from.Env();
  const auto number = [&](const char* name) {
    return static_cast<redis::Millis>(ReadDouble(env, from.Get(name)));
  };
  redis::ClientOptions options;
  options.server = ReadText(env, from.Get("server"));
  options.connection.connect_timeout = number("connectTimeout");
  options.connection.retry_min = number("retryMin");
  options.connection.retry_max = number("retryMax");
  options.connection.jitter_seed = RandomSecret().words.front();
  options.command_timeout = number("commandTimeout");
  options.connection.longest_silence = options.command_timeout;
  options.max_queue = static_cast<std::size_t>(number("maxQueue"));
  options.connection.has_tls = ReadBool(env, from.Get("hasTls"));
  return options;
}

redis::Route ReadRoute(const Napi::Object& from) {
  const Napi::Env env = from.Env();
  redis::Route route;
  route.addresses = from.Get("addresses").As<Napi::Array>().Length();
  const auto greeting = from.Get("greeting").As<Napi::Array>();
  route.greetings = greeting.Length();
  for (std::uint32_t i = 0; i < greeting.Length(); ++i) {
    const std::vector<std::string> words = ReadTexts(env, greeting.Get(i));
    redis::AppendHeader(route.greeting, words.size());
    for (const std::string& word : words) redis::AppendWord(route.greeting, word);
  }
  route.wants_master = ReadBool(env, from.Get("wantsMaster"));
  return route;
}

std::vector<redis::Nodes::Range> ReadRanges(const Napi::Array& from) {
  const Napi::Env env = from.Env();
  std::vector<redis::Nodes::Range> ranges;
  for (std::uint32_t i = 0; i < from.Length(); ++i) {
    const auto range = from.Get(i).As<Napi::Array>();
    ranges.push_back({static_cast<std::uint16_t>(ReadDouble(env, range.Get(0u))),
                      static_cast<std::uint16_t>(ReadDouble(env, range.Get(1u))),
                      ReadText(env, range.Get(2u))});
  }
  return ranges;
}

Napi::Value ToJs(Napi::Env env, const redis::Reply& reply) {
  switch (reply.kind) {
    case redis::Reply::Kind::kInteger:
      return Napi::Number::New(env, static_cast<double>(reply.integer));
    case redis::Reply::Kind::kNil:
      return env.Null();
    case redis::Reply::Kind::kArray: {
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
