// What the Redis client needs of Node's event loop: the only file that includes libuv.
//
// Everything here belongs to the loop's thread. libuv's handles live until the loop has closed
// them, but a callback is never called after its owner is destroyed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

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

  /// Calls back when no handle of this object is left in the loop; at once if that is so already.
  /// Precondition: all owners are destroyed, or about to be.
  void WhenEmpty(std::function<void()> on_empty);

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// Where a server listens: a numeric address and a port, or the path of a Unix socket.
struct Address {
  std::string host;
  int port = 0;
  std::string path;

  bool operator==(const Address&) const = default;
};

/// A connection to a server. Does not keep the process alive, except while it is being made and
/// while bytes wait to be sent.
class Stream {
 public:
  /// Receives what happens to the stream, and may destroy it.
  class Owner {
   public:
    /// `error` is empty if the connection was made.
    virtual void OnConnected(const std::string& error) = 0;
    /// The bytes are valid during the call only.
    virtual void OnBytes(std::string_view bytes) = 0;
    /// The server closed the connection, or it failed.
    virtual void OnEnd(const std::string& error) = 0;

   protected:
    ~Owner() = default;
  };

  Stream(const EventLoop& loop, const Address& to, Owner& owner);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Called once. Returns an error if it cannot start, and then does not call OnConnected.
  std::string Connect();
  /// Precondition: connected.
  void Write(std::string_view bytes);
  /// Whether bytes, the end or an error arrived that the loop has not read yet, and soon will.
  bool HasUnread() const;

 private:
  struct Handle;
  Handle* handle_;
  const Address to_;
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

}  // namespace rollgate::redis
