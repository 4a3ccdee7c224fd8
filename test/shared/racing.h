// Processes and threads that race on one region, and what they have seen of it.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "core/policy.h"
#include "shared/audit.h"
#include "shared/file.h"
#include "shared/layout.h"
#include "shared/mapping.h"
#include "shared/shared_store.h"
#include "support/limiter.h"

namespace rollgate::testing {

/// The clock of all processes of the host.
inline Micros SystemNow() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// A region of its own for a test, removed at its end.
class RegionName {
 public:
  RegionName() : name_("test-" + std::to_string(getpid()) + "-" + std::to_string(++made_)) {}
  ~RegionName() { UnlinkShared(kDirectory, name_); }
  RegionName(const RegionName&) = delete;
  RegionName& operator=(const RegionName&) = delete;

  SharedStoreOptions Options(std::size_t max_keys = 1000) const {
    SharedStoreOptions options;
    options.directory = kDirectory;
    options.name = name_;
    options.max_keys = max_keys;
    return options;
  }

 private:
  static constexpr const char* kDirectory = "/dev/shm";
  static inline int made_ = 0;
  std::string name_;
};

/// What came of an attempt.
struct Seen {
  Micros at;
  std::uint32_t id;
  bool allowed;
};

/// What one process writes and its parent reads, even after the process was killed.
class Notes {
 public:
  explicit Notes(std::size_t room) : room_(room) {
    void* const memory = mmap(nullptr, Bytes(), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    count_ = new (memory) std::atomic<std::uint64_t>[kHeaderWords] {};
    seen_ = reinterpret_cast<Seen*>(count_ + kHeaderWords);
  }
  ~Notes() { munmap(count_, Bytes()); }
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;

  bool IsFull() const { return count_[0] == room_; }
  void Add(const Seen& seen) {
    seen_[count_[0]] = seen;
    count_[0].store(count_[0] + 1, std::memory_order_release);
  }
  /// The longest that one attempt took, being descheduled included; how many ids were evicted; how
  /// many times one attempt had to try again at most.
  std::atomic<std::uint64_t>& longest() { return count_[1]; }
  std::atomic<std::uint64_t>& evicted() { return count_[2]; }
  std::atomic<std::uint64_t>& most_tries() { return count_[3]; }

  std::size_t size() const { return count_[0]; }
  const Seen* begin() const { return seen_; }
  const Seen* end() const { return seen_ + size(); }

 private:
  static constexpr std::size_t kHeaderWords = 8;
  std::size_t Bytes() const { return kHeaderWords * sizeof(*count_) + room_ * sizeof(Seen); }

  std::size_t room_;
  std::atomic<std::uint64_t>* count_;
  Seen* seen_;
};

/// Attempts on random ids until the notes are full.
inline void HammerOn(SharedStore& store, std::size_t windows, std::uint32_t ids, std::uint64_t seed,
                     Notes& notes) {
  std::vector<Identity> identities;
  for (std::uint32_t i = 0; i < ids; ++i) {
    identities.push_back(IdentityOf(
        std::u16string{static_cast<char16_t>('a' + i % 26), static_cast<char16_t>('A' + i / 26)},
        store.secret()));
  }
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed + 1));
  std::vector<WindowUse> uses(windows);
  Decision decision;
  decision.windows = uses;
  while (!notes.IsFull()) {
    const auto id = static_cast<std::uint32_t>(random() % ids);
    const Micros now = SystemNow();
    store.Attempt(identities[id], now, 1, decision);
    const auto took = static_cast<std::uint64_t>(SystemNow() - now);
    if (took > notes.longest()) notes.longest() = took;
    notes.most_tries() = static_cast<std::uint64_t>(store.most_tries());
    notes.Add({decision.verdict.at, id, decision.verdict.allowed()});
  }
  notes.evicted() = store.stats().evicted;
}

/// The same on a store of its own.
inline void Hammer(const PolicyOptions& policy, const SharedStoreOptions& options,
                   std::uint32_t ids, std::uint64_t seed, Notes& notes) {
  const auto store = SharedStore::Attach(Policy(policy), options);
  HammerOn(*store, policy.windows.size(), ids, seed, notes);
}

/// Runs `work` in a process of its own.
template <class Work>
pid_t InChild(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      work();
      status = 0;
    } catch (const std::exception& error) {
      const std::string text = std::string(error.what()) + "\n";
      static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
    }
    _exit(status);
  }
  return child;
}

/// Whether a child has ended by itself, and well.
inline bool EndedWell(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// How many times in `attempts` more than a window allows were allowed to an id.
inline std::size_t Violations(const std::vector<Seen>& attempts, const Window& window) {
  std::map<std::uint32_t, std::vector<Micros>> allowed;
  for (const Seen& seen : attempts) {
    if (seen.allowed) allowed[seen.id].push_back(seen.at);
  }
  std::size_t violations = 0;
  for (auto& [id, times] : allowed) {
    std::sort(times.begin(), times.end());
    for (std::size_t i = window.max; i < times.size(); ++i) {
      violations += times[i] - times[i - window.max] < window.interval;
    }
  }
  return violations;
}

/// How many refusals in `attempts` the actions that the same id was allowed do not explain.
inline std::size_t Unjustified(const std::vector<Seen>& attempts, const Window& window) {
  std::map<std::uint32_t, std::vector<Micros>> allowed;
  for (const Seen& seen : attempts) {
    if (seen.allowed) allowed[seen.id].push_back(seen.at);
  }
  for (auto& [id, times] : allowed) std::sort(times.begin(), times.end());
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
/// times, where refusals do not count.
inline std::size_t IdeallyAllowed(std::vector<Seen> attempts, const Window& window) {
  std::stable_sort(attempts.begin(), attempts.end(),
                   [](const Seen& a, const Seen& b) { return a.at < b.at; });
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

/// Looks at a region when nobody is attached, once all entries are tidied up.
inline std::vector<std::string> AuditOf(const PolicyOptions& policy,
                                        const SharedStoreOptions& options) {
  const std::string path =
      options.directory + "/rollgate-" + std::to_string(geteuid()) + "-" + options.name;
  const shared::File file = shared::OpenOwn(path);
  shared::Header header;
  if (pread(file.descriptor(), &header, sizeof header, 0) != sizeof header) return {"no header"};
  const shared::Mapping region(file, shared::Geometry(header.buckets, header.record_words));

  // Who attaches takes the first entry that is free, so this many have them all, and tidy up.
  std::vector<std::unique_ptr<SharedStore>> stores;
  for (std::uint64_t i = 0; i < region.header().entries_used; ++i) {
    stores.push_back(SharedStore::Attach(Policy(policy), options));
  }
  return Audit(
      {&region.header(), region.entries(), region.buckets(), region.records(), region.geometry()});
}

}  // namespace rollgate::testing
