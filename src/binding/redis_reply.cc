// Copies replies, and makes JavaScript values of the copies.
#include "binding/redis_reply.h"

#include <hiredis/hiredis.h>

#include <cstdint>

namespace rollgate::binding {

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

napi_value ToJs(napi_env env, const Reply& reply) {
  napi_value value = nullptr;
  switch (reply.type) {
    case REDIS_REPLY_INTEGER:
      napi_create_double(env, static_cast<double>(reply.integer), &value);
      break;
    case REDIS_REPLY_NIL:
      napi_get_null(env, &value);
      break;
    case REDIS_REPLY_ARRAY:
      napi_create_array_with_length(env, reply.elements.size(), &value);
      for (std::uint32_t i = 0; i < reply.elements.size(); ++i) {
        napi_set_element(env, value, i, ToJs(env, reply.elements[i]));
      }
      break;
    default:
      napi_create_string_utf8(env, reply.text.data(), reply.text.size(), &value);
  }
  return value;
}

}  // namespace rollgate::binding
