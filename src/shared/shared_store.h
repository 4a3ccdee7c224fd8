// The store in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/alignment.h"
#include "core/identity.h"
#include "core/policy.h"
#include "core/store.h"
#include "core/time.h"

namespace rollgate {

namespace shared {
class Region;
}  // namespace shared

/// The largest log in shared memory.
inline constexpr std::size_t kLongestSharedLog = (std::size_t{1} << 20) - 1;

/// What `now` is read from; the same for all who share a region.
enum class SharedClock : std::uint8_t {
  kGoesOnInSleep,  ///< the host's
  kStopsInSleep,   ///< the host's, where there is no other
  kOwn,            ///< the caller's
};

struct SharedStoreOptions {
  std::string directory = "/dev/shm";  ///< of the file
  std::string name;                    ///< letters, digits, '.', '_' and '-'; not empty
  std::size_t max_keys = 50'000;       ///< >= 1; the first to attach decides
  /// For how many actions records of logs have room at least; the first to attach decides.
  std::uint64_t room = 0;
  SharedClock clock = SharedClock::kGoesOnInSleep;
  std::function<void()> on_eviction;  ///< must not call the store, nor throw
};

/// A Store shared by all threads and processes of a user on one host. The object is owned by one
/// thread. Its calls also throw SharedError.
class SharedStore : public Store {
 public:
  /// Attaches to the region of that name, or creates it. Throws SharedError.
  static std::unique_ptr<SharedStore> Attach(const Policy& policy,
                                             const SharedStoreOptions& options);

  /// Attaches with other limits to the region of `store`, which is then null. Throws SharedError
  /// and changes nothing if they do not fit.
  static std::unique_ptr<SharedStore> WithLimits(std::unique_ptr<SharedStore>& store,
                                                 const Policy& policy,
                                                 const SharedStoreOptions& options);

  /// The region's secret, for IdentityOf.
  virtual const Secret& secret() const = 0;

  /// The region's: all who share it judge the same aligned windows.
  virtual AlignmentWords& alignment() const = 0;

  /// The most retries of one call, because others were faster; each takes at most 50 us.
  virtual int most_tries() const = 0;

  /// After it is moved out, the store must be destroyed.
  virtual shared::Region& region() = 0;
};

/// Removes a region, but not for those attached. Returns whether it existed. Throws SharedError.
bool UnlinkShared(const std::string& directory, const std::string& name);

}  // namespace rollgate
