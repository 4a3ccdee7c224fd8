// The limiter in shared memory: one policy applied to every id of one table, by all threads and
// processes of a user on one host.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/identity.h"
#include "core/policy.h"
#include "core/store.h"
#include "core/time.h"

namespace rollgate {

/// The longest log of an id: larger maxima do not fit into shared memory.
inline constexpr std::size_t kLongestSharedLog = (std::size_t{1} << 20) - 1;

/// The same under a policy whose max is set anew before each attempt.
inline constexpr std::size_t kLongestSharedVaryingLog = 1000;

struct SharedStoreOptions {
  std::string directory = "/dev/shm";  ///< where the file is
  std::string name;                    ///< letters, digits, '.', '_' and '-'; not empty
  std::size_t max_keys = 50'000;       ///< >= 1; that of the first to attach counts
  /// Whether `now` is the caller's own clock rather than the system's monotonic one; all who share
  /// a table must agree in that, too.
  bool has_own_clock = false;
  /// From the clock's readings to times of day, as the first to attach sees it.
  Micros epoch_offset = 0;
  std::function<void()> on_eviction;  ///< must not call the store, nor throw
};

/// A Store of one thread whose ids are shared with others. Besides std::bad_alloc its calls throw
/// SharedError.
class SharedStore : public Store {
 public:
  /// Attaches to the region of that name, which is made if there is none. Throws SharedError.
  static std::unique_ptr<SharedStore> Attach(const Policy& policy,
                                             const SharedStoreOptions& options);

  /// What ids are to be reduced by, the same for all.
  virtual const Secret& secret() const = 0;

  /// From the clock's readings to times of day, the same for all. `now` has it added already.
  virtual Micros epoch_offset() const = 0;

  /// How many ids there is room for.
  virtual std::size_t max_keys() const = 0;

  /// How many times one call has had to try again at most because others were faster. Beyond its
  /// own work a call takes nothing but that, each time 50 us at most, and waits for nobody.
  virtual int most_tries() const = 0;
};

/// Removes the region of that name; tells whether there was one. Those who are attached keep
/// theirs until they let go of it. Throws SharedError.
bool UnlinkShared(const std::string& directory, const std::string& name);

}  // namespace rollgate
