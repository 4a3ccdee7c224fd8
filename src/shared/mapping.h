// A region mapped into this process.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shared/file.h"
#include "shared/layout.h"

namespace rollgate::shared {

/// The geometry of so many buckets and of records of so many words, if it is possible.
std::optional<Geometry> PossibleGeometry(std::uint64_t buckets, std::uint64_t record_words);

class Mapping {
 public:
  /// Precondition: the file has geometry.bytes(). Throws SharedError.
  Mapping(const File& file, const Geometry& geometry);
  Mapping(Mapping&& other) noexcept
      : geometry_(other.geometry_), bytes_(std::exchange(other.bytes_, nullptr)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(geometry_, other.geometry_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  const Geometry& geometry() const { return geometry_; }
  Header& header() const { return *At<Header>(0); }
  Entry* entries() const { return At<Entry>(geometry_.entries_at()); }
  Bucket* buckets() const { return At<Bucket>(geometry_.buckets_at()); }
  Word* records() const { return At<Word>(geometry_.records_at()); }

 private:
  template <class T>
  T* At(std::size_t offset) const {
    assert(bytes_ != nullptr && offset % alignof(T) == 0 && offset < geometry_.bytes());
    return reinterpret_cast<T*>(bytes_ + offset);
  }

  Geometry geometry_;
  std::byte* bytes_;
};

}  // namespace rollgate::shared
