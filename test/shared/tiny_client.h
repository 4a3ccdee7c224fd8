// A store of logs of two actions at most on a table, in the fewest steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/identity.h"
#include "core/time.h"
#include "shared/table.h"

namespace rollgate::testing {

constexpr Micros kWindow = 100;
constexpr std::size_t kStateWords = 2;

/// A log of at most two actions: enough to tell whether one was lost, or is another id's.
struct Log {
  static constexpr Micros kNone = -1000;

  Micros older = kNone;
  Micros newest = kNone;

  /// The moment that was recorded, or -1.
  Micros Attempt(Micros now, int max) {
    const Micros at = std::max(now, newest);
    const Micros oldest = max == 1 ? newest : older;
    if (oldest > at - kWindow) return -1;
    older = newest;
    newest = at;
    return at;
  }
  bool Refund(Micros at) {
    if (newest == at && at != kNone) {
      newest = std::exchange(older, kNone);
      return true;
    }
    return older == at && at != kNone && (older = kNone, true);
  }
  bool is_empty() const { return newest == kNone; }
  Micros expires() const { return newest + kWindow; }
};

/// What a peek tells; -1 of an id that is not known.
inline Micros Told(const Log& log) {
  return log.newest * 10'000 + log.older;
}

struct Call {
  enum Kind { kAttempt, kRefund, kPeek, kClear, kClearAll };
  Kind kind;
  int id = 0;
  Micros now = 0;  ///< or the action that a refund takes back
};

inline Call Attempt(int id, Micros now) {
  return {Call::kAttempt, id, now};
}
inline Call Refund(int id, Micros at) {
  return {Call::kRefund, id, at};
}
inline Call Peek(int id) {
  return {Call::kPeek, id};
}
inline Call Clear(int id) {
  return {Call::kClear, id};
}
inline Call ClearAll() {
  return {Call::kClearAll};
}

using Calls = std::vector<Call>;

/// What a store makes of a table, in short.
template <class Access>
class Client {
 public:
  /// `ids` are the calls'. They outlive the client.
  Client(const std::vector<Identity>& ids, int max, const shared::View& view, std::size_t entry)
      : ids_(ids), max_(max), table_(view, entry) {}

  /// The moment that was recorded, or -1; whether there was anything; or Told.
  Micros Do(const Call& call) {
    const Identity& id = ids_[static_cast<std::size_t>(call.id)];
    switch (call.kind) {
      case Call::kAttempt:
        for (;;) {
          Micros at = call.now;
          if (table_.Find(id)) {
            Log log = Read(id);
            at = log.Attempt(call.now, max_);
            if (at == -1 || Replace(log, id)) return at;
          } else {
            using Insertion = typename shared::Table<Access>::Insertion;
            const Insertion insertion = table_.Insert(call.now, [&](Micros earliest) {
              Log log;
              at = log.Attempt(std::max(call.now, earliest), max_);
              Write(log, id);
              return shared::Saved{log.expires(), 2};
            });
            if (insertion != Insertion::kLost) return at;
          }
        }
      case Call::kRefund:
        for (;;) {
          if (!table_.Find(id)) return 0;
          Log log = Read(id);
          if (!log.Refund(call.now)) return 0;
          if (log.is_empty() ? table_.Remove() : Replace(log, id)) return 1;
        }
      case Call::kPeek: {
        if (!table_.Find(id)) return -1;
        const Log log = Read(id);
        return Told(log);
      }
      case Call::kClear:
        while (table_.Find(id)) {
          if (table_.Remove()) return 1;
        }
        return 0;
      case Call::kClearAll:
        table_.Clear();
        return 0;
    }
    return 0;
  }

 private:
  // Each word says whose it is.
  static std::uint64_t Encode(Micros moment, const Identity& id) {
    return id.low << kMomentBits | static_cast<std::uint64_t>(moment - Log::kNone);
  }
  static Micros Decode(std::uint64_t word, const Identity& id) {
    if (word >> kMomentBits != id.low) throw std::logic_error("a log is another id's");
    return static_cast<Micros>(word & ((std::uint64_t{1} << kMomentBits) - 1)) + Log::kNone;
  }

  Log Read(const Identity& id) {
    const std::uint64_t* state = table_.state();
    return {Decode(state[0], id), Decode(state[1], id)};
  }
  void Write(const Log& log, const Identity& id) {
    table_.state()[0] = Encode(log.older, id);
    table_.state()[1] = Encode(log.newest, id);
  }
  bool Replace(const Log& log, const Identity& id) {
    Write(log, id);
    return table_.Replace({log.expires(), 2});
  }

  static constexpr int kMomentBits = 40;

  const std::vector<Identity>& ids_;
  int max_;
  shared::Table<Access> table_;
};

}  // namespace rollgate::testing
