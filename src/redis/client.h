// A client of Redis: gathers the checks of one turn of the loop into few commands, and sees to it
// that every call is answered in time, one way or another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "redis/connection.h"
#include "redis/failure.h"
#include "redis/request.h"
#include "redis/transport.h"

namespace rollgate::redis {

struct ClientOptions {
  ConnectionOptions connection;
  std::vector<Endpoint> endpoints;  ///< one server, or where to begin with a cluster
  bool is_cluster = false;
  Millis command_timeout = 500;    ///< of a call, from the moment it is made
  std::size_t max_queue = 10'000;  ///< most calls under way at once
  std::string key_prefix;          ///< the limiter's namespace
  Script script;
  std::vector<std::string> policy;  ///< the last arguments of the script
  std::size_t windows = 1;
};

/// An attempt or a peek: see the script.
struct Attempt {
  std::uint64_t cost = 1;
  bool records = true;
  bool wants_all = false;           ///< the full reply, or only the time left
  std::optional<std::int64_t> now;  ///< us; else the server's own time
  std::vector<std::string> policy;  ///< in place of the client's own, of as many words; or none

  bool operator==(const Attempt&) const = default;
};

/// What it takes to give an attempt back.
struct Receipt {
  std::int64_t at = 0;  ///< us
  std::int64_t generation = 0;
  std::uint64_t cost = 1;
};

class Client final : private Transport::Owner {
 public:
  /// Is told of each call once, by the number that the call was given; never while a call is made.
  class Sink {
   public:
    /// The script's integers for one key.
    virtual void OnNumbers(CallId call, const redisReply* const* numbers, std::size_t count) = 0;
    virtual void OnReply(CallId call, const redisReply& reply) = 0;
    virtual void OnFailure(CallId call, const Failure& failure) = 0;
    /// Results have been told: hand them on; or whether the transport is up has changed. May make
    /// more calls, or close the client.
    virtual void Deliver() = 0;

   protected:
    ~Sink() = default;
  };

  Client(uv_loop_s* loop, ClientOptions options, Sink& sink);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// The calls; each returns its number, or nothing if too many are under way. Ids are UTF-8.
  std::optional<CallId> Try(std::string_view id, const Attempt& attempt);
  std::optional<CallId> Refund(std::string_view id, const Receipt& receipt,
                               std::optional<std::int64_t> now);
  /// Any command, to a node or to the server of a key.
  std::optional<CallId> Command(const std::vector<std::string>& words, const std::string& node,
                                std::string_view key);

  /// To be said by the sink just before it hands on the result of a call: its number is free then.
  void HandingOn(CallId call) { Unuse(call); }

  /// Sends what was asked so far, before the turn of the loop is over: for a sink with more to
  /// tell.
  void SendNow();

  /// Fails every call. Nothing may be called afterwards but the destructor.
  void Close();
  /// Calls back once a closed client can tell its last results, and then once nothing of it is left
  /// in the loop.
  void WhenGone(std::function<void()> on_settled, std::function<void()> on_gone) {
    loop_.WhenEmpty(std::move(on_settled), std::move(on_gone));
  }

  const Transport& transport() const { return *transport_; }
  std::size_t pending() const { return pending_; }

 private:
  void OnAnswer(std::unique_ptr<Request> request, const redisReply& reply) override;
  void OnFailure(std::unique_ptr<Request> request, const Failure& failure) override;
  void OnSettled() override;

  std::optional<CallId> NewCall();
  void Unuse(CallId call);
  Millis NewDeadline() const { return EventLoop::Now() + options_.command_timeout; }
  ScriptRequest& OpenRequest(std::uint16_t hash_slot, const Attempt& attempt);
  void SendOpen();
  void Send(std::unique_ptr<Request> request);
  void TellNumbers(const ScriptRequest& request, const redisReply& reply);
  void TellFailure(const Request& request, const Failure& failure);
  void Finish(Request& request);
  void SendAgain();
  void Track(Request& request, std::list<Request*>::iterator before);
  void Untrack(Request& request);
  void OnTimer();
  void TimeOut(Millis now);
  Millis NextDue() const;
  void ArmTimer();

  EventLoop loop_;
  const ClientOptions options_;
  Sink& sink_;
  std::unique_ptr<BeforeWait> before_wait_;
  std::unique_ptr<Timer> timer_;
  std::unique_ptr<Transport> transport_;

  /// What this turn has asked so far; all of the same attempt, one request for each hash slot.
  std::vector<std::unique_ptr<Request>> open_;
  std::unordered_map<std::uint16_t, ScriptRequest*> open_by_slot_;
  Attempt open_attempt_;
  std::string key_;

  // Where a server has not the script, one request takes its text there and the others wait for
  // that: together they would be as long as all texts.
  const Request* with_text_ = nullptr;
  std::vector<std::unique_ptr<Request>> without_script_;
  bool sends_again_ = false;  ///< without_script_, at the end of this turn

  std::list<Request*> untold_;  ///< whose calls have not been told, in the order of their deadlines
  std::size_t pending_ = 0;     ///< calls that have not been told

  // A number is not given out again while its request is under way, timed out or not, nor before
  // its result was handed on: these are what uses_ counts.
  std::vector<std::uint8_t> uses_;
  std::vector<CallId> free_calls_;
  bool has_results_ = false;
  bool was_up_ = false;       // the transport, when results were handed on last
  bool is_in_grace_ = false;  ///< nothing is late before grace_until_, for the loop was
  Millis grace_until_ = 0;
  bool is_closed_ = false;
};

}  // namespace rollgate::redis
