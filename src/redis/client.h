// A client of Redis: sends the checks of one turn of the event loop in few commands, and ends every
// call in time, with a result or a failure.
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

#include "core/decision.h"
#include "redis/connection.h"
#include "redis/request.h"
#include "redis/transport.h"

namespace rollgate::redis {

struct ClientOptions {
  ConnectionOptions connection;
  std::vector<Endpoint> endpoints;  ///< one server, or the seeds of a cluster
  bool is_cluster = false;
  Millis command_timeout = 500;    ///< of a call, including its time in queues
  std::size_t max_queue = 10'000;  ///< maximum number of pending calls
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
  std::vector<std::string> policy;  ///< replaces the client's, with as many words; may be empty

  bool operator==(const Attempt&) const = default;
};

class Client final : private Transport::Owner {
 public:
  /// Receives one result for each call, by the call's number; never during the call itself.
  class Sink {
   public:
    /// The script's integers for one key.
    virtual void OnNumbers(CallId call, const redisReply* const* numbers, std::size_t count) = 0;
    virtual void OnReply(CallId call, const redisReply& reply) = 0;
    virtual void OnFailure(CallId call, const Failure& failure) = 0;
    /// There are results to deliver, or the transport went up or down. May make more calls, or
    /// close the client.
    virtual void Deliver() = 0;

   protected:
    ~Sink() = default;
  };

  Client(uv_loop_s* loop, ClientOptions options, Sink& sink);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Each call returns its number, or nothing if too many are pending. Ids are UTF-8.
  std::optional<CallId> Try(std::string_view id, const Attempt& attempt);
  std::optional<CallId> Refund(std::string_view id, const Receipt& receipt,
                               std::optional<std::int64_t> now);
  /// Any command, to a node or to the server of a key.
  std::optional<CallId> Command(const std::vector<std::string>& words, const std::string& node,
                                std::string_view key);

  /// The sink calls this just before it delivers the result of a call, whose number is then free.
  void HandingOn(CallId call) { Unuse(call); }

  /// Sends the open requests before the turn of the loop ends, for a sink with more to deliver.
  void SendNow();

  /// Fails every call. Afterwards only the destructor may be called.
  void Close();
  /// For a closed client: calls `on_settled` when its last results can be delivered, and `on_gone`
  /// when nothing of it is left in the loop.
  void WhenGone(std::function<void()> on_settled, std::function<void()> on_gone) {
    loop_.WhenEmpty(std::move(on_settled), std::move(on_gone));
  }

  const Transport& transport() const { return *transport_; }
  std::size_t pending() const { return pending_; }

 private:
  void OnAnswer(const Connection&, std::unique_ptr<Request> request,
                const redisReply& reply) override;
  void OnFailure(std::unique_ptr<Request> request, const Failure& failure) override;
  void OnSettled() override;

  std::optional<CallId> NewCall();
  void Unuse(CallId call);
  Millis NewDeadline() const { return EventLoop::Now() + options_.command_timeout; }
  std::uint16_t HashSlotOf(std::string_view id);
  ScriptRequest& OpenRequest(std::uint16_t hash_slot, const Attempt& attempt);
  void SendOpen();
  void Send(std::unique_ptr<Request> request);
  void ReportNumbers(const ScriptRequest& request, const redisReply& reply);
  void ReportFailure(const Request& request, const Failure& failure);
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

  /// The requests of this turn, not sent yet: one for each hash slot, all of `open_attempt_`.
  std::vector<std::unique_ptr<Request>> open_;
  std::unordered_map<std::uint16_t, ScriptRequest*> open_by_slot_;
  Attempt open_attempt_;
  std::string key_;

  // If a server does not have the script, one request sends the source and the others wait for it,
  // because the source in each would be long.
  const Request* with_text_ = nullptr;
  std::vector<std::unique_ptr<Request>> without_script_;
  bool sends_again_ = false;  ///< without_script_, at the end of this turn

  std::list<Request*> unanswered_;  ///< those without results, in the order of their deadlines
  std::size_t pending_ = 0;         ///< calls without results

  // A number is used again once its request has ended, timed out or not, and its result was
  // delivered: `uses_` counts these two.
  std::vector<std::uint8_t> uses_;
  std::vector<CallId> free_calls_;
  bool has_results_ = false;
  bool was_up_ = false;       ///< the transport, when results were delivered last
  bool is_in_grace_ = false;  ///< the loop was busy; no deadline passes before grace_until_
  Millis grace_until_ = 0;
  bool is_closed_ = false;
};

}  // namespace rollgate::redis
