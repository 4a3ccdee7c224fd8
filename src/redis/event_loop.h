// What the Redis client needs of Node's event loop; the only part that knows libuv.
//
// Everything here belongs to the loop's thread. Handles outlive their owners until the loop has let
// them go; a callback is never called after its owner is destroyed.
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

/// An environment's event loop, and how much of this library is left in it.
class EventLoop {
 public:
  explicit EventLoop(uv_loop_s* loop);

  /// The time now, not the loop's idea of it, which may be old.
  static Millis Now();

  /// Calls back once no handle of this object is left in the loop, and then once nothing is: a
  /// lookup that has begun may take far longer. At once if so it is. All owners must be gone or on
  /// their way.
  void WhenEmpty(std::function<void()> on_idle, std::function<void()> on_empty);

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// Tells when a socket can be read or written. Keeps no process alive.
class SocketWatch {
 public:
  /// `on_ready(is_readable, is_writable)`; both where the socket failed, so that whoever reads or
  /// writes finds out why.
  SocketWatch(const EventLoop& loop, int socket, std::function<void(bool, bool)> on_ready);
  ~SocketWatch();
  SocketWatch(const SocketWatch&) = delete;
  SocketWatch& operator=(const SocketWatch&) = delete;

  /// Whether to tell of writability too. Readability is always told.
  void WatchWritable(bool wanted);

 private:
  struct Handle;
  Handle* handle_;
  bool watches_writable_ = false;
};

/// Calls back once before the loop next waits for events. Keeps no process alive.
class BeforeWait {
 public:
  BeforeWait(const EventLoop& loop, std::function<void()> callback);
  ~BeforeWait();
  BeforeWait(const BeforeWait&) = delete;
  BeforeWait& operator=(const BeforeWait&) = delete;

  /// Asks for the next call; asking again before it comes changes nothing.
  void Request();

 private:
  struct Handle;
  Handle* handle_;
};

/// One timer. Keeps the process alive only while it is told to.
class Timer {
 public:
  Timer(const EventLoop& loop, std::function<void()> callback);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  /// Calls back at this time, or as soon as it can; a call that is due earlier stays.
  void CallAt(Millis at);
  void KeepProcessAlive(bool alive);

 private:
  struct Handle;
  Handle* handle_;
  bool keeps_alive_ = false;
};

/// Whether this is an address as it stands, not a name.
bool IsAddress(const std::string& host);

/// Finds the addresses of a host name on a thread of the loop's pool.
class NameLookup {
 public:
  /// Numeric addresses, in the system's order; else empty and why.
  using Callback = std::function<void(std::vector<std::string> addresses, std::string error)>;

  NameLookup(const EventLoop& loop, const std::string& host, Callback callback);
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  /// Why there will be no callback, where the name cannot even be looked for; else empty.
  const std::string& error() const { return error_; }

 private:
  struct Request;
  Request* request_;
  std::string error_;
};

}  // namespace rollgate::redis
