// A connection to each node of a Redis Cluster, and the map from hash slots to nodes.
//
// Source: the Redis Cluster specification. CLUSTER SLOTS, which every version knows, returns the
// map. MOVED corrects one slot at once and leads to a request for a new map; ASK redirects one
// request. A node that is lost, late or read-only leads to a new map as well, because a replica may
// have taken over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "redis/connection.h"
#include "redis/transport.h"

namespace rollgate::redis {

class Cluster final : public Transport, private Transport::Owner {
 public:
  /// `seeds`: the nodes that are asked for the map first; at least one.
  Cluster(const EventLoop& loop, const ConnectionOptions& options, std::vector<Endpoint> seeds,
          Transport::Owner& owner);

  void Send(std::unique_ptr<Request> request) override;
  void Flush() override;
  void DropTimedOut() override;
  Millis NextDue() const override;
  void OnTime(Millis now) override;
  void Close(const Failure& failure) override;
  bool is_cluster() const override { return true; }
  std::vector<std::string> Nodes() const override;
  bool is_up() const override;
  std::uint64_t connections() const override;

 private:
  void OnAnswer(const Connection& from, std::unique_ptr<Request> request,
                const redisReply& reply) override;
  void OnFailure(std::unique_ptr<Request> request, const Failure& failure) override;
  void OnSettled() override { owner_.OnSettled(); }
  void OnLost() override { wants_map_ = true; }

  struct MapRequest;

  Connection& NodeAt(const std::string& host, int port);
  void Route(std::unique_ptr<Request> request);
  bool FollowRedirection(const Connection& from, std::unique_ptr<Request>& request,
                         std::string_view error);
  void AskForMap();
  void AskNextForMap();
  void OnMap(const Connection& from, const redisReply& reply);
  void OnNoMap(const Failure& failure);
  bool ReadMap(const Connection& from, const redisReply& reply);
  void ForgetIdleNodes();

  const EventLoop& loop_;
  const ConnectionOptions options_;
  const std::vector<Endpoint> seeds_;
  Transport::Owner& owner_;

  std::map<std::string, std::unique_ptr<Connection>> nodes_;  ///< by Endpoint::Name
  std::vector<Connection*> owners_;                           ///< of each hash slot, or null
  bool has_map_ = false;
  bool wants_map_ = false;
  Millis next_map_at_ = 0;
  bool is_asking_for_map_ = false;
  std::uint32_t asking_ = 0;  ///< number of the round; answers to earlier ones are dropped
  std::size_t asked_ = 0;     ///< nodes that have not answered in this round
  std::deque<Connection*> map_sources_;  ///< not yet asked in this round
  Millis ask_next_at_ = 0;
  std::deque<std::unique_ptr<Request>> waiting_;  ///< for the first map
};

}  // namespace rollgate::redis
