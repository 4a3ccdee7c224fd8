// Processes that really race on one region, are killed, and push each other's ids out.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "shared/file.h"
#include "shared/region.h"
#include "shared/regions.h"
#include "shared/shared_store.h"
#include "shared/table.h"
#include "shared/tiny_region.h"
#include "support/limiter.h"

namespace rollgate::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kTenth = 10;
#else
constexpr std::size_t kTenth = 1;
#endif

/// The clock of all processes of the host.
Micros SystemNow() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Where refusals do not count, so that hammering lets as much through as a window allows.
PolicyOptions Uncounted(const Window& window) {
  return {{window}, 0, false};
}

/// The outcome of an attempt.
struct Seen {
  Micros at;
  std::uint32_t id;
  bool allowed;
};

/// What one process writes and its parent reads, even after the process was killed.
struct Notes {
  static constexpr std::size_t kRoom = 1'250'000;

  Notes() {}  // leaves pages alone that are never used

  std::atomic<std::size_t> size{0};
  std::atomic<std::uint64_t> evicted{0};
  std::atomic<int> most_tries{0};
  Seen seen[kRoom];
};
/// So many attempts on random ids.
void Hammer(SharedStore& store, std::uint32_t ids, std::size_t attempts, std::uint64_t seed,
            Notes& notes) {
  std::vector<Identity> identities;
  for (std::uint32_t i = 0; i < ids; ++i) {
    const std::u16string id{static_cast<char16_t>('a' + i % 26),
                            static_cast<char16_t>('A' + i / 26)};
    identities.push_back(IdentityOf(id, store.secret()));
  }
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed + 1));
  WindowUse use;
  Decision decision;
  decision.windows = {&use, 1};
  for (std::size_t i = 0; i < attempts; ++i) {
    const auto id = static_cast<std::uint32_t>(random() % ids);
    store.Decide(identities[id], SystemNow(), 1, Recording::kAttempt, decision);
    notes.most_tries = store.most_tries();
    notes.seen[i] = {decision.verdict.at, id, decision.verdict.allowed()};
    notes.size.store(i + 1, std::memory_order_release);
  }
  notes.evicted = store.stats().evicted;
}

/// Processes that hammer on one region, and what they have noted.
class SharedRace : public ::testing::Test {
 protected:
  using Attach = std::function<std::unique_ptr<SharedStore>()>;

  struct Racer {
    std::vector<SharedBetweenProcesses<Notes>> notes;  ///< of each thread
    std::unique_ptr<Child> process = {};
  };

  Attach Attaching(const Window& window, std::size_t max_keys = 1000) const {
    return [this, window, max_keys] {
      return SharedStore::Attach(Policy(Uncounted(window)), name_.Options(max_keys));
    };
  }

  /// Starts a process with so many threads.
  void Start(const Attach& attach, std::uint32_t ids, std::size_t attempts, int threads = 1) {
    Racer racer{.notes = std::vector<SharedBetweenProcesses<Notes>>(threads)};
    const std::uint64_t seed = started_ += 10;
    racer.process = std::make_unique<Child>([&](const Child::Send&) {
      std::vector<std::thread> all;
      for (std::size_t i = 0; i < racer.notes.size(); ++i) {
        all.emplace_back(
            [&, i] { Hammer(*attach(), ids, attempts, seed + i, *racer.notes[i].operator->()); });
      }
      for (std::thread& thread : all) thread.join();
    });
    racers_.push_back(std::move(racer));
  }

  /// Adds what a process has seen that has ended.
  void Collect(const Racer& racer) {
    for (const auto& notes : racer.notes) {
      std::copy_if(notes->seen, notes->seen + notes->size, std::back_inserter(seen_), keeps_);
      attempts_ += notes->size;
      evicted_ += notes->evicted;
      most_tries_ = std::max<int>(most_tries_, notes->most_tries);
    }
  }

  /// What is kept of what all have seen when the last one has ended.
  std::vector<Seen> AllSeen() {
    for (const Racer& racer : racers_) {
      EXPECT_TRUE(racer.process->Ends());
      Collect(racer);
    }
    racers_.clear();
    return std::exchange(seen_, {});
  }

  /// Looks at the region when nobody is attached, once all entries are tidied up.
  std::vector<std::string> Audited(const Window& window) const {
    const shared::File file = shared::OpenOwn(name_.path());
    shared::Header header;
    if (pread(file.descriptor(), &header, sizeof header, 0) != sizeof header) return {"no header"};
    const shared::Mapping region(file, shared::Geometry(header.buckets, header.record_words));
    // A limiter takes the first entry that is free, so this many have them all, and tidy up.
    std::vector<std::unique_ptr<SharedStore>> stores;
    for (std::uint64_t i = 0; i < region.view().header->entries_used; ++i) {
      stores.push_back(Attaching(window)());
    }
    return Audit(region.view());
  }

  /// Kills processes at random moments and starts others in their place.
  std::vector<Seen> SeenWhileKilling(const Attach& attach, std::uint32_t ids) {
    constexpr std::size_t kAttempts = 100'000;
    std::minstd_rand random(4711);
    for (int i = 0; i < 3; ++i) Start(attach, ids, kAttempts);
    for (std::size_t i = 0; i < 1000 / kTenth; ++i) {
      // At a random moment, which no clock can be moved to.
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 6000));
      const auto victim = racers_.begin() + static_cast<std::ptrdiff_t>(random() % racers_.size());
      victim->process->Kill();
      Collect(*victim);
      racers_.erase(victim);
      Start(attach, ids, kAttempts);
    }
    std::vector<Seen> all = AllSeen();
    EXPECT_GT(attempts_, 1000u);
    // No call waits: it tries again.
    EXPECT_LT(most_tries_, 400);
    return all;
  }

  const RegionName name_;
  std::vector<Racer> racers_;
  /// What the test needs: a process that has kept millions of attempts takes long to fork.
  std::function<bool(const Seen&)> keeps_ = [](const Seen&) { return true; };
  std::vector<Seen> seen_;
  std::size_t attempts_ = 0;
  std::uint64_t started_ = 0;
  std::uint64_t evicted_ = 0;
  int most_tries_ = 0;
};

/// The moments of what was allowed to each id.
std::map<std::uint32_t, std::vector<Micros>> AllowedOf(const std::vector<Seen>& attempts) {
  std::map<std::uint32_t, std::vector<Micros>> allowed;
  for (const Seen& seen : attempts) {
    if (seen.allowed) allowed[seen.id].push_back(seen.at);
  }
  for (auto& [id, times] : allowed) std::sort(times.begin(), times.end());
  return allowed;
}

/// How many times more than a window allows were allowed to an id.
std::size_t Violations(const std::vector<Seen>& attempts, const Window& window) {
  std::size_t violations = 0;
  for (const auto& [id, times] : AllowedOf(attempts)) {
    for (std::size_t i = window.max; i < times.size(); ++i) {
      violations += times[i] - times[i - window.max] < window.interval;
    }
  }
  return violations;
}

/// How many refusals the actions that the same id was allowed do not explain.
std::size_t Unjustified(const std::vector<Seen>& attempts, const Window& window) {
  auto allowed = AllowedOf(attempts);
  std::size_t unjustified = 0;
  for (const Seen& seen : attempts) {
    if (seen.allowed) continue;
    const std::vector<Micros>& times = allowed[seen.id];
    const auto from = std::upper_bound(times.begin(), times.end(), seen.at - window.interval);
    const auto to = std::upper_bound(times.begin(), times.end(), seen.at);
    unjustified += static_cast<std::size_t>(std::distance(from, to)) < window.max;
  }
  return unjustified;
}

/// How many attempts a single limiter would have allowed that sees them in the order of their
/// times.
std::size_t IdeallyAllowed(std::vector<Seen> attempts, const Window& window) {
  std::ranges::stable_sort(attempts, {}, &Seen::at);
  std::map<std::uint32_t, std::deque<Micros>> logs;
  std::size_t allowed = 0;
  for (const Seen& seen : attempts) {
    std::deque<Micros>& log = logs[seen.id];
    while (!log.empty() && seen.at - log.front() >= window.interval) log.pop_front();
    if (log.size() >= window.max) continue;
    log.push_back(seen.at);
    ++allowed;
  }
  return allowed;
}

TEST_F(SharedRace, ExceedsNoWindowAndRefusesHardlyTooMuch) {
  for (const auto& [ids, window] : {std::pair(1u, Window{10'000, 100}), {500u, {50'000, 5}}}) {
    SCOPED_TRACE(ids);
    const std::size_t attempts = Notes::kRoom / kTenth;
    for (const int threads : {1, 1, 2}) Start(Attaching(window), ids, attempts, threads);
    const std::vector<Seen> all = AllSeen();
    ASSERT_EQ(all.size(), 4 * attempts);
    EXPECT_EQ(Violations(all, window), 0u);
    const auto allowed = static_cast<double>(std::ranges::count_if(all, &Seen::allowed));
    EXPECT_GE(allowed, 0.999 * static_cast<double>(IdeallyAllowed(all, window)));
    EXPECT_EQ(Audited(window), std::vector<std::string>());
    UnlinkShared("/dev/shm", name_.Options().name);
  }
}

TEST_F(SharedRace, KillsLeaveNothingBehind) {
  const Window window{20'000, 5};
  keeps_ = &Seen::allowed;
  EXPECT_EQ(Violations(SeenWhileKilling(Attaching(window), 40), window), 0u);
  EXPECT_EQ(Audited(window), std::vector<std::string>());
}

TEST_F(SharedRace, KillsWhileIdsPushEachOtherOutLeaveNothingBehind) {
  const Window window{20'000, 5};
  keeps_ = [](const Seen&) { return false; };
  SeenWhileKilling(Attaching(window, 20), 60);
  EXPECT_EQ(Audited(window), std::vector<std::string>());
}

TEST_F(SharedRace, GivesNoIdTheLogOfAnother) {
  const Window window{3'000'000, 3};
  for (int i = 0; i < 4; ++i) Start(Attaching(window, 14), 200, 250'000 / kTenth);
  const std::vector<Seen> all = AllSeen();
  EXPECT_EQ(Unjustified(all, window), 0u);
  EXPECT_GT(evicted_, 1000u);
  // Each id that is dropped lets no more through than it had recorded.
  EXPECT_LE(Violations(all, window), evicted_ * window.max);
  EXPECT_EQ(Audited(window), std::vector<std::string>());
}

TEST(SharedStore, HasRoomForTheIdsItIsMadeFor) {
  constexpr std::int64_t kIds = 100'000;
  const RegionName name;
  const auto store = SharedStore::Attach(Policy(Uncounted({kHour, 5})), name.Options(kIds));
  // One after the other, each expires when the one that comes kIds later is made known.
  const auto evicted_while = [&](std::int64_t from, std::int64_t to) {
    const std::uint64_t before = store->stats().evicted;
    for (std::int64_t id = from; id < to; ++id) {
      const std::string digits = std::to_string(id);
      const Identity identity =
          IdentityOf(std::u16string(digits.begin(), digits.end()), store->secret());
      EXPECT_EQ(store->Check(identity, id * (kHour / kIds)), 0);
    }
    return store->stats().evicted - before;
  };
  // About 1 and 12 are to be expected, as three in a hundred thousand find no place.
  EXPECT_LT(evicted_while(0, kIds), 20u);
  EXPECT_LT(evicted_while(kIds, 5 * kIds), 60u);
}

}  // namespace
}  // namespace rollgate::testing
