// A file that is mapped into memory and shared: made, found, checked, locked, removed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "shared/layout.h"
#include "shared/shared_error.h"

namespace rollgate::shared {

struct RegionOptions {
  std::string directory;
  std::string name;
  std::uint64_t max_keys;      ///< of a region that is made
  std::uint64_t record_words;  ///< follows from the configuration
  std::int64_t epoch_offset;   ///< of a region that is made
  std::span<const std::uint64_t> configuration;
};

/// One attachment to a region: its mapping, and the entry that is this attachment's alone. Owned by
/// one thread.
class Region {
 public:
  /// Finds the region or makes it. Throws SharedError.
  static Region Attach(const RegionOptions& options);

  /// Removes the file; tells whether there was one.
  static bool Unlink(const std::string& directory, const std::string& name);

  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;
  ~Region();

  Header& header() const;
  Entry* entries() const;
  Bucket* buckets() const;
  Word* records() const;
  const Geometry& geometry() const;

  /// The entry that no other living attachment has. What its last owner was doing may be
  /// unfinished.
  std::size_t entry() const;

  /// Whether this process is a copy that fork() has made of the one that attached: then the entry
  /// is still the other's.
  bool IsForked() const;

  /// Takes another entry, in the copy.
  void TakeEntryAgain();
};

}  // namespace rollgate::shared
