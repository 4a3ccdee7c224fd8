// One connection to one server: opened on first use, opened again by itself, never in the way of
// the event loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "redis/event_loop.h"
#include "redis/failure.h"
#include "redis/request.h"
#include "redis/tls.h"

struct redisAsyncContext;
struct redisReply;

namespace rollgate::redis {

/// Where a server listens: a host and a port, or a socket in the file system.
struct Endpoint {
  std::string host;
  int port = 6379;
  std::string path;

  /// How it is shown in messages.
  std::string Name() const;
};

struct ConnectionOptions {
  std::string username;  ///< empty: the default user
  std::string password;  ///< empty: none. In no message.
  int db = 0;
  std::string name;                       ///< for CLIENT SETNAME; empty: none
  std::shared_ptr<const TlsContext> tls;  ///< null: without TLS
  Millis connect_timeout = 2000;
  Millis retry_min = 50;
  Millis retry_max = 2000;
  std::uint64_t jitter_seed = 0;  ///< what spreads the tries of many clients in time
  /// A server that owes an answer and has sent nothing for so long is given up.
  Millis longest_silence = 2000;
};

/// Requests are sent in the order they came in and answered in that order. None is ever sent twice:
/// what was on its way when a connection broke has failed.
class Connection {
 public:
  /// Who is told what came of requests. Never told while it calls Send, except of a failure that is
  /// known at once.
  class Owner {
   public:
    virtual void OnAnswer(Connection& from, std::unique_ptr<Request> request,
                          const redisReply& reply) = 0;
    virtual void OnFailure(Connection& from, std::unique_ptr<Request> request,
                           const Failure& failure) = 0;
    /// Something happened, all of it has been told: the moment to hand results on.
    virtual void OnSettled() = 0;
    /// The connection was lost, or could not be made.
    virtual void OnLost(Connection&) {}

   protected:
    ~Owner() = default;
  };

  Connection(const EventLoop& loop, const ConnectionOptions& options, Endpoint endpoint,
             Owner& owner);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Takes a request for the next Flush. While there is no connection it waits for one if the next
  /// try is in time, else it fails.
  void Send(std::unique_ptr<Request> request);

  /// Writes what was sent; called once in each turn of the loop.
  void Flush();

  /// Forgets requests that have timed out before they were sent.
  void DropTimedOut();

  /// Fails all that is waiting or on its way, and goes back to the start.
  void Close(const Failure& failure);

  /// When OnTime has something to do next.
  Millis NextDue() const;
  void OnTime(Millis now);

  const Endpoint& endpoint() const { return endpoint_; }
  bool is_up() const { return state_ == State::kUp; }
  /// Whether it has requests, sent or not.
  bool is_busy() const { return on_the_wire_ > 0 || !waiting_.empty(); }
  std::uint64_t connections() const { return connections_; }

 private:
  enum class State {
    kIdle,        ///< never used
    kConnecting,  ///< looking for the name, connecting, or greeting
    kUp,
    kWaiting,  ///< for the next try
  };
  struct Hooks;
  friend struct Hooks;

  void Connect();
  void ConnectToNextAddress();
  void OnConnected();
  void Greet();
  void OnGreeted();
  void Write(std::unique_ptr<Request> request);
  void OnSocket(bool is_readable, bool is_writable);
  void CheckContext();
  void Lose(Failure failure);
  void FreeContext();
  void FailAll(bool waiting_too, const Failure& failure);

  const EventLoop& loop_;
  const ConnectionOptions& options_;
  const Endpoint endpoint_;
  Owner& owner_;

  State state_ = State::kIdle;
  redisAsyncContext* context_ = nullptr;
  ssl_st* tls_session_ = nullptr;  ///< of the context
  std::unique_ptr<SocketWatch> watch_;
  std::unique_ptr<NameLookup> lookup_;
  std::deque<std::string> addresses_;  ///< still to be tried
  std::deque<std::unique_ptr<Request>> waiting_;
  std::vector<std::unique_ptr<Request>> unanswered_;  ///< when the context went
  std::string buffer_;
  std::size_t on_the_wire_ = 0;
  int greetings_ = 0;  ///< answers to greetings still to come
  bool has_to_write_ = false;
  bool is_writing_ = false;
  bool is_connected_ = false;
  bool has_answered_ = false;      ///< since the connection was made
  bool was_told_unasked_ = false;  ///< something that nobody asked for; likewise
  std::unique_ptr<Failure> greeting_failure_;
  Failure last_failure_;
  Failure context_failure_;
  Millis connect_by_ = 0;
  Millis address_by_ = 0;
  Millis retry_at_ = 0;
  Millis silent_since_ = 0;
  int failed_tries_ = 0;
  std::uint64_t connections_ = 0;
  std::minstd_rand random_;
};

}  // namespace rollgate::redis
