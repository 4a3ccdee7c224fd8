// One command on its way to a server, and the calls that wait for its answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "redis/command.h"
#include "redis/event_loop.h"

namespace rollgate::redis {

/// Whoever waits, by a number that the client gave out.
using CallId = std::uint32_t;

class Request {
 public:
  explicit Request(Millis deadline) : deadline(deadline) {}
  virtual ~Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  /// Appends the command as it has to be sent now.
  virtual void Encode(std::string& command) const = 0;

  /// The same with one key each, where it has several; else empty.
  virtual std::vector<std::unique_ptr<Request>> SplitByKey() const { return {}; }

  std::vector<CallId> calls;
  Millis deadline;
  bool timed_out = false;         ///< its calls have been told; what comes of it is dropped
  std::uint16_t hash_slot = 0;    ///< of its keys, in a cluster
  std::string node;               ///< the one node it is for; empty: that of its hash slot
  std::uint8_t redirections = 0;  ///< how often a cluster has sent it on

  std::list<Request*>::iterator tracked;  ///< the client's own place for it
  bool is_tracked = false;
};

/// Any command, whose answer is handed on as it is.
class PlainRequest : public Request {
 public:
  PlainRequest(Millis deadline, std::string command)
      : Request(deadline), command_(std::move(command)) {}

  void Encode(std::string& command) const override { command += command_; }

 private:
  std::string command_;
};

/// A Lua script and the SHA-1 by which servers know it.
struct Script {
  std::string source;
  std::string sha1;
};

/// What a script is asked to do, in its words, which outlive all requests.
struct Operation {
  std::string_view word;
  std::string_view word_if_keys_repeat;
};

/// One run of a script on one or more keys; each key answers one call with the same number of
/// integers.
class ScriptRequest : public Request {
 public:
  /// `script` must outlive the request. `arguments` are what follows the operation:
  /// `argument_count` words as AppendWord writes them.
  ScriptRequest(Millis deadline, const Script& script, const Operation& operation,
                std::string arguments, std::size_t argument_count, std::size_t numbers_per_key)
      : Request(deadline),
        script_(script),
        operation_(operation),
        arguments_(std::move(arguments)),
        argument_count_(argument_count),
        numbers_per_key_(numbers_per_key) {}

  void AddKey(std::string_view store_namespace, std::string_view id);

  std::size_t key_count() const { return key_count_; }
  std::size_t numbers_per_key() const { return numbers_per_key_; }

  /// Whether the script itself is sent instead of its SHA-1.
  bool sends_text() const { return sends_text_; }
  void SendText() { sends_text_ = true; }

  /// How many times a server has answered that it does not know the script.
  std::uint8_t times_unknown = 0;

  void Encode(std::string& command) const override;
  std::vector<std::unique_ptr<Request>> SplitByKey() const override;

 private:
  const Script& script_;
  Operation operation_;
  std::string arguments_;
  std::size_t argument_count_;
  std::size_t numbers_per_key_;
  std::string keys_;  ///< words
  std::vector<std::size_t> hashes_of_ids_;
  bool keys_may_repeat_ = false;
  std::size_t key_count_ = 0;
  bool sends_text_ = false;
};

}  // namespace rollgate::redis
