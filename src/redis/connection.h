// One connection to one server: opened on first use, reopened after a failure, never blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "redis/event_loop.h"
#include "redis/request.h"
#include "redis/tls.h"
#include "redis/transport.h"

struct redisAsyncContext;

namespace rollgate::redis {

/// The address of a server: a host and a port, or the path of a Unix socket.
struct Endpoint {
  std::string host;
  int port = 6379;
  std::string path;

  /// For messages.
  std::string Name() const;
};

struct ConnectionOptions {
  std::string username;  ///< empty: the default user
  std::string password;  ///< empty: none. Never part of a message.
  int db = 0;
  std::string name;                       ///< for CLIENT SETNAME; empty: none
  std::shared_ptr<const TlsContext> tls;  ///< null: without TLS
  Millis connect_timeout = 2000;
  Millis retry_min = 50;
  Millis retry_max = 2000;
  std::uint64_t jitter_seed = 0;  ///< spreads the retries of many clients over time
  /// If a server owes a reply and sends nothing for this long, the connection is closed.
  Millis longest_silence = 2000;
};

/// Requests are sent and answered in the order of the calls of Send. None is sent twice: requests
/// without a reply fail when the connection breaks.
class Connection final : public Transport {
 public:
  Connection(const EventLoop& loop, const ConnectionOptions& options, Endpoint endpoint,
             Owner& owner);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Send(std::unique_ptr<Request> request) override;
  void Flush() override;
  void DropTimedOut() override;
  Millis NextDue() const override;
  void OnTime(Millis now) override;
  /// Returns to the initial state.
  void Close(const Failure& failure) override;
  bool is_cluster() const override { return false; }
  std::vector<std::string> Nodes() const override { return {""}; }
  bool is_up() const override { return state_ == State::kUp; }
  std::uint64_t connections() const override { return connections_; }

  const Endpoint& endpoint() const { return endpoint_; }
  /// Whether it has requests, sent or not.
  bool is_busy() const { return on_the_wire_ > 0 || !waiting_.empty(); }

 private:
  enum class State {
    kIdle,        ///< never used
    kConnecting,  ///< looking up the name, connecting, or authenticating
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
  void HandleWrite();
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
  std::deque<std::string> addresses_;  ///< not yet tried
  std::deque<std::unique_ptr<Request>> waiting_;
  std::vector<std::unique_ptr<Request>> unanswered_;  ///< when the context was freed
  std::string buffer_;
  std::size_t on_the_wire_ = 0;
  int greetings_ = 0;  ///< unanswered commands of Greet
  bool has_to_write_ = false;
  bool is_writing_ = false;
  bool is_connected_ = false;
  bool has_answered_ = false;          ///< since the connection was made
  bool got_unexpected_reply_ = false;  ///< a reply came that no command asked for
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
