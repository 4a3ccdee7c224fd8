// A region of slots: what is held of each id by all threads and processes that attach to it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/identity.h"
#include "core/time.h"
#include "shared/held_table.h"
#include "shared/region.h"
#include "shared/shared_store.h"
#include "shared/tries.h"

namespace rollgate::shared {

/// Which entries of a region have a holder, as locks on its file say.
class Holders {
 public:
  using Tries = shared::Tries;

  explicit Holders(const Region& region) : region_(region) {}

  /// The entry is the region's.
  void Hold(std::size_t /*entry*/) { region_.LockHolder(); }
  void Look() { ++looks_; }
  bool IsHeld(std::size_t entry);

 private:
  const Region& region_;
  std::uint64_t looks_ = 0;
  /// Of each entry, the number of the look that found it held.
  std::array<std::uint64_t, kEntries> held_in_{};
};

struct HeldRegionOptions {
  std::string directory = "/dev/shm";  ///< of the file
  std::string name;                    ///< as in SharedStoreOptions
  std::size_t max_keys = 0;            ///< the first to attach decides; 0: as many as fit well
  std::uint32_t max = 1;               ///< how much of an id is usually held at most
  /// How many holders of an id there is room for at least, each with one end of its holdings; 0: as
  /// `max` needs. The first to attach decides.
  std::uint32_t room = 0;
  SharedClock clock = SharedClock::kGoesOnInSleep;
};

/// Owned by one thread. What it holds counts until it is released, or this is destroyed, or the
/// process ends in any way. Calls throw SharedError.
class HeldRegion {
 public:
  /// Attaches to the region of that name, or creates it. Throws SharedError.
  explicit HeldRegion(const HeldRegionOptions& options);

  const Secret& secret() const { return table_.secret(); }
  std::size_t bytes() const { return region_.view().geometry.bytes(); }
  /// Ids that have a place, whether somebody holds them or not.
  std::uint64_t keys() const { return table_.Keys(); }

  /// To be called before the others: a process created by fork() must not use its parent's entry.
  HeldTable<Holders>& table() {
    if (region_.IsForked()) [[unlikely]] {
      TakeEntryAgain();
    }
    return table_;
  }

 private:
  ROLLGATE_COLD void TakeEntryAgain();

  Region region_;
  Holders holders_;
  HeldTable<Holders> table_;
};

}  // namespace rollgate::shared
