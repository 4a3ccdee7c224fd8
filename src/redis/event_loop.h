// What the Redis client needs of Node's event loop: the only file that includes libuv.
//
// Everything here belongs to the loop's thread. libuv's handles live until the loop has closed
// them, but a callback is never called after its owner is destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

struct uv_loop_s;

namespace rollgate::redis {

/// Milliseconds of a monotonic clock.
using Millis = std::int64_t;

/// An environment's event loop, with a count of one client's handles in it.
class EventLoop {
 public:
  explicit EventLoop(uv_loop_s* loop);

  /// The current time; the loop's own, uv_now, may be old.
  static Millis Now();

  /// Calls `on_idle` when no handle of this object is left in the loop, and `on_empty` when no name
  /// lookup is either, which may take far longer; at once if that is so already. Precondition: all
  /// owners are destroyed, or about to be.
  void WhenEmpty(std::function<void()> on_idle, std::function<void()> on_empty);

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// Calls back when a socket can be read or written. Does not keep the process alive.
class SocketWatch {
 public:
  /// `on_ready(is_readable, is_writable)`: both are true if the socket failed; a read or write then
  /// returns the error.
  SocketWatch(const EventLoop& loop, int socket, std::function<void(bool, bool)> on_ready);
  ~SocketWatch();
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;

  /// Whether to call back for writability as well as for readability.
  void WatchWritable(bool wanted);

 private:
  struct Handle;
  Handle* handle_;
  bool watches_writable_ = false;
};

/// Calls back once before the loop next waits for events. Does not keep the process alive.
class BeforeWait {
 public:
  BeforeWait(const EventLoop& loop, std::function<void()> callback);
  ~BeforeWait();
  BeforeWait(const BeforeWait&) = delete;
  BeforeWait& operator=(const BeforeWait&) = delete;

  /// Requests one callback; further requests before it have no effect.
  void Request();

 private:
  struct Handle;
  Handle* handle_;
};

/// One timer. Keeps the process alive only during KeepProcessAlive(true).
class Timer {
 public:
  Timer(const EventLoop& loop, std::function<void()> callback);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Calls back at this time, or as soon as possible. An earlier pending callback stays.
  void CallAt(Millis at);
  void KeepProcessAlive(bool alive);

 private:
  struct Handle;
  Handle* handle_;
  bool keeps_alive_ = false;
};

/// Whether the host is a numeric address.
bool IsAddress(const std::string& host);

/// Finds the addresses of a host name on a thread of the loop's pool.
class NameLookup {
 public:
  /// Numeric addresses, in the system's order; empty after an error.
  using Callback = std::function<void(std::vector<std::string> addresses, std::string error)>;

  NameLookup(const EventLoop& loop, const std::string& host, Callback callback);
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  /// The error if the lookup could not start, so that no callback follows; else empty.
  const std::string& error() const { return error_; }

 private:
  struct Request;
  Request* request_;
  std::string error_;
};

}  // namespace rollgate::redis
