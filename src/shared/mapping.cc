// Maps regions and bounds their size.
#include "shared/mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <limits>
#include <string>

namespace rollgate::shared {
namespace {

/// Leaves 28 bits or more of control words for versions.
constexpr std::uint64_t kMostRecords = std::uint64_t{1} << 28;

/// Keeps products in bounds; the largest log has fewer.
constexpr std::uint64_t kMostRecordWords = std::uint64_t{1} << 22;

}  // namespace

std::optional<Geometry> PossibleGeometry(std::uint64_t buckets, std::uint64_t record_words) {
  if (buckets < 1 || buckets > kMostRecords) return std::nullopt;
  if (record_words <= kState || record_words > kMostRecordWords) return std::nullopt;
  const Geometry geometry(buckets, record_words);
  if (geometry.records() > kMostRecords) return std::nullopt;
  constexpr std::uint64_t kMostBytes = std::numeric_limits<std::ptrdiff_t>::max();
  if (geometry.records() > kMostBytes / 2 / sizeof(Word) / record_words) return std::nullopt;
  return geometry;
}

Mapping::Mapping(const File& file, const Geometry& geometry) : geometry_(geometry) {
  void* bytes =
      ::mmap(nullptr, geometry.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  if (bytes == MAP_FAILED) {
    FailBySystem("cannot map " + std::to_string(geometry.bytes()) + " bytes of shared memory",
                 errno);
  }
  // Keeps users' ids out of core dumps; failure does no harm.
  ::madvise(bytes, geometry.bytes(), MADV_DONTDUMP);
  bytes_ = static_cast<std::byte*>(bytes);
  assert(reinterpret_cast<std::uintptr_t>(bytes_) % alignof(Bucket) == 0);
}

Mapping::~Mapping() {
  if (bytes_ != nullptr) ::munmap(bytes_, geometry_.bytes());
}

}  // namespace rollgate::shared
