// One limiter for every algorithm; a Body reads and writes what differs.
#include "core/portable_limiter.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <type_traits>

#include "core/algorithms.h"
#include "core/decider.h"
#include "core/decision.h"
#include "core/portable_bodies.h"
#include "core/portable_state.h"

namespace rollgate {
namespace {

template <class Rules, class Body>
class Limiter final : public PortableLimiter {
  using Account = typename Rules::Account;

 public:
  explicit Limiter(const Policy& policy) : policy_(policy), rules_(policy), body_(rules_) {
    if constexpr (KeepsLog<Rules>) {
      weighted_ = std::make_unique<Limiter<WeightedLog, WeightedBody>>(policy);
    }
  }

  void UseLimits(std::span<const std::uint64_t> limits) override {
    rules_.UseLimits(limits);
    if (weighted_) weighted_->UseLimits(limits);
  }

  Outcome Decide(Bytes bytes, Micros now, const Costs& costs, Recording recording,
                 Generation generation, Decision& decision, std::vector<std::byte>& out) override {
    if (IsForWeighted(bytes, RecordsActions(recording) ? costs : Costs(1))) {
      return weighted_->Decide(bytes, now, costs, recording, generation, decision, out);
    }
    if (recording == Recording::kRecord) {
      return Record(bytes, now, costs, generation, decision, out);
    }
    BytesCarrier carrier(*this);
    if (!carrier.Open(bytes, generation)) return Outcome::kForeign;
    const Decider decider(rules_);
    const Micros cut = Rules::Cut(now);
    const Micros blocked_until = carrier.blocked_by_call();
    if (!RecordsActions(recording) || carrier.Load().At(cut) < blocked_until) {
      decider.Peek(carrier, cut, costs, recording, decision, blocked_until);
      return Outcome::kUnchanged;
    }
    if (!decider.Attempt(carrier, cut, costs, recording, decision)) return Outcome::kUnchanged;
    carrier.Write(now, out);
    return Outcome::kChanged;
  }

  Outcome Settle(Bytes bytes, const Receipt& receipt, const Costs& actual, Micros now,
                 std::vector<std::byte>& out) override {
    if (bytes.empty()) return Outcome::kUnchanged;
    if (IsForWeighted(bytes, actual)) return weighted_->Settle(bytes, receipt, actual, now, out);
    const RoomToRecord scope(rules_, receipt, actual);
    BytesCarrier carrier(*this);
    if (!carrier.Open(bytes, 0)) return Outcome::kForeign;
    if (!carrier.fits()) return Outcome::kUnchanged;
    const Settled settled = Decider(rules_).Settle(carrier, receipt, actual, Rules::Cut(now));
    if (settled == Settled::kNothing) return Outcome::kUnchanged;
    if (settled == Settled::kAll) carrier.SaveNothing();
    carrier.Write(now, out);
    return Outcome::kChanged;
  }

  Outcome BlockFor(Bytes bytes, Micros now, Micros duration, Generation generation,
                   std::vector<std::byte>& out) override {
    if (IsForWeighted(bytes, 1)) return weighted_->BlockFor(bytes, now, duration, generation, out);
    BytesCarrier carrier(*this);
    if (!carrier.Open(bytes, generation)) return Outcome::kForeign;
    const bool ends = duration == 0;
    const Micros at = carrier.Load().At(Rules::Cut(now));
    const bool ends_other = ends && Decider(rules_).EndBlock(carrier, now);
    const Micros until = ends ? kLongAgo : Bounded(at + duration);
    if (!carrier.SetBlockedByCall(until) && !ends_other) return Outcome::kUnchanged;
    carrier.Write(now, out);
    return Outcome::kChanged;
  }

  Micros Lifetime(Bytes bytes, Micros now) const override {
    const Micros usual = Bounded(rules_.lifetime() + policy_.block_retention());
    PortableState state;
    if (!state.Read(bytes)) return usual;
    const Micros block_expiry = state.block.until == kLongAgo
                                    ? kLongAgo
                                    : Bounded(state.block.until + policy_.longest_interval());
    const Micros expiry =
        std::max({Expiry(state.header.moment), block_expiry, state.blocked_by_call});
    return expiry == kLongAgo ? usual : std::max(usual, Bounded(expiry - now));
  }

  std::size_t largest_state() const override {
    const std::size_t own =
        sizeof(PortableState::Header) + body_.largest() + PortableState::kMostBlockBytes;
    return weighted_ ? std::max(own, weighted_->largest_state()) : own;
  }

 private:
  class BytesCarrier {
   public:
    using Account = typename Rules::Account;

    explicit BytesCarrier(Limiter& limiter) : limiter_(limiter) {}

    /// Reads a state, or begins one if there are no bytes. Returns false if they are not a state.
    bool Open(Bytes bytes, Generation generation) {
      state_.header.generation = generation;
      if (!bytes.empty()) {
        if (!state_.Read(bytes)) return false;
        const bool is_ours = state_.header.algorithm == Algorithm();
        fits_ = is_ours && limiter_.body_.Fits(state_);
      }
      const std::optional<Account> opened = limiter_.body_.Open(state_, fits_);
      if (opened) account_.emplace(*opened);
      return opened.has_value();
    }

    /// Whether the state is of this algorithm and as many windows.
    bool fits() const { return fits_; }

    Account Load() { return *account_; }
    Account LoadCopy() { return Load(); }
    Block LoadBlock() const { return state_.block; }
    void Reserve(Account& account, Micros at, const Costs& costs) {
      limiter_.body_.Reserve(account, at, costs);
    }
    void Save(const Account& account, const Block& block) {
      state_.header.version = Body::kVersion;
      state_.header.width = 0;
      state_.header.flags = 0;
      limiter_.body_.Close(account, state_);
      state_.header.algorithm = Algorithm();
      state_.header.moment = account.moment();
      state_.header.generation = account.generation();
      state_.block = block;
      state_.keeps_block = !limiter_.policy_.blocks().empty();
    }
    void SaveNothing() {
      state_.header.moment = kLongAgo;
      state_.header.flags = 0;
      state_.body = {};
      state_.keeps_block = false;
    }
    void Write(Micros now, std::vector<std::byte>& out) {
      if (state_.blocked_by_call <= now) state_.blocked_by_call = kLongAgo;
      state_.Write(out);
    }

    Micros blocked_by_call() const { return state_.blocked_by_call; }
    /// The later end counts; kLongAgo ends the block. Returns whether the state has changed.
    bool SetBlockedByCall(Micros until) {
      const Micros before = state_.blocked_by_call;
      state_.blocked_by_call = until == kLongAgo ? kLongAgo : std::max(before, until);
      if (state_.blocked_by_call == before) return false;
      Save(Load(), LoadBlock());
      return true;
    }

   private:
    std::uint8_t Algorithm() const {
      return static_cast<std::uint8_t>(limiter_.policy_.algorithm());
    }

    Limiter& limiter_;
    PortableState state_;
    bool fits_ = false;
    std::optional<Account> account_;
  };

  Outcome Record(Bytes bytes, Micros now, const Costs& costs, Generation generation,
                 Decision& decision, std::vector<std::byte>& out) {
    const RoomToRecord scope(rules_);
    BytesCarrier carrier(*this);
    if (!carrier.Open(bytes, generation)) return Outcome::kForeign;
    const Micros blocked_until = carrier.blocked_by_call();
    Decider(rules_).Record(carrier, Rules::Cut(now), costs, decision, blocked_until);
    carrier.Write(now, out);
    return Outcome::kChanged;
  }

  /// Whether the state of an id is one of weighted entries, or becomes one with these costs.
  bool IsForWeighted(Bytes bytes, const Costs& costs) const {
    if (!KeepsLog<Rules> || !weighted_) return false;
    PortableState state;
    const bool is_weighted = !bytes.empty() && state.Read(bytes) && state.weighted();
    return is_weighted ||
           (rules_.policy().log_capacity() > WeightedEntries::kMost && costs.uniform() > 1);
  }

  /// When a state with this moment expires, blocks aside.
  Micros Expiry(Micros moment) const {
    if (moment == kLongAgo) return kLongAgo;
    return Bounded(Bounded(rules_.FromTableTime(moment)) + rules_.retention());
  }

  const Policy policy_;  // in its general form
  Rules rules_;
  Body body_;
  /// Logs turn into weighted entries with the first cost above 1, where stamps take more room.
  /// Under other limits such entries stay.
  std::unique_ptr<PortableLimiter> weighted_;
};

}  // namespace

std::unique_ptr<PortableLimiter> PortableLimiter::Create(const Policy& given) {
  const Policy policy = given.ForAnyLimit();
  return WithAlgorithm<std::unique_ptr<PortableLimiter>>(
      policy, [&]<class Rules>() -> std::unique_ptr<PortableLimiter> {
        if constexpr (kNeverVaries<Rules>) {
          return nullptr;
        } else if constexpr (std::is_same_v<Rules, WeightedLog>) {
          return std::make_unique<Limiter<Rules, WeightedBody>>(policy);
        } else if constexpr (KeepsLog<Rules>) {
          return std::make_unique<Limiter<Rules, LogBody<Rules>>>(policy);
        } else {
          using Body = std::conditional_t < requires(const Rules& rules) {
            rules.counts();
          }
          , CountBody<Rules>, StateBody < Rules >> ;
          return std::make_unique<Limiter<Rules, Body>>(policy);
        }
      });
}

}  // namespace rollgate
