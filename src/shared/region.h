// A file that is mapped into memory and shared: made, found, checked, locked, removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "shared/entry_lock.h"
#include "shared/file.h"
#include "shared/layout.h"
#include "shared/mapping.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

struct RegionOptions {
  std::string directory;
  std::string name;
  std::uint64_t max_keys;      ///< of a region that is made
  std::uint64_t record_words;  ///< follows from the configuration
  std::int64_t epoch_offset;   ///< of a region that is made
  std::span<const std::uint64_t> configuration;
  bool has_log = false;  ///< whether records grow with maxInInterval
  /// Begins the paths of /proc and of control groups: empty but in tests.
  std::string system_root = {};
};

/// One attachment to a region: its mapping, and the entry that is this attachment's alone. Owned by
/// one thread.
class Region {
 public:
  /// Finds the region or makes it. Throws SharedError.
  static Region Attach(const RegionOptions& options);

  /// Removes the file; tells whether there was one. Throws SharedError.
  static bool Unlink(const std::string& directory, const std::string& name);

  Header& header() const { return mapping_.header(); }
  Entry* entries() const { return mapping_.entries(); }
  Bucket* buckets() const { return mapping_.buckets(); }
  Word* records() const { return mapping_.records(); }
  const Geometry& geometry() const { return mapping_.geometry(); }

  /// The entry that no other living attachment has. What its last owner was doing may be
  /// unfinished.
  std::size_t entry() const { return lock_.entry(); }

  /// Whether this process is a copy that fork() has made of the one that attached: then the entry
  /// is still the other's.
  bool IsForked() const { return lock_.IsForked(); }

  /// Takes another entry, in the copy. Throws SharedError, and changes nothing then.
  void TakeEntryAgain();

 private:
  explicit Region(Mapping mapping) : mapping_(std::move(mapping)) {}

  /// False if the file is about to be removed. Throws SharedError.
  bool TakeEntry(const File& same);

  Mapping mapping_;
  EntryLock lock_;
};

}  // namespace rollgate::shared
