// A client of Redis: sends the checks of one turn of the event loop in few commands, and ends every
// call in time, with a result or a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "redis/nodes.h"
#include "redis/reply.h"
#include "redis/request.h"

namespace rollgate::redis {

struct ClientOptions {
  ConnectionOptions connection;
  std::string server;              ///< the name of the only server; empty: a cluster
  Millis command_timeout = 500;    ///< of a call, including its time in queues
  std::size_t max_queue = 10'000;  ///< maximum number of pending calls to each node
};

/// One limiter's calls on a client, gathered in each turn of the loop into few runs of its script.
class Limiter {
 public:
  explicit Limiter(Program program)
      : program_(std::make_shared<const Program>(std::move(program))) {}

 private:
  friend class Client;

  std::shared_ptr<const Program> program_;
  /// A group of a request that further calls can join.
  struct OpenGroup {
    ScriptRequest* request = nullptr;
    std::size_t place = 0;
  };
  std::uint64_t open_turn_ = 0;       ///< the client's, in which these are valid
  std::optional<Group> empty_group_;  ///< for the latest question
  std::unordered_map<std::uint16_t, OpenGroup> open_by_slot_;
};

class Client final : private Connection::Owner {
 public:
  /// Receives one result for each call, by the call's number; never during the call itself. May not
  /// call the client.
  class Sink {
   public:
    /// The script's integers for one key.
    virtual void OnNumbers(CallId call, std::span<const Reply> numbers) = 0;
    virtual void OnReply(CallId call, Reply reply) = 0;
    virtual void OnFailure(CallId call, const Failure& failure) = 0;

   protected:
    ~Sink() = default;
  };

  Client(Host& host, ClientOptions options, Sink& sink);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Each call returns its number, or nothing if too many are pending. Ids are UTF-8. OnTurn must
  /// follow before the turn of the loop ends, or SendNow sooner.
  /// `is_change`: the question settles or blocks.
  std::optional<CallId> Ask(Limiter& limiter, std::string_view id, const Question& question,
                            bool is_change, std::span<const double> amounts = {});
  /// Any command, to a node of a cluster, or to the server of a key.
  std::optional<CallId> Command(const std::vector<std::string>& words, const std::string& node,
                                std::string_view key);

  /// The sink calls this just before it delivers the result of a call, whose number is then free.
  void HandingOn(CallId call) { Unuse(call); }

  /// Fails every call. Afterwards no function does anything.
  void Close();

  /// What happens in the host. When these functions return, everything was written that can be.
  /// The turn of the event loop ends in which calls were made.
  void OnTurn();
  /// Sends them earlier.
  void SendNow();
  /// It is NextDue, or later.
  void OnTime();
  /// As those of Nodes and Connection.
  void Connect(std::size_t node, std::uint32_t attempt, const std::optional<Route>& route);
  void SetMap(const std::optional<std::vector<Nodes::Range>>& ranges);
  void OnAccepted(SocketId socket);
  void OnConnected(SocketId socket);
  void OnBytes(SocketId socket, std::string_view bytes);
  void OnEnd(SocketId socket, const std::string& error);
  void OnWritable(SocketId socket, bool is_writable);

  /// When OnTime must be called next; the largest number if never.
  Millis NextDue() const;

  const Nodes& nodes() const { return nodes_; }
  std::size_t pending() const { return pending_; }
  /// How many more calls to the node of this number may be pending.
  std::size_t RoomAt(std::size_t node) const;

 private:
  void OnAnswer(const Connection& from, std::unique_ptr<Request> request, Reply& reply) override;
  void OnFailure(std::unique_ptr<Request> request, const Failure& failure) override;

  std::optional<CallId> NewCall(std::size_t node);
  void Unuse(CallId call);
  Millis NewDeadline() const { return Now() + options_.command_timeout; }
  std::uint16_t HashSlotOf(const Limiter& limiter, std::string_view id);
  Limiter::OpenGroup OpenGroupOf(Limiter& limiter, std::uint16_t hash_slot,
                                 const Question& question);
  ScriptRequest* OpenRequestFor(const Group& group, std::uint16_t hash_slot, Millis deadline);
  bool HasRoom(const ScriptRequest* open, Millis deadline) const;
  void SendOpen();
  void Send(std::unique_ptr<Request> request);
  void ReportNumbers(const ScriptRequest& request, const Reply& reply);
  void ReportFailure(const Request& request, const Failure& failure);
  void Finish(Request& request);
  void SendAgain();
  void Track(Request& request, std::list<Request*>::iterator before);
  void Untrack(Request& request);
  void TimeOut(Millis now);
  void Flush();

  const ClientOptions options_;
  Sink& sink_;
  Nodes nodes_;

  std::vector<std::unique_ptr<Request>> open_;  ///< the requests of this turn, not sent yet
  /// The latest of them, by hash slot and script.
  std::map<std::pair<std::uint16_t, std::string_view>, ScriptRequest*> open_by_script_;
  std::uint64_t turn_ = 1;  ///< changes when they are sent
  std::string key_;

  /// If a server does not have a script, one request sends the source and the others wait for it,
  /// because the source in each would be long.
  struct Source {
    const Request* sender;
    std::vector<std::unique_ptr<Request>> waiting;
  };
  std::map<std::pair<std::size_t, std::string>, Source> sources_;  ///< by node and SHA-1
  std::vector<std::unique_ptr<Request>> to_send_again_;            ///< at the end of this turn

  std::list<Request*> unanswered_;  ///< those without results, in the order of their deadlines
  std::size_t pending_ = 0;         ///< calls without results

  /// A number is used again once its request has ended, timed out or not, and its result was
  /// delivered.
  struct Call {
    std::size_t node;   ///< the one that it was made to; 0 if none was known
    std::uint8_t uses;  ///< counts these two
  };
  std::vector<Call> calls_;
  std::vector<CallId> free_calls_;
  std::vector<std::size_t> calls_of_nodes_;  ///< numbers in use, by node
  std::uint64_t loop_turn_ = 0;
  Millis grace_until_ = 0;  ///< the loop was busy; no deadline passes before this
  bool is_closed_ = false;
};

}  // namespace rollgate::redis
