// One command to a server, and the calls that wait for its reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/command.h"
#include "redis/event_loop.h"

namespace rollgate::redis {

/// Why a call to Redis failed.
struct Failure {
  enum class Kind {
    kTimeout,      ///< no reply within the command's time
    kUnreachable,  ///< no connection, or it was lost before the reply
    kReply,        ///< the server sent an error, or an invalid reply
    kClosed,       ///< the client was closed
  };
  Kind kind;
  std::string message;
};

/// An error reply. lib/redis/failures.js finds its kind in the message.
inline Failure FromErrorReply(std::string message) {
  return {Failure::Kind::kReply, std::move(message)};
}

/// The number of a call, which the client assigns.
using CallId = std::uint32_t;

class Request {
 public:
  explicit Request(Millis deadline) : deadline(deadline) {}
  virtual ~Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  virtual void Encode(std::string& command) const = 0;

  std::vector<CallId> calls;
  Millis deadline;
  bool timed_out = false;         ///< its calls have failed; a reply is dropped
  std::uint16_t hash_slot = 0;    ///< of its keys, in a cluster
  std::string node;               ///< the node it is for; empty: the node of its hash slot
  std::uint8_t redirections = 0;  ///< how often a cluster has redirected it

  std::list<Request*>::iterator tracked;  ///< for the client
  bool is_tracked = false;
};

/// Any command. Its reply is passed on unchanged.
class PlainRequest : public Request {
 public:
  PlainRequest(Millis deadline, std::string command)
      : Request(deadline), command_(std::move(command)) {}

  void Encode(std::string& command) const override { command += command_; }

 private:
  std::string command_;
};

/// A Lua script, and its SHA-1 for EVALSHA.
struct Script {
  std::string source;
  std::string sha1;
};

/// The first argument of a script: static strings.
struct Operation {
  std::string_view word;
  std::string_view word_if_keys_repeat;
};

/// One run of a script on one or more keys. For each key, the reply has the same number of integers
/// for one call.
class ScriptRequest : public Request {
 public:
  /// `script` must outlive the request. `arguments` follow the operation: `argument_count` words in
  /// the format of AppendWord.
  ScriptRequest(Millis deadline, const Script& script, const Operation& operation,
                std::string arguments, std::size_t argument_count, std::size_t numbers_per_key)
      : Request(deadline),
        script_(script),
        operation_(operation),
        arguments_(std::move(arguments)),
        argument_count_(argument_count),
        numbers_per_key_(numbers_per_key) {}

  void AddKey(std::string_view store_namespace, std::string_view id);

  std::size_t key_count() const { return key_ends_.size(); }
  std::size_t numbers_per_key() const { return numbers_per_key_; }

  /// Whether the source is sent instead of its SHA-1.
  bool sends_text() const { return sends_text_; }
  void SendText() { sends_text_ = true; }

  std::uint8_t times_unknown = 0;  ///< NOSCRIPT replies

  void Encode(std::string& command) const override;

  /// A request for each key; empty if there is only one key.
  std::vector<std::unique_ptr<Request>> SplitByKey() const;

 private:
  const Script& script_;
  Operation operation_;
  std::string arguments_;
  std::size_t argument_count_;
  std::size_t numbers_per_key_;
  std::string keys_;                   ///< words
  std::vector<std::size_t> key_ends_;  ///< in keys_
  std::vector<std::size_t> hashes_of_ids_;
  bool keys_may_repeat_ = false;
  bool sends_text_ = false;
};

}  // namespace rollgate::redis
