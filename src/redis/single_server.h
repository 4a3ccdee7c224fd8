// A transport to one server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "redis/connection.h"
#include "redis/transport.h"

namespace rollgate::redis {

class SingleServer final : public Transport, private Connection::Owner {
 public:
  SingleServer(const EventLoop& loop, const ConnectionOptions& options, Endpoint endpoint,
               Transport::Owner& owner)
      : owner_(owner), connection_(loop, options, std::move(endpoint), *this) {}

  void Send(std::unique_ptr<Request> request) override { connection_.Send(std::move(request)); }
  void Flush() override { connection_.Flush(); }
  void DropTimedOut() override { connection_.DropTimedOut(); }
  Millis NextDue() const override { return connection_.NextDue(); }
  void OnTime(Millis now) override { connection_.OnTime(now); }
  void Close(const Failure& failure) override { connection_.Close(failure); }
  bool is_cluster() const override { return false; }
  std::vector<std::string> Nodes() const override { return {""}; }
  bool is_up() const override { return connection_.is_up(); }
  std::uint64_t connections() const override { return connection_.connections(); }

 private:
  void OnAnswer(Connection&, std::unique_ptr<Request> request, const redisReply& reply) override {
    owner_.OnAnswer(std::move(request), reply);
  }
  void OnFailure(Connection&, std::unique_ptr<Request> request, const Failure& failure) override {
    owner_.OnFailure(std::move(request), failure);
  }
  void OnSettled() override { owner_.OnSettled(); }

  Transport::Owner& owner_;
  Connection connection_;
};

}  // namespace rollgate::redis
