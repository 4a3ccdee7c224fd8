// The bytes of a state, low ones first:
//
// clang-format off
//   u8   version (1)
//   u8   algorithm
//   u8   flags: bit 0: ends with a block; bit 1: the log's `displaced`
//   u8   bytes of a stamp, in a log
//   u32  life
//   u32  limits: a hash of the windows, for numbers that were counted under others mean nothing
//   u32  0
//   i64  moment: the id's newest action, or with GCRA its arrival time or its expiry
//   log: a stamp for each action but the newest, oldest first: the low bytes of its time
//   others: what the algorithm keeps of an id besides its moment
//   block, if flags say so: i64 until, u8 offences
// clang-format on
#include "core/portable_limiter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "core/account_algorithms.h"
#include "core/block.h"
#include "core/judgement.h"
#include "core/ring_log.h"
#include "core/sliding_window_log.h"

namespace rollgate {
namespace {

static_assert(std::endian::native == std::endian::little, "states are written low bytes first");

constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kHasBlock = 1;
constexpr std::uint8_t kDisplaced = 2;

struct Header {
  std::uint8_t version = kVersion;
  std::uint8_t algorithm = 0;
  std::uint8_t flags = 0;
  std::uint8_t width = 0;
  std::uint32_t life = 0;
  std::uint32_t limits = 0;
  std::uint32_t reserved = 0;
  Micros moment = 0;
};
static_assert(sizeof(Header) == 24);

/// A state taken apart; `body` lies within the bytes it came from.
struct Parts {
  Header header;
  PortableLimiter::Bytes body;
  Block block;
};

/// False for bytes that are no state.
bool TakeApart(PortableLimiter::Bytes bytes, Parts& parts) {
  if (bytes.size() < sizeof(Header)) return false;
  Header& header = parts.header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.version != kVersion || header.reserved != 0 ||
      header.algorithm >= static_cast<std::uint8_t>(Algorithm::kEnd) ||
      (header.flags & ~(kHasBlock | kDisplaced)) != 0 || header.width > 8 ||
      header.life >> kLifeBits != 0) {
    return false;
  }
  bytes = bytes.subspan(sizeof header);
  if ((header.flags & kHasBlock) != 0) {
    if (bytes.size() < Block::kBytes) return false;
    parts.block = Block::Load(&bytes[bytes.size() - Block::kBytes]);
    parts.block.until = std::clamp(parts.block.until, kLongAgo, kLongest);
    bytes = bytes.first(bytes.size() - Block::kBytes);
  }
  parts.body = bytes;
  return true;
}

void PutTogether(const Parts& parts, std::vector<std::byte>& out) {
  const bool has_block = (parts.header.flags & kHasBlock) != 0;
  out.resize(sizeof(Header) + parts.body.size() + (has_block ? Block::kBytes : 0));
  std::memcpy(out.data(), &parts.header, sizeof(Header));
  std::copy(parts.body.begin(), parts.body.end(), out.begin() + sizeof(Header));
  if (has_block) parts.block.Store(&out[sizeof(Header) + parts.body.size()]);
}

/// FNV-1a of what counts depend on.
std::uint32_t HashOfLimits(const Policy& policy) {
  std::uint32_t hash = 2166136261u;
  const auto add = [&hash](std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte, word >>= 8) hash = (hash ^ (word & 0xff)) * 16777619u;
  };
  for (const Window& window : policy.windows()) {
    add(static_cast<std::uint64_t>(window.interval));
    if (!policy.sets_max()) add(window.max);
  }
  return hash;
}

/// What the two kinds of states have in common.
class Base : public PortableLimiter {
 public:
  Outcome Attempt(Bytes state, Micros now, std::uint64_t cost, std::uint32_t life,
                  Decision& decision, std::vector<std::byte>& out) final {
    Parts parts = Begin(life);
    if (!state.empty() && !TakeApart(state, parts)) return Outcome::kForeign;
    return Judged(parts, now, cost, decision, &out);
  }

  Outcome Peek(Bytes state, Micros now, std::uint64_t cost, Decision& decision) final {
    Parts parts = Begin(0);
    if (!state.empty() && !TakeApart(state, parts)) return Outcome::kForeign;
    return Judged(parts, now, cost, decision, nullptr);
  }

  Micros Lifetime(Bytes state, Micros now) const final {
    const Micros usual = Bounded(LongestLifetime() + policy_.block_retention());
    Parts parts;
    if (!TakeApart(state, parts)) return usual;
    const Micros block_expiry = parts.block.until == kLongAgo
                                    ? kLongAgo
                                    : Bounded(parts.block.until + policy_.longest_interval());
    const Micros expiry = std::max(Expiry(parts.header.moment), block_expiry);
    return expiry == kLongAgo ? usual : std::max(usual, Bounded(expiry - now));
  }

 protected:
  explicit Base(const Policy& policy) : policy_(policy), limits_(HashOfLimits(policy)) {}

  /// How long from its making an action can matter by windows and minDifference.
  virtual Micros LongestLifetime() const = 0;
  /// From when on a state with this moment does not matter any more, blocks aside.
  virtual Micros Expiry(Micros moment) const = 0;

  /// Decides; where there is an `out`, records there.
  virtual Outcome Judged(Parts& parts, Micros now, std::uint64_t cost, Decision& decision,
                         std::vector<std::byte>* out) = 0;

  Parts Begin(std::uint32_t life) const {
    Parts parts;
    parts.header.algorithm = static_cast<std::uint8_t>(policy_.algorithm());
    parts.header.life = life;
    parts.header.limits = limits_;
    parts.header.moment = kLongAgo;
    return parts;
  }

  bool IsOurs(const Header& header) const {
    return header.algorithm == static_cast<std::uint8_t>(policy_.algorithm());
  }

  /// Writes a state: `parts` with this body and block.
  void Write(Parts& parts, Bytes body, const Block& block, std::vector<std::byte>& out) const {
    parts.body = body;
    parts.block = block;
    parts.header.algorithm = static_cast<std::uint8_t>(policy_.algorithm());
    parts.header.limits = limits_;
    parts.header.flags &= kDisplaced;
    if (!policy_.blocks().empty()) parts.header.flags |= kHasBlock;
    PutTogether(parts, out);
  }

  std::size_t FrameBytes() const {
    return sizeof(Header) + (policy_.blocks().empty() ? 0 : Block::kBytes);
  }

  Policy policy_;
  std::uint32_t limits_;
};

/// The log; its actions are laid out as a ring for the time of a call.
template <std::unsigned_integral Stamp>
class PortableLog final : public Base {
  using Log = RingLog<Stamp>;

 public:
  explicit PortableLog(const Policy& policy) : Base(policy) {}

  Outcome Refund(Bytes state, const Receipt& receipt, Micros,
                 std::vector<std::byte>& out) override {
    Parts parts = Begin(0);
    if (state.empty()) return Outcome::kUnchanged;
    if (!TakeApart(state, parts)) return Outcome::kForeign;
    if (!IsOurs(parts.header) || parts.header.life != receipt.token) {
      return Outcome::kUnchanged;
    }
    std::optional<Log> log = Open(parts, 0);
    if (!log) return Outcome::kForeign;
    if (log->size() == 0 || !sliding_window_log::Refund(*log, policy_, receipt.at, receipt.cost)) {
      return Outcome::kUnchanged;
    }
    Close(parts, *log, parts.block, out);
    return Outcome::kChanged;
  }

  void SetMax(std::uint64_t max, bool records) override { policy_.SetMax(max, records); }

  std::size_t largest_state() const override {
    return FrameBytes() + std::size_t{CapacityFor(0) - 1} * sizeof(Stamp);
  }

 private:
  Micros LongestLifetime() const override { return policy_.retention(); }
  Micros Expiry(Micros moment) const override {
    return moment == kLongAgo ? kLongAgo : Bounded(Bounded(moment) + policy_.retention());
  }

  Outcome Judged(Parts& parts, Micros now, std::uint64_t cost, Decision& decision,
                 std::vector<std::byte>* out) override {
    if (!IsOurs(parts.header)) parts.header.moment = kLongAgo;
    std::optional<Log> opened = Open(parts, 0);
    if (!opened) return Outcome::kForeign;
    Log& log = *opened;
    Block block = policy_.blocks().empty() ? Block() : parts.block;
    const Verdict verdict = sliding_window_log::Decide(log, policy_, now, cost, block);
    const bool starts_block = StartsBlock(verdict, policy_, block);
    sliding_window_log::Describe(log, policy_, verdict, now, cost, decision, block);
    decision.token = parts.header.life;
    const bool records = Records(verdict, policy_);
    if (out == nullptr || (!records && !starts_block)) return Outcome::kUnchanged;
    if (records) {
      log = *Open(parts, cost);
      sliding_window_log::Record(log, policy_, verdict, cost);
    }
    Close(parts, log, block, *out);
    return Outcome::kChanged;
  }

  /// How many actions a log may hold that has this many. Where the max is set it grows no further
  /// than that, and stays as long as it is.
  std::uint32_t CapacityFor(std::uint64_t actions) const {
    if (!policy_.sets_max()) return policy_.log_capacity();
    const std::uint64_t capacity = std::max(actions, policy_.least_capacity());
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(capacity, kLongestLog));
  }

  /// The log of a state, with room for `more` actions as far as its capacity goes; nothing if the
  /// state is none.
  std::optional<Log> Open(const Parts& parts, std::uint64_t more) {
    const bool is_empty = parts.header.moment == kLongAgo;
    const std::size_t width = parts.header.width;
    if (!is_empty && (parts.header.moment < -kLongest || parts.header.moment > kLongest ||
                      (width != 4 && width != 8) || parts.body.size() % width != 0)) {
      return std::nullopt;
    }
    std::size_t older = is_empty ? 0 : parts.body.size() / width;
    const std::uint32_t capacity = CapacityFor(older + 1);
    // Under lower limits the oldest are cut off, as by refusals.
    // What a full log would lose may still have to be counted.
    if (policy_.exceeds_log() && older + 1 + more > capacity) throw std::bad_alloc();
    const std::size_t cut = older - std::min<std::size_t>(older, capacity - 1);
    older -= cut;
    const auto room = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(older + more, std::uint64_t{capacity} - 1));
    ring_.resize(room * sizeof(Stamp));
    LogHead head;
    head.displaced = !is_empty && ((parts.header.flags & kDisplaced) != 0 || cut > 0);
    head.newest = is_empty ? 0 : parts.header.moment;
    head.size = is_empty ? 0 : 1;
    std::uint64_t last_age = std::uint64_t{kLongest} * 2;
    for (std::size_t i = cut; i < cut + older; ++i) {
      const std::uint64_t age = AgeOf(&parts.body[i * width], width, head.newest);
      if (age > last_age) return std::nullopt;
      last_age = age;
      // Older than a Stamp of this policy can tell is outside of all its windows.
      if (age > std::uint64_t{Log::kLongestRetention}) continue;
      const auto stamp = static_cast<Stamp>(static_cast<std::uint64_t>(head.newest) - age);
      std::memcpy(&ring_[(head.size - 1) * sizeof(Stamp)], &stamp, sizeof stamp);
      ++head.size;
    }
    return Log(head, ring_.data(), room, capacity);
  }

  /// How long before the newest action a stamp was made; the rest of its time follows from that.
  static std::uint64_t AgeOf(const std::byte* stamp, std::size_t width, Micros newest) {
    if (width == 4) {
      std::uint32_t bits;
      std::memcpy(&bits, stamp, sizeof bits);
      return static_cast<std::uint32_t>(static_cast<std::uint32_t>(newest) - bits);
    }
    std::uint64_t bits;
    std::memcpy(&bits, stamp, sizeof bits);
    return static_cast<std::uint64_t>(newest) - bits;
  }

  void Close(Parts& parts, const Log& log, const Block& block, std::vector<std::byte>& out) {
    body_.resize(log.size() == 0 ? 0 : (log.size() - 1) * sizeof(Stamp));
    for (std::uint32_t n = log.size(); n > 1; --n) {
      const auto stamp = static_cast<Stamp>(log.Nth(n));
      std::memcpy(&body_[(log.size() - n) * sizeof(Stamp)], &stamp, sizeof stamp);
    }
    parts.header.moment = log.size() == 0 ? kLongAgo : log.Nth(1);
    parts.header.width = sizeof(Stamp);
    parts.header.flags = log.displaced() ? kDisplaced : 0;
    Write(parts, body_, block, out);
  }

  std::vector<std::byte> ring_;
  std::vector<std::byte> body_;
};

/// The algorithms that keep a few numbers.
template <class Rules>
class PortableAccount final : public Base {
  using Account = typename Rules::Account;

 public:
  explicit PortableAccount(const Policy& policy)
      : Base(policy), rules_(policy), body_(rules_.state_bytes()) {}

  Outcome Refund(Bytes state, const Receipt& receipt, Micros now,
                 std::vector<std::byte>& out) override {
    Parts parts = Begin(0);
    if (state.empty()) return Outcome::kUnchanged;
    if (!TakeApart(state, parts)) return Outcome::kForeign;
    if (!Fits(parts)) return Outcome::kUnchanged;
    Account account = Open(parts);
    if (!account.IsSound()) return Outcome::kForeign;
    if (!account.Refund(receipt, Rules::Cut(now))) return Outcome::kUnchanged;
    parts.header.moment = account.moment();
    parts.header.life = account.life();
    Write(parts, body_, parts.block, out);
    return Outcome::kChanged;
  }

  void SetMax(std::uint64_t max, bool records) override {
    policy_.SetMax(max, records);
    rules_.SetMax(max);
  }

  std::size_t largest_state() const override { return FrameBytes() + rules_.state_bytes(); }

 private:
  Micros LongestLifetime() const override { return rules_.lifetime(); }
  Micros Expiry(Micros moment) const override {
    if (moment == kLongAgo) return kLongAgo;
    return Bounded(Bounded(rules_.FromTableTime(moment)) + rules_.retention());
  }

  Outcome Judged(Parts& parts, Micros reading, std::uint64_t cost, Decision& decision,
                 std::vector<std::byte>* out) override {
    const Micros now = Rules::Cut(reading);
    Account account = Open(parts);
    if (!account.IsSound()) return Outcome::kForeign;
    Block block = policy_.blocks().empty() ? Block() : parts.block;
    const Verdict verdict = Judge(account, rules_.policy(), block, now, cost);
    const bool starts_block = StartsBlock(verdict, rules_.policy(), block);
    const bool records = cost > 0 && Records(verdict, rules_.policy());
    if (records) account.Record(verdict.at, cost);
    Describe(account, rules_.policy(), block, verdict, now, cost, decision);
    decision.token = account.Token();
    if (out == nullptr || (!records && !starts_block)) return Outcome::kUnchanged;
    parts.header.moment = account.moment();
    parts.header.life = account.life();
    parts.header.width = 0;
    parts.header.flags = 0;
    Write(parts, body_, block, *out);
    return Outcome::kChanged;
  }

  bool Fits(const Parts& parts) const {
    return IsOurs(parts.header) && parts.header.limits == limits_ &&
           parts.body.size() == body_.size();
  }

  Account Open(const Parts& parts) {
    if (!Fits(parts)) return Account::Begin(rules_, body_.data(), parts.header.life);
    std::copy(parts.body.begin(), parts.body.end(), body_.begin());
    return Account(rules_, body_.data(), parts.header.moment, parts.header.life);
  }

  Rules rules_;
  std::vector<std::byte> body_;
};

}  // namespace

std::unique_ptr<PortableLimiter> PortableLimiter::Create(const Policy& policy) {
  const auto make = [&]<class Rules>() -> std::unique_ptr<PortableLimiter> {
    return std::make_unique<PortableAccount<Rules>>(policy);
  };
  auto limiter = WithAccountAlgorithm<std::unique_ptr<PortableLimiter>>(policy, make);
  if (limiter) return limiter;
  if (policy.retention() <= RingLog<std::uint32_t>::kLongestRetention) {
    return std::make_unique<PortableLog<std::uint32_t>>(policy);
  }
  return std::make_unique<PortableLog<std::uint64_t>>(policy);
}

}  // namespace rollgate
