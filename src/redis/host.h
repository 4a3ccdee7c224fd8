// What the client needs of its host, which has the clock, the sockets and the names of servers. The
// client itself does no input or output.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rollgate::redis {

/// Milliseconds of a monotonic clock.
using Millis = std::int64_t;

inline Millis Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

/// One socket of a client: a node has one at a time, and its sockets are counted.
struct SocketId {
  std::size_t node;
  std::uint32_t number;
};

/// What the client wants. None of these functions may call the client: the host notes the wish, and
/// fulfils it after the function of the client that it was called from.
class Host {
 public:
  /// Client::Connect must follow, with these numbers of the node and of the attempt.
  virtual void FindRoute(std::size_t node, std::uint32_t attempt, const std::string& name) = 0;
  /// Client::SetMap must follow.
  virtual void FindMap() = 0;
  /// Connects to the address at this place of the node's route.
  virtual void Open(SocketId socket, std::size_t address) = 0;
  virtual void Write(SocketId socket, std::string bytes) = 0;
  virtual void Close(SocketId socket) = 0;
  /// The node of this number is not used any more.
  virtual void Forget(std::size_t node) = 0;
  /// Client::OnTurn must be called in the next turn of the event loop.
  virtual void WaitForTurn() = 0;

 protected:
  ~Host() = default;
};

}  // namespace rollgate::redis
