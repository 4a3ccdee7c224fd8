// The way from a client to the servers: one connection, or those of a cluster.
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
  /// Who is told what came of requests. May send more while it is told.
  class Owner {
   public:
    virtual void OnAnswer(std::unique_ptr<Request> request, const redisReply& reply) = 0;
    virtual void OnFailure(std::unique_ptr<Request> request, const Failure& failure) = 0;
    /// All that happened has been told: the moment to hand results on.
    virtual void OnSettled() = 0;

   protected:
    ~Owner() = default;
  };

  virtual ~Transport() = default;

  virtual void Send(std::unique_ptr<Request> request) = 0;
  /// Writes what was sent; called once in each turn of the loop.
  virtual void Flush() = 0;
  /// Forgets requests that have timed out before they were sent.
  virtual void DropTimedOut() = 0;
  virtual Millis NextDue() const = 0;
  virtual void OnTime(Millis now) = 0;
  /// Fails everything.
  virtual void Close(const Failure& failure) = 0;

  /// Whether keys have to be sent by hash slot.
  virtual bool is_cluster() const = 0;
  /// Names of all nodes that own slots, for Request::node, as far as is known.
  virtual std::vector<std::string> Nodes() const = 0;
  virtual bool is_up() const = 0;
  /// How many connections have been made so far.
  virtual std::uint64_t connections() const = 0;
};

}  // namespace rollgate::redis
