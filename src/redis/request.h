// One command to a server, and the calls that wait for its reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/command.h"
#include "redis/host.h"
#include "redis/reply.h"

namespace rollgate::redis {

/// Why a call to Redis failed.
struct Failure {
  enum class Kind {
    kTimeout,      ///< no reply within the command's time
    kUnreachable,  ///< no connection, or it was lost before the reply
    kReply,        ///< the server sent an error, or an invalid reply
    kNotFound,     ///< lib found no address for the node, whose number is the message
    kClosed,       ///< the client was closed
  };
  Kind kind;
  std::string message;
};

/// An error reply. lib/stores/redis/failures.js finds its kind in the message.
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
  /// False if the reply must belong to something else: then the replies have lost their order.
  virtual bool CanBeAnsweredBy(const Reply&) const { return true; }

  std::vector<CallId> calls;
  Millis deadline;
  bool timed_out = false;         ///< its calls have failed; a reply is dropped
  std::uint16_t hash_slot = 0;    ///< of its keys, in a cluster
  std::string node;               ///< the node it is for; empty: the node of its hash slot
  std::uint8_t redirections = 0;  ///< how often a cluster has redirected it
  bool asks = false;              ///< ASKING precedes it, and has a reply of its own

  std::list<Request*>::iterator tracked;  ///< for the client
  bool is_tracked = false;
};

/// Any command. Its reply is passed on unchanged.
class PlainRequest : public Request {
 public:
  PlainRequest(Millis deadline, const std::vector<std::string>& words)
      : Request(deadline), words_(words) {}

  void Encode(std::string& command) const override;
  bool CanBeAnsweredBy(const Reply& reply) const override;

 private:
  const std::vector<std::string> words_;
};

/// A Lua script, and its SHA-1 for EVALSHA.
struct Script {
  std::string source;
  std::string sha1;
};

/// What the calls of one limiter have in common.
struct Program {
  Script script;
  std::string key_prefix;    ///< the limiter's namespace
  std::string key_suffix{};  ///< what follows the id in its braces
};

/// What calls ask a script about their keys.
struct Question {
  /// A group without its amounts and the number of its keys: see scripts/frame.lua.
  std::string_view head;
  std::size_t numbers_per_key = 1;  ///< in the reply
  bool is_apart = false;            ///< keys are not read together with others
};

/// The calls with one question in a run of a script. For each key, the reply has the same number of
/// integers for one call.
struct Group {
  Group(std::shared_ptr<const Program> of, const Question& question)
      : program(std::move(of)),
        head(question.head),
        numbers_per_key(question.numbers_per_key),
        is_apart(question.is_apart) {}

  std::shared_ptr<const Program> program;  ///< of the first limiter
  std::string head;                        ///< this and the next as in Question
  std::size_t numbers_per_key;
  bool is_apart;

  void Add(CallId call, const Program& limiter, std::string_view id,
           std::span<const double> amounts = {});

  std::vector<CallId> calls{};
  std::string keys{};                   ///< words
  std::vector<std::size_t> key_ends{};  ///< in `keys`
  std::string amounts{};                ///< as many bytes for each call
};

/// One run of a script, for one or more groups of calls.
class ScriptRequest : public Request {
 public:
  /// All groups have the script of the first.
  ScriptRequest(Millis deadline, Group first) : Request(deadline) { AddGroup(std::move(first)); }

  /// Returns its place.
  std::size_t AddGroup(Group group);
  /// The place of a group like this, at `first` or behind; adds it if there is none.
  std::size_t PlaceOf(const Group& group, std::size_t first);
  void Add(std::size_t group, CallId call, const Program& limiter, std::string_view id,
           std::span<const double> amounts = {});

  const std::vector<Group>& groups() const { return groups_; }
  const Script& script() const { return groups_.front().program->script; }
  std::size_t key_count() const { return calls.size(); }
  bool has_several_limiters() const { return has_several_limiters_; }

  /// Whether the source is sent instead of its SHA-1.
  bool sends_text() const { return sends_text_; }
  void SendText() { sends_text_ = true; }

  std::uint8_t times_unknown = 0;  ///< NOSCRIPT replies

  void Encode(std::string& command) const override;
  bool CanBeAnsweredBy(const Reply& reply) const override;

  /// A request for each key; empty if there is only one key.
  std::vector<std::unique_ptr<Request>> SplitByKey() const;

 private:
  std::vector<Group> groups_;
  std::vector<std::size_t> hashes_of_keys_;
  bool keys_may_repeat_ = false;
  bool has_several_limiters_ = false;
  bool sends_text_ = false;
};

}  // namespace rollgate::redis
