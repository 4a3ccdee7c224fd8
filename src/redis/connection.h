// A connection to one server: it is made on the first request, and made again once after it is lost
// and then on further requests.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "redis/host.h"
#include "redis/reply.h"
#include "redis/request.h"

namespace rollgate::redis {

struct ConnectionOptions {
  bool has_tls = false;
  Millis connect_timeout = 2000;  ///< includes finding the address and the greeting
  Millis retry_min = 50;
  Millis retry_max = 2000;
  std::uint64_t jitter_seed = 0;  ///< spreads the retries of many clients over time
  /// If a server owes a reply and completes none for this long, the connection is closed.
  Millis longest_silence = 500;
};

/// How to connect to a node: lib finds out for each attempt.
struct Route {
  std::size_t addresses = 0;  ///< how many, tried in turn
  std::string greeting;       ///< commands such as AUTH, in the format of Command
  std::size_t greetings = 0;  ///< how many
  bool wants_master = false;  ///< whether the last one is ROLE, and its answer must be master
};

/// Requests are sent and answered in the order of the calls of Send. None is sent twice: requests
/// without a reply fail when the connection breaks.
class Connection final {
 public:
  /// Receives the results of requests; never during Send, except failures that are known at once.
  /// May send more requests during these calls.
  class Owner {
   public:
    /// The reply may be moved from.
    virtual void OnAnswer(const Connection& from, std::unique_ptr<Request> request,
                          Reply& reply) = 0;
    virtual void OnFailure(std::unique_ptr<Request> request, const Failure& failure) = 0;
    /// A connection that has served is lost.
    virtual void OnLost() {}

   protected:
    ~Owner() = default;
  };

  /// `number` identifies the node; `name` is for messages, and in a cluster its host and port.
  Connection(Host& host, const ConnectionOptions& options, std::size_t number, std::string name,
             Owner& owner);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Takes a request for the next Flush. Without a connection, the request waits for the next try
  /// if that is before its deadline; else it fails.
  void Send(std::unique_ptr<Request> request);
  /// Writes the requests to the socket, unless the server may have closed it; called after each
  /// event, with the number of the event loop's turn.
  void Flush(std::uint64_t turn);
  /// Without a route, lib found none.
  void Connect(std::uint32_t attempt, const std::optional<Route>& route);

  /// What happens to the socket of this number.
  /// With TLS: the server has accepted the connection, and the handshake begins.
  void OnAccepted(std::uint32_t socket);
  /// The socket takes bytes now.
  void OnConnected(std::uint32_t socket);
  void OnBytes(std::uint32_t socket, std::string_view bytes);
  /// The server closed the connection, or it failed.
  void OnEnd(std::uint32_t socket, const std::string& error);
  /// Whether the socket takes more bytes, or has to send others first.
  void OnWritable(std::uint32_t socket, bool is_writable);

  /// Drops requests that timed out before they were sent.
  void DropTimedOut();
  /// When OnTime must be called next.
  Millis NextDue() const;
  void OnTime(Millis now);
  /// Fails all requests, and returns to the initial state.
  void Close(const Failure& failure);

  /// Its name, and what it is waiting for.
  std::string Describe() const;
  std::size_t number() const { return number_; }
  const std::string& name() const { return name_; }
  bool is_up() const { return state_ == State::kUp; }
  /// How often the connection was made so far.
  std::uint64_t connections() const { return connections_; }
  /// Whether it has requests, sent or not.
  bool is_busy() const { return !sent_.empty() || !waiting_.empty(); }

 private:
  enum class State {
    kIdle,        ///< until the next request
    kFinding,     ///< waits for a route
    kConnecting,  ///< until the socket takes bytes
    kGreeting,    ///< until the server accepts the greeting
    kUp,
    kWaiting,  ///< for the next attempt
  };

  bool IsCurrent(std::uint32_t socket) const { return is_open_ && socket == socket_; }
  void Find();
  void ConnectToNextAddress();
  void CloseSocket();
  std::string HintAtTls() const;
  void OnGreeted();
  void Read(std::string_view bytes);
  void OnReply(Reply& reply);
  void OnGreetingReply(const Reply& reply);
  bool MayWrite(std::uint64_t turn);
  void WriteWaiting();
  void Break(Failure failure);
  void LoseIfBroken();
  void Lose(Failure failure);
  void FailAll(bool waiting_too, const Failure& failure);
  Failure Unreachable(const std::string& reason) const;

  Host& host_;
  const ConnectionOptions& options_;
  const std::size_t number_;
  const std::string name_;
  Owner& owner_;

  State state_ = State::kIdle;
  std::uint32_t attempt_ = 0;
  Route route_;
  std::size_t next_address_ = 0;  ///< in the route
  std::uint32_t socket_ = 0;      ///< the latest
  bool is_open_ = false;          ///< whether it is
  bool is_accepted_ = false;      ///< by the server
  bool is_writable_ = true;
  std::unique_ptr<ReplyReader> reader_;
  std::string to_write_;
  std::deque<std::unique_ptr<Request>> waiting_;  ///< not written
  std::deque<std::unique_ptr<Request>> sent_;     ///< not answered
  std::size_t greetings_ = 0;                     ///< not answered
  bool has_received_ = false;                     ///< bytes, since the connection was made
  std::size_t unasked_ = 0;                       ///< bytes while nothing was sent
  bool has_served_ = false;                       ///< a request, since the connection was made
  std::optional<Failure> broken_;                 ///< the connection is lost as soon as possible
  Failure last_failure_;
  Millis connect_by_ = 0;
  Millis address_by_ = 0;
  Millis retry_at_ = 0;
  Millis silent_since_ = 0;  ///< the latest reply, or the first request after a pause
  std::chrono::system_clock::time_point heard_at_;  ///< the latest reply
  std::optional<std::uint64_t> paused_;             ///< the turn of the first request after a pause
  int failed_tries_ = 0;
  std::uint64_t connections_ = 0;
  std::minstd_rand random_;
};

}  // namespace rollgate::redis
