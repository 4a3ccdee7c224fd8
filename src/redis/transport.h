// The interface of a client to its servers: one connection, or those of a cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "redis/event_loop.h"
#include "redis/request.h"

struct redisReply;

namespace rollgate::redis {

class Connection;

class Transport {
 public:
  /// Receives the results of requests; never during Send, except failures that are known at once.
  /// May send more requests during these calls.
  class Owner {
   public:
    virtual void OnAnswer(const Connection& from, std::unique_ptr<Request> request,
                          const redisReply& reply) = 0;
    virtual void OnFailure(std::unique_ptr<Request> request, const Failure& failure) = 0;
    /// All results of an event were reported, and can be delivered.
    virtual void OnSettled() = 0;
    /// A connection was lost, or could not be made.
    virtual void OnLost() {}

   protected:
    ~Owner() = default;
  };

  virtual ~Transport() = default;

  /// Takes a request for the next Flush. Without a connection, the request waits for the next try
  /// if that is before its deadline; else it fails.
  virtual void Send(std::unique_ptr<Request> request) = 0;
  /// Writes the requests to the sockets; called once in each turn of the loop.
  virtual void Flush() = 0;
  /// Drops requests that timed out before they were sent.
  virtual void DropTimedOut() = 0;
  /// When OnTime must be called next.
  virtual Millis NextDue() const = 0;
  virtual void OnTime(Millis now) = 0;
  /// Fails all requests, and closes all connections.
  virtual void Close(const Failure& failure) = 0;

  /// Whether all keys of a request must have one hash slot.
  virtual bool is_cluster() const = 0;
  /// Names of the known nodes that own slots, for Request::node.
  virtual std::vector<std::string> Nodes() const = 0;
  virtual bool is_up() const = 0;
  /// How many connections were made so far.
  virtual std::uint64_t connections() const = 0;
};

}  // namespace rollgate::redis
