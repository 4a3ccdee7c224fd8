// Has hiredis' reader build replies in one object each.
#include "redis/reply.h"

#include <hiredis/hiredis.h>

#include <cassert>
#include <new>

namespace rollgate::redis {
namespace {

/// No command of this client is answered with more. Without a bound, the 13 bytes of an array's
/// header could take any amount of memory.
constexpr std::size_t kMostElements = 1'000'000;
/// Nested arrays are destroyed by recursion.
constexpr int kMostLevels = 8;

constexpr const char* kForeignType = "a reply of a type that only RESP3 has";

}  // namespace

/// The functions that hiredis calls for each object. They return a pointer to it, which hiredis
/// passes on in the tasks of its elements.
struct ReplyReader::Builder {
  static Reply& At(const redisReadTask* task) {
    if (task->parent != nullptr) {
      return static_cast<Reply*>(task->parent->obj)->elements[static_cast<std::size_t>(task->idx)];
    }
    auto& self = *static_cast<ReplyReader*>(task->privdata);
    self.elements_ = 0;
    return self.reply_ = {};
  }

  static void* Refuse(const redisReadTask* task, const char* why) {
    static_cast<ReplyReader*>(task->privdata)->error_ = why;
    return nullptr;
  }

  static void* String(const redisReadTask* task, char* text, std::size_t length) {
    const bool is_error = task->type == REDIS_REPLY_ERROR;
    if (!is_error && task->type != REDIS_REPLY_STRING && task->type != REDIS_REPLY_STATUS) {
      return Refuse(task, kForeignType);
    }
    Reply& reply = At(task);
    reply.kind = is_error ? Reply::Kind::kError : Reply::Kind::kString;
    reply.text.assign(text, length);
    return &reply;
  }

  /// The type of `count` depends on the version of hiredis.
  template <class Count>
  static void* Array(const redisReadTask* task, Count count) {
    if (task->type != REDIS_REPLY_ARRAY) return Refuse(task, kForeignType);
    int levels = 1;
    for (const auto* above = task->parent; above != nullptr; above = above->parent) {
      if (++levels > kMostLevels) return Refuse(task, "a reply of more than eight nested arrays");
    }
    Reply& reply = At(task);
    auto& self = *static_cast<ReplyReader*>(task->privdata);
    const auto elements = static_cast<std::size_t>(count);
    if (elements > kMostElements - self.elements_) {
      return Refuse(task, "a reply of more than a million elements");
    }
    self.elements_ += elements;
    reply.kind = Reply::Kind::kArray;
    reply.elements.resize(elements);
    return &reply;
  }

  static void* Integer(const redisReadTask* task, long long integer) {
    Reply& reply = At(task);
    reply.kind = Reply::Kind::kInteger;
    reply.integer = integer;
    return &reply;
  }

  static void* Nil(const redisReadTask* task) { return &At(task); }

  /// Without functions, hiredis 1 would leave such elements as they are. Older ones do not know
  /// them.
  template <class F>
  static void RefuseTypesOfResp3(F& functions) {
    if constexpr (requires { functions.createDouble; }) {
      functions.createDouble = [](const redisReadTask* task, double, char*, std::size_t) {
        return Refuse(task, kForeignType);
      };
      functions.createBool = [](const redisReadTask* task, int) {
        return Refuse(task, kForeignType);
      };
    }
  }

  static redisReplyObjectFunctions& Functions() {
    static redisReplyObjectFunctions functions = [] {
      redisReplyObjectFunctions own{};
      own.createString = String;
      own.createArray = Array;
      own.createInteger = Integer;
      own.createNil = Nil;
      own.freeObject = [](void*) {};
      RefuseTypesOfResp3(own);
      return own;
    }();
    return functions;
  }
};

void ReplyReader::Free::operator()(redisReader* reader) const {
  redisReaderFree(reader);
}

ReplyReader::ReplyReader() : reader_(redisReaderCreateWithFunctions(&Builder::Functions())) {
  if (!reader_) throw std::bad_alloc();
  reader_->privdata = this;
}

void ReplyReader::Feed(std::string_view bytes) {
  // Next reports an error.
  static_cast<void>(redisReaderFeed(reader_.get(), bytes.data(), bytes.size()));
}

Reply* ReplyReader::Next() {
  void* reply = nullptr;
  if (error_.empty() && redisReaderGetReply(reader_.get(), &reply) != REDIS_OK && error_.empty()) {
    error_ = reader_->errstr;
  }
  assert(reply == nullptr || reply == &reply_);
  return static_cast<Reply*>(reply);
}

}  // namespace rollgate::redis
