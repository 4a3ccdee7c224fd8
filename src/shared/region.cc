// Finds, checks and attaches regions.
#include "shared/region.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>

#include "core/time.h"
#include "shared/configuration.h"

namespace rollgate::shared {
namespace {

/// Other processes may remove and create the region meanwhile, but hardly so often.
constexpr int kMostRounds = 1000;

/// Between attempts while another process removes the region: a second in all.
constexpr auto kPause = std::chrono::milliseconds(1);

std::string PathOf(const std::string& directory, const std::string& name) {
  if (directory.empty() || name.empty() || name.find('/') != std::string::npos ||
      (directory + name).find('\0') != std::string::npos) {
    throw SharedError(SharedError::Kind::kSystem,
                      "no shared limiter can have the name '" + name + "' in '" + directory + "'");
  }
  return directory + "/rollgate-" + std::to_string(::geteuid()) + "-" + name;
}

/// The user's call that removes a region, for messages.
std::string RemovalOf(const std::string& directory, const std::string& name) {
  constexpr const char* kDefaultDirectory = "/dev/shm";  // as in lib/stores/shared/region.js
  if (directory == kDefaultDirectory) return "RateLimiter.unlinkShared('" + name + "')";
  return "RateLimiter.unlinkShared({ name: '" + name + "', directory: '" + directory + "' })";
}

[[noreturn]] void FailForRemovals(const std::string& path) {
  throw SharedError(SharedError::Kind::kSystem,
                    path + " is locked or removed by others whenever this process looks at it");
}

/// The kernel's boot id. Throws SharedError if the system does not say.
Boot CurrentBoot(const std::string& system_root) {
  constexpr std::size_t kDigits = 16;  // of a word
  const std::string path = system_root + "/proc/sys/kernel/random/boot_id";
  std::optional<std::string> text = ReadText(path);
  if (!text) FailBySystem("cannot read " + path, errno);
  std::erase(*text, '-');
  Boot boot = {};
  for (std::size_t i = 0; i < boot.size(); ++i) {
    const char* const from = text->data() + i * kDigits;
    if (text->size() < (i + 1) * kDigits ||
        std::from_chars(from, from + kDigits, boot[i], 16).ptr != from + kDigits) {
      throw SharedError(
          SharedError::Kind::kSystem,
          "a shared limiter needs the boot id of the host, but " + path + " has none");
    }
  }
  return boot;
}

/// Throws SharedError unless a limiter of these options can use a region of the configuration
/// `theirs`.
void CheckFit(const RegionOptions& options, std::span<const std::uint64_t> theirs) {
  if (const std::string why = WhyNot(options.configuration, theirs); !why.empty()) {
    throw SharedError(
        SharedError::Kind::kMismatch,
        "the shared limiter '" + options.name + "' does not fit, because " + why + ": expected " +
            TextOf(options.configuration) + ", but it was made with " + TextOf(theirs) +
            "; take another name, or remove it with " + RemovalOf(options.directory, options.name) +
            " when nobody counts with it any more");
  }
}

class Examination {
 public:
  Examination(const File& file, const std::string& path, const RegionOptions& options)
      : path_(path), options_(options) {
    const struct stat status = file.Status();
    if (const mode_t mode = status.st_mode & 07777; (mode & 077) != 0) {
      char digits[8];
      std::snprintf(digits, sizeof digits, "%04o", static_cast<unsigned>(mode));
      Refuse(std::string("has the mode ") + digits + ", expected 0600: it has to be private");
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
    const ssize_t got = ::pread(file.descriptor(), &header_, sizeof header_, 0);
    if (got < 0) FailBySystem("cannot read " + path, errno);
    if (static_cast<std::size_t>(got) < sizeof header_) {
      Refuse("has " + std::to_string(size_) + " bytes, expected " + std::to_string(sizeof header_) +
             " or more");
    }
    if (header_.magic != kMagic) Refuse("does not begin as a shared limiter does");
  }

  bool IsOf(const Boot& boot) const { return header_.boot == boot; }

  /// Throws SharedError unless the header is valid and agrees with the options.
  Geometry GeometryFor() const {
    if (header_.version != kVersion) {
      Refuse("was made by another version of rollgate: its layout is number " +
             std::to_string(header_.version) + ", expected " + std::to_string(kVersion));
    }
    const std::optional<Geometry> geometry =
        PossibleGeometry(header_.buckets, header_.record_words);
    if (!geometry || header_.max_keys < 1 || header_.max_keys > geometry->slots() ||
        Geometry::BucketsFor(header_.max_keys) != header_.buckets) {
      Refuse("has a header with " + std::to_string(header_.max_keys) + " ids in " +
             std::to_string(header_.buckets) + " buckets with records of " +
             std::to_string(header_.record_words) + " words, which is impossible");
    }
    if (header_.bytes != geometry->bytes() || size_ != header_.bytes) {
      Refuse("has " + std::to_string(size_) + " bytes, expected " +
             std::to_string(geometry->bytes()));
    }
    const std::uint64_t entries_used = header_.entries_used.load(std::memory_order_relaxed);
    if (header_.configuration_words > kConfigurationWords || entries_used > kEntries) {
      Refuse("has a header with " + std::to_string(header_.configuration_words) +
             " words of configuration and " + std::to_string(entries_used) + " entries; at most " +
             std::to_string(kConfigurationWords) + " and " + std::to_string(kEntries) +
             " are possible");
    }
    const std::span<const std::uint64_t> theirs(header_.configuration.data(),
                                                header_.configuration_words);
    CheckFit(options_, theirs);
    const bool is_same = std::ranges::equal(theirs, options_.configuration);
    if (is_same && header_.record_words != options_.record_words) {
      Refuse("has records of " + std::to_string(header_.record_words) + " words, expected " +
             std::to_string(options_.record_words));
    }
    return *geometry;
  }

 private:
  [[noreturn]] void Refuse(const std::string& found) const {
    throw SharedError(
        SharedError::Kind::kFile,
        path_ + " " + found + "; " + RemovalOf(options_.directory, options_.name) + " removes it");
  }

  const std::string& path_;
  const RegionOptions& options_;
  std::uint64_t size_;
  Header header_;
};

}  // namespace

Mapping::Mapping(const File& file, const Geometry& geometry) {
  void* mapped =
      ::mmap(nullptr, geometry.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  if (mapped == MAP_FAILED) {
    FailBySystem("cannot map " + std::to_string(geometry.bytes()) + " bytes of shared memory",
                 errno);
  }
  // Keeps users' ids out of core dumps; failure does no harm.
  ::madvise(mapped, geometry.bytes(), MADV_DONTDUMP);
  auto* const bytes = static_cast<std::byte*>(mapped);
  assert(reinterpret_cast<std::uintptr_t>(bytes) % alignof(Bucket) == 0);
  view_ = {reinterpret_cast<Header*>(bytes),
           reinterpret_cast<Entry*>(bytes + geometry.entries_at()),
           reinterpret_cast<Bucket*>(bytes + geometry.buckets_at()),
           reinterpret_cast<Word*>(bytes + geometry.records_at()), geometry};
}

Mapping::~Mapping() {
  if (view_.header != nullptr) ::munmap(view_.header, view_.geometry.bytes());
}

Region Region::Attach(const RegionOptions& options) {
  const std::string path = PathOf(options.directory, options.name);
  const Boot boot = CurrentBoot(options.system_root);
  for (int round = 0; round < kMostRounds; ++round) {
    const File file = OpenOwn(path);
    if (!file) {
      MakeRegion(path, options, boot);
      continue;
    }
    const Examination examination(file, path, options);
    if (!examination.IsOf(boot)) {
      const FileLock lock(file, std::try_to_lock);
      if (!lock) {
        std::this_thread::sleep_for(kPause);
        continue;
      }
      // Of an earlier start of the host, unless somebody is attached: boot ids differ between some
      // containers on one host.
      if (const EntryLock all = EntryLock::TakeAll(file)) {
        RemoveIfAt(path, file);
        continue;
      }
    }
    Region region(Mapping(file, examination.GeometryFor()));
    if (!region.TakeEntry(file)) {
      std::this_thread::sleep_for(kPause);
      continue;
    }
    region.Admit(options);
    if (file.IsAt(path)) return region;
  }
  FailForRemovals(path);
}

bool Region::Unlink(const std::string& directory, const std::string& name) {
  const std::string path = PathOf(directory, name);
  for (int round = 0; round < kMostRounds; ++round) {
    const File file = OpenOwn(path);
    if (!file) return false;
    const FileLock lock(file, std::try_to_lock);
    if (lock && RemoveIfAt(path, file)) return true;
    std::this_thread::sleep_for(kPause);
  }
  FailForRemovals(path);
}

void Region::Admit(const RegionOptions& options) const {
  CheckFit(options, configuration());
  RaiseTo(header().retention, static_cast<std::uint64_t>(options.retention));
  RaiseTo(header().log_capacity, options.log_capacity);
}

bool Region::TakeEntry(const File& same) {
  EntryLock lock = EntryLock::Take(same);
  if (!lock) return false;
  assert(lock.entry() < kEntries);
  RaiseTo(header().entries_used, lock.entry() + 1);
  lock_ = std::move(lock);  // swaps, so `lock` releases the old one
  return true;
}

void Region::TakeEntryAgain() {
  if (TakeEntry(lock_.file())) return;
  throw SharedError(SharedError::Kind::kSystem, "another process is removing the region");
}

}  // namespace rollgate::shared
