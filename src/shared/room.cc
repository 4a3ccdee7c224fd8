// Compares the size of a region with what the file system and the container leave.
#include "shared/room.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include "shared/memory_limit.h"
#include "shared/shared_error.h"

namespace rollgate::shared {
namespace {

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

}  // namespace

void RequireRoom(const File& file, const std::string& path, const RegionOptions& options,
                 const Geometry& geometry, std::optional<std::uint64_t> bytes) {
  const auto require = [&](std::uint64_t left, std::uint64_t usable, const std::string& where,
                           const std::string& remedy = "") {
    if (bytes.value_or(geometry.bytes()) <= usable) return;
    throw SharedError(SharedError::Kind::kSystem,
                      "the shared limiter '" + options.name + "' needs " +
                          std::to_string(geometry.bytes()) + " bytes for " + path + ", but " +
                          std::to_string(left) + " bytes are left " + where +
                          Advice(options, usable) + remedy);
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
              memory->file + "), of which " + std::to_string(memory->kept) + " are kept free");
}

}  // namespace rollgate::shared
