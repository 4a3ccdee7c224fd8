// Reserves, fills and names the file of a new region.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <chrono>
#include <thread>

#include "shared/file.h"
#include "shared/memory_limit.h"
#include "shared/region.h"

namespace rollgate::shared {
namespace {

/// A lock on the directory, held while a region is created: if several processes start together,
/// each reserving a region, space could run out. Other programs may lock directories too, so nobody
/// waits for long, and only space depends on it.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& directory)
      : directory_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  ~DirectoryLock() {
    if (directory_) ::flock(directory_.descriptor(), LOCK_UN);  // a child of fork() would keep it
  }
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  /// Waits for the lock, or until something is at `path`. Returns false without the lock.
  bool Await(const std::string& path, std::chrono::seconds patience) const {
    constexpr auto kPause = std::chrono::milliseconds(1);
    if (!directory_) return true;
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (::flock(directory_.descriptor(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return true;
      if (Exists(path) || std::chrono::steady_clock::now() >= deadline) return false;
      std::this_thread::sleep_for(kPause);
    }
    return true;
  }

 private:
  File directory_;
};

Geometry GeometryFor(const RegionOptions& options) {
  constexpr int kMostKeysBits = 48;  // so that sums do not overflow
  const auto geometry_for = [&](std::uint64_t max_keys) {
    return PossibleGeometry(Geometry::BucketsFor(max_keys), options.record_words);
  };
  const std::optional<Geometry> geometry = geometry_for(
      std::clamp<std::uint64_t>(options.max_keys, 1, std::uint64_t{1} << kMostKeysBits));
  if (!geometry) {
    std::uint64_t most = 0;
    for (int bit = kMostKeysBits - 1; bit >= 0; --bit) {
      const std::uint64_t more = most | std::uint64_t{1} << bit;
      if (geometry_for(more)) most = more;
    }
    throw SharedError(SharedError::Kind::kSystem,
                      "the shared limiter '" + options.name + "' cannot hold " +
                          std::to_string(options.max_keys) + " ids of " +
                          std::to_string(options.record_words * sizeof(Word)) +
                          " bytes: lower maxKeys to at most " + std::to_string(most));
  }
  return *geometry;
}

File OpenUnnamed(const std::string& directory) {
  File file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) {
    if (::fchmod(file.descriptor(), 0600) != 0) {  // whatever the umask is
      FailBySystem("cannot make a file in " + directory + " private", errno);
    }
    return file;
  }
  const int error = errno;
  if (error == EOPNOTSUPP || error == EISDIR) {
    FailBySystem("the file system of " + directory +
                     " has no files without a name (O_TMPFILE), so no shared limiter can be there; "
                     "another directory may do",
                 error);
  }
  FailBySystem("cannot make a file in " + directory + " for a shared limiter", error);
}

/// Constants from statfs(2). Files of other file systems are page cache, which the system can drop.
bool IsInMemory(const File& file) {
  constexpr std::uint32_t kTmpfs = 0x01021994;
  constexpr std::uint32_t kRamfs = 0x858458f6;
  struct statfs status = {};
  if (::fstatfs(file.descriptor(), &status) != 0) return false;
  const auto type = static_cast<std::uint32_t>(status.f_type);
  return type == kTmpfs || type == kRamfs;
}

/// The two leading digits, because free space changes all the time.
std::uint64_t About(std::uint64_t number) {
  std::uint64_t unit = 1;
  while (number / unit >= 100) unit *= 10;
  return number / unit * unit;
}

std::string Advice(const RegionOptions& options, std::uint64_t usable) {
  const std::uint64_t keys = About(Geometry::KeysIn(usable, options.record_words));
  std::string advice = keys == 0 ? "; not even one id fits"
                                 : "; lower maxKeys from " + std::to_string(options.max_keys) +
                                       " to about " + std::to_string(keys);
  if (options.has_log) {
    advice +=
        keys == 0 ? ": lower maxInInterval, or take another algorithm" : ", or lower maxInInterval";
  }
  return advice;
}

/// Throws SharedError, kSystem, unless the region fits into its file system, this process's largest
/// file and, in memory, the container. `bytes` must be left: the region's unless given.
void RequireRoom(const File& file, const std::string& path, const RegionOptions& options,
                 const Geometry& geometry, std::optional<std::uint64_t> bytes = std::nullopt) {
  const auto require = [&](std::uint64_t left, std::uint64_t usable, const std::string& where,
                           const std::string& remedy = "", std::uint64_t spare = 0) {
    if (bytes.value_or(geometry.bytes()) <= usable) return;
    throw SharedError(SharedError::Kind::kSystem,
                      "the shared limiter '" + options.name + "' needs " +
                          std::to_string(geometry.bytes()) + " bytes for " + path + ", but " +
                          std::to_string(left) + " bytes are left " + where +
                          Advice(options, usable - std::min(usable, spare)) + remedy);
  };
  // A file beyond this limit ends the process.
  struct rlimit limit = {};
  if (!bytes && ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    require(limit.rlim_cur, limit.rlim_cur, "for a file of this process (ulimit -f)");
  }
  struct statvfs space = {};
  // Some file systems do not say their size.
  if (::fstatvfs(file.descriptor(), &space) == 0 && space.f_blocks != 0) {
    const std::uint64_t left = std::uint64_t{space.f_bavail} * space.f_frsize;
    const bool is_shm = options.directory == "/dev/shm";
    require(left, left, "in the file system of " + options.directory,
            is_shm ? ". Docker sets the size of /dev/shm with --shm-size" : "");
  }
  if (!IsInMemory(file)) return;
  const std::optional<MemoryLimit> memory = TightestMemoryLimit(options.system_root);
  if (!memory) return;
  require(memory->left, memory->Usable(),
          "within " + memory->name + " of " + std::to_string(memory->bytes) + " bytes (" +
              memory->file + "), of which " + std::to_string(memory->kept) + " are kept free",
          "", memory->kept / 2);  // at its next start, the program may use more
}

/// Reserves space for all bytes, so that accesses cannot fail later. Without the lock, leaves room
/// for another such region, which the process with the lock may be reserving.
void Reserve(const File& file, const std::string& path, const RegionOptions& options,
             const Geometry& geometry, bool is_locked) {
  const std::size_t bytes = geometry.bytes();
  assert(file && bytes > 0);
  RequireRoom(file, path, options, geometry);
  // In pieces: an interrupted call may undo what it has reserved.
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    if (!is_locked) RequireRoom(file, path, options, geometry, bytes - at + bytes);
    const auto size = static_cast<off_t>(std::min(kPiece, bytes - at));
    int error = EINTR;
    while (error == EINTR) {
      error = ::posix_fallocate(file.descriptor(), static_cast<off_t>(at), size);
    }
    if (error == 0) continue;
    FailBySystem("cannot reserve " + std::to_string(bytes) + " bytes for " + path +
                     "; a smaller maxKeys or another directory would help",
                 error);
  }
}

void FillWithRandom(std::array<std::uint64_t, 6>& words) {
  ssize_t got = -1;
  while (got < 0) {
    got = ::getrandom(words.data(), sizeof words, 0);  // never returns a part of so few
    if (got < 0 && errno != EINTR) FailBySystem("cannot get random bytes", errno);
  }
}

/// Other bytes are zero, and take no memory yet on systems that allow it.
void Fill(const View& region, const RegionOptions& options, const Boot& boot) {
  const Geometry& geometry = region.geometry;
  Header& header = *region.header;
  assert(options.configuration.size() <= kConfigurationWords);
  header.magic = kMagic;
  header.version = kVersion;
  header.bytes = geometry.bytes();
  header.boot = boot;
  FillWithRandom(header.secret);
  header.max_keys = std::max<std::uint64_t>(options.max_keys, 1);
  header.buckets = geometry.buckets();
  header.record_words = geometry.record_words();
  header.configuration_words = options.configuration.size();
  std::copy(options.configuration.begin(), options.configuration.end(),
            header.configuration.begin());

  // Each record is in one slot or is one entry's spare.
  const Controls controls(geometry.records());
  std::uint64_t record = 0;
  for (std::uint64_t bucket = 0; bucket < geometry.buckets(); ++bucket) {
    for (Word& slot : region.buckets[bucket].slots) {
      slot.store(controls.Make(record++, 0, 0), std::memory_order_relaxed);
    }
  }
  for (std::size_t entry = 0; entry < kEntries; ++entry) {
    const std::uint64_t spare = controls.Make(record++, 0, 0);
    region.entries[entry].spare.store(spare, std::memory_order_relaxed);
    region.entries[entry].expected.store(spare, std::memory_order_relaxed);
  }
  assert(record == geometry.records());
}

}  // namespace

void MakeRegion(const std::string& path, const RegionOptions& options, const Boot& boot) {
  const Geometry geometry = GeometryFor(options);
  const DirectoryLock lock(options.directory);
  const bool is_locked = lock.Await(path, std::chrono::seconds(1));
  if (Exists(path)) return;
  File file = OpenUnnamed(options.directory);
  try {
    Reserve(file, path, options, geometry, is_locked);
  } catch (const SharedError&) {
    // The process with the lock may have reserved the space, for the same region.
    if (is_locked) throw;
    file = File();  // frees the reserved space
    lock.Await(path, std::chrono::seconds(10));
    if (Exists(path)) return;
    file = OpenUnnamed(options.directory);  // the other process may have been killed
    Reserve(file, path, options, geometry, true);
  }
  Fill(Mapping(file, geometry).view(), options, boot);
  // On a disk: if the host stops, no file without its header stays.
  if (::fdatasync(file.descriptor()) != 0) FailBySystem("cannot write " + path, errno);
  const std::string unnamed = "/proc/self/fd/" + std::to_string(file.descriptor());
  if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0 &&
      errno != EEXIST) {
    FailBySystem("cannot make " + path, errno);
  }
}

}  // namespace rollgate::shared
