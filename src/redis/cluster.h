// The way to the nodes of a Redis Cluster: a connection each, and a map of who owns which hash
// slot.
//
// Source: the Redis Cluster specification. The map is read by CLUSTER SLOTS, which every version
// knows. MOVED corrects one slot at once and asks for a new map; ASK sends one request elsewhere.
// A new map is asked for as well where a node is lost, is late or no longer serves, for a replica
// may have taken over.
#pragma once

#include <array>
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

class Cluster final : public Transport, private Connection::Owner {
 public:
  /// `seeds`: where to ask for the map first; at least one.
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
  void OnAnswer(Connection& from, std::unique_ptr<Request> request,
                const redisReply& reply) override;
  void OnFailure(Connection& from, std::unique_ptr<Request> request,
                 const Failure& failure) override;
  void OnSettled() override { owner_.OnSettled(); }
  void OnLost(Connection&) override { wants_map_ = true; }

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
  std::uint32_t asking_ = 0;             ///< which time it is; answers to earlier ones are dropped
  std::size_t asked_ = 0;                ///< nodes that have not answered this time
  std::deque<Connection*> map_sources_;  ///< still to be asked this time
  Millis ask_next_at_ = 0;
  std::deque<std::unique_ptr<Request>> waiting_;  ///< for the first map
};

}  // namespace rollgate::redis
