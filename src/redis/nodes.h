// The servers of a client: one, or the nodes of a Redis Cluster with the map from hash slots to
// them.
//
// Source: the Redis Cluster specification. lib reads the map from the nodes. MOVED corrects one
// slot at once and makes a new map wanted; ASK redirects one request. A node that is lost, late or
// out of service makes a new map wanted as well, because a replica may have taken over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/connection.h"

namespace rollgate::redis {

class Nodes final : private Connection::Owner {
 public:
  /// Hash slots from `first` to `last` belong to a node.
  struct Range {
    std::uint16_t first;
    std::uint16_t last;
    std::string node;
  };

  /// `server` names the only node; empty: a cluster.
  Nodes(Host& host, const ConnectionOptions& options, const std::string& server,
        Connection::Owner& owner);

  /// As Connection::Send. In a cluster, requests wait for the first map.
  void Send(std::unique_ptr<Request> request);
  void Flush(std::uint64_t turn);
  /// The connection to the node of this number, or null if it was forgotten.
  Connection* Find(std::size_t number) const;
  /// Without ranges, no node gave a map: fails the requests that wait for the first one.
  void SetMap(const std::optional<std::vector<Range>>& ranges);
  void DropTimedOut();
  /// Why a request may be late: the name of its node, and what that is waiting for.
  std::string Describe(const Request& late);
  Millis NextDue() const;
  void OnTime(Millis now);
  void Close(const Failure& failure);

  /// Nodes count from 1.
  static constexpr std::size_t kNoNode = 0;
  /// The number of the node for a hash slot, or kNoNode if none is known.
  std::size_t NumberOf(std::uint16_t hash_slot) const;
  std::size_t NumberOf(const std::string& node) { return NodeNamed(node).number(); }
  /// The names of the nodes that own hash slots, and of all that are connected.
  std::vector<std::string> Owners() const;
  std::vector<std::string> Connected() const;
  bool is_cluster() const { return is_cluster_; }
  bool is_up() const;
  std::uint64_t connections() const;

 private:
  void OnAnswer(const Connection& from, std::unique_ptr<Request> request, Reply& reply) override;
  void OnFailure(std::unique_ptr<Request> request, const Failure& failure) override;
  void OnLost() override { wants_map_ = true; }

  Connection& NodeNamed(const std::string& name);
  void Route(std::unique_ptr<Request> request);
  bool FollowRedirection(const Connection& from, std::unique_ptr<Request>& request,
                         std::string_view error);
  void ForgetIdleNodes();

  Host& host_;
  const ConnectionOptions options_;
  const bool is_cluster_;
  Connection::Owner& owner_;

  std::map<std::string, std::unique_ptr<Connection>> nodes_;  ///< by name: host:port in a cluster
  std::size_t nodes_ever_ = 0;
  std::uint64_t forgotten_connections_ = 0;  ///< of nodes that were forgotten
  std::vector<Connection*> owners_;  ///< of each hash slot, or null; of all, not in a cluster
  bool has_map_;
  bool has_new_map_ = false;
  bool wants_map_ = false;
  Millis next_map_at_ = 0;
  std::deque<std::unique_ptr<Request>> waiting_;  ///< for the first map
};

}  // namespace rollgate::redis
