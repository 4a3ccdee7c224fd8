// The interface of a client to its servers: one connection, or those of a cluster.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "redis/event_loop.h"
#include "redis/failure.h"
#include "redis/request.h"

struct redisReply;

namespace rollgate::redis {

class Transport {
 public:
  /// Receives the results of requests. May send more requests during these calls.
  class Owner {
   public:
    virtual void OnAnswer(std::unique_ptr<Request> request, const redisReply& reply) = 0;
    virtual void OnFailure(std::unique_ptr<Request> request, const Failure& failure) = 0;
    /// All results of an event were reported, and can be delivered.
    virtual void OnSettled() = 0;

   protected:
    ~Owner() = default;
  };

  virtual ~Transport() = default;

  virtual void Send(std::unique_ptr<Request> request) = 0;
  /// These are as in Connection.
  virtual void Flush() = 0;
  virtual void DropTimedOut() = 0;
  virtual Millis NextDue() const = 0;
  virtual void OnTime(Millis now) = 0;
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
