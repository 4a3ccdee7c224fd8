// A shared region: a file mapped into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/time.h"
#include "shared/file.h"
#include "shared/layout.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

struct RegionOptions {
  std::string directory;
  std::string name;
  std::uint64_t max_keys;      ///< of a new region
  std::uint64_t record_words;  ///< of a new region
  std::vector<std::uint64_t> configuration;
  bool has_log = false;            ///< whether records grow with maxInInterval
  Micros retention = 0;            ///< see Header
  std::uint64_t log_capacity = 0;  ///< see Header
  /// Prefix of paths of /proc and of control groups, for tests.
  std::string system_root = {};
};

/// A region's file, mapped into this process.
class Mapping {
 public:
  /// Precondition: the file has geometry.bytes(). Throws SharedError.
  Mapping(const File& file, const Geometry& geometry);
  Mapping(Mapping&& other) noexcept : view_(std::exchange(other.view_, View())) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(view_, other.view_);
    return *this;
  }
  ~Mapping();

  const View& view() const { return view_; }

 private:
  View view_;
};

/// Creates a region at `path`, unless there is something. It appears complete; if this process is
/// killed, nothing is left. If another process is faster, its region stays. Throws SharedError.
void MakeRegion(const std::string& path, const RegionOptions& options, const Boot& boot);

/// One attachment: the mapping, and an entry that is its own. Owned by one thread.
class Region {
 public:
  /// Attaches to the region, which is created if it does not exist. Throws SharedError.
  static Region Attach(const RegionOptions& options);

  /// Removes the file. Returns whether there was one. Throws SharedError.
  static bool Unlink(const std::string& directory, const std::string& name);

  const View& view() const { return mapping_.view(); }
  Header& header() const { return *view().header; }

  std::span<const std::uint64_t> configuration() const {
    return {header().configuration.data(),
            std::min<std::size_t>(header().configuration_words, kConfigurationWords)};
  }

  /// Makes the region ready for a limiter of these options. Throws SharedError and changes nothing
  /// if they do not fit.
  void Admit(const RegionOptions& options) const;

  /// This attachment's entry. Its last owner may have left an unfinished swap.
  std::size_t entry() const { return lock_.entry(); }

  /// See EntryLock.
  void LockHolder() const { lock_.LockHolder(); }
  bool IsHeldByAnother(std::size_t entry) const { return lock_.IsHeldByAnother(entry); }

  /// Whether fork() created this process after the attachment: the entry is the parent's.
  bool IsForked() const { return lock_.IsForked(); }

  /// Takes another entry, in such a process. Throws SharedError and changes nothing if it cannot.
  void TakeEntryAgain();

 private:
  explicit Region(Mapping mapping) : mapping_(std::move(mapping)) {}

  /// Returns false if another process is removing the file. Throws SharedError.
  bool TakeEntry(const File& same);

  Mapping mapping_;
  EntryLock lock_;
};

}  // namespace rollgate::shared
