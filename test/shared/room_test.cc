// A region is made only where there is room for it, and otherwise the error says what would fit.
#include "shared/room.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <vector>

#include "shared/fake_system.h"
#include "shared/regions.h"

namespace rollgate::shared {
namespace {

using testing::ExpectError;
using testing::FakeSystem;
using Kind = SharedError::Kind;

class SharedRegionInRoom : public testing::RegionTest {
 protected:
  static constexpr std::uint64_t kLimit = 16 << 20;
  static constexpr std::uint64_t kKept = kLimit / 16;
  static constexpr std::uint64_t kRoom = kLimit - kKept;

  /// A container in which so many bytes of the limit are used.
  void Use(std::uint64_t bytes, std::uint64_t limit = kLimit) {
    system_.Write("/proc/self/cgroup", "0::/\n");
    system_.Write("/proc/self/mountinfo", "29 23 0:26 / /sys/fs/cgroup rw - cgroup2 none rw\n");
    system_.Write("/sys/fs/cgroup/memory.max", std::to_string(limit) + "\n");
    system_.Write("/sys/fs/cgroup/memory.current", std::to_string(bytes) + "\n");
  }

  RegionOptions InContainer(std::uint64_t max_keys) const {
    RegionOptions options = Options(max_keys);
    options.system_root = system_.root();
    return options;
  }

  const FakeSystem system_;
};
INSTANTIATE_TEST_SUITE_P(Directories, SharedRegionInRoom, ::testing::Values("/dev/shm"),
                         [](const auto&) { return "Memory"; });

std::uint64_t BytesFor(std::uint64_t max_keys, std::uint64_t record_words) {
  return Geometry(Geometry::BucketsFor(max_keys), record_words).bytes();
}

TEST(SharedRegionGeometry, KnowsHowManyIdsFit) {
  for (const std::uint64_t record_words : {8, 12, 64, 512, 4096}) {
    SCOPED_TRACE(record_words);
    const std::uint64_t least = BytesFor(1, record_words);
    EXPECT_EQ(Geometry::KeysIn(0, record_words), 0u);
    EXPECT_EQ(Geometry::KeysIn(least - 1, record_words), 0u);
    EXPECT_EQ(Geometry::KeysIn(least, record_words), kSlotsPerBucket);
    for (std::uint64_t bytes = least; bytes < least + (1 << 30); bytes += bytes / 3) {
      const std::uint64_t keys = Geometry::KeysIn(bytes, record_words);
      EXPECT_LE(BytesFor(keys, record_words), bytes);
      EXPECT_GT(BytesFor(keys + keys / 100 + kSlotsPerBucket, record_words), bytes);
    }
  }
}

TEST_P(SharedRegionInRoom, IsRefusedBeyondTheContainersLimitAndNothingIsLeft) {
  Use(kLimit / 2);
  const std::uint64_t left = kLimit / 2;
  const std::uint64_t keys = 74'000;  // about Geometry::KeysIn(left - kKept, kRecordWords)
  ExpectError(Kind::kSystem,
              {"'api' needs " + std::to_string(BytesFor(200'000, kRecordWords)) + " bytes", path_,
               std::to_string(left) + " bytes are left",
               "the container's memory limit of " + std::to_string(kLimit),
               system_.root() + "/sys/fs/cgroup/memory.max",
               "of which " + std::to_string(kKept) + " are kept free",
               "lower maxKeys from 200000 to about " + std::to_string(keys)},
              [&] { Region::Attach(InContainer(200'000)); });
  EXPECT_TRUE(Names().empty());
  EXPECT_EQ(Region::Attach(InContainer(keys)).header().max_keys, keys) << "as the message says";
  EXPECT_GT(BytesFor(keys + 2000, kRecordWords), left - kKept) << "and hardly more would fit";
}

TEST_P(SharedRegionInRoom, FitsExactlyIntoWhatIsLeft) {
  const std::uint64_t needed = BytesFor(1000, kRecordWords);
  Use(kRoom - needed + 1);
  ExpectError(Kind::kSystem,
              {"needs " + std::to_string(needed), std::to_string(needed - 1 + kKept)},
              [&] { Region::Attach(InContainer(1000)); });
  Use(kRoom - needed);
  EXPECT_EQ(Region::Attach(InContainer(1000)).header().max_keys, 1000u);
}

TEST_P(SharedRegionInRoom, Keeps16MebibytesOfALargeLimit) {
  constexpr std::uint64_t kLarge = std::uint64_t{64} << 30;
  constexpr std::uint64_t kMostKept = 16 << 20;
  const std::uint64_t needed = BytesFor(1000, kRecordWords);
  Use(kLarge - kMostKept - needed + 1, kLarge);
  ExpectError(Kind::kSystem,
              {std::to_string(kMostKept + needed - 1) + " bytes are left",
               "of which " + std::to_string(kMostKept) + " are kept free"},
              [&] { Region::Attach(InContainer(1000)); });
  Use(std::uint64_t{61} << 30, kLarge);
  EXPECT_EQ(Region::Attach(InContainer(1000)).header().max_keys, 1000u);
}

TEST_P(SharedRegionInRoom, NamesMaxInIntervalWhereLogsAreKept) {
  Use(0);
  RegionOptions options = InContainer(5000);  // fits into a /dev/shm of 64 MB, which is asked first
  options.record_words = 512;
  ExpectError(Kind::kSystem, {"lower maxKeys from 5000 to about 2000"},
              [&] { Region::Attach(options); });
  options.has_log = true;
  ExpectError(Kind::kSystem, {"to about 2000, or lower maxInInterval"},
              [&] { Region::Attach(options); });
  options.record_words = 4096;
  options.max_keys = 4;
  ExpectError(Kind::kSystem,
              {"not even one id fits: lower maxInInterval, or take another algorithm"},
              [&] { Region::Attach(options); });
}

TEST_P(SharedRegionInRoom, NeedsNoneWhenItIsThereAlready) {
  const Region first = Attach(1000);
  Use(kLimit);
  EXPECT_EQ(Region::Attach(InContainer(1000)).entry(), 1u);
}

/// Another process locks the directory while it makes a region, which uses all of the limit.
class SharedRegionInTheMaking : public SharedRegionInRoom {
 protected:
  void LockDirectory() {
    another_ = File(::open(directory_.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(another_.descriptor(), LOCK_EX | LOCK_NB), 0);
  }

  /// The process that attaches has found no room when this returns.
  std::future<std::uint64_t> AttachWithoutRoom() {
    Use(kLimit);
    std::filesystem::remove(usage_);
    EXPECT_EQ(::mkfifo(usage_.c_str(), 0600), 0);  // its reader waits for the writer
    auto attached = std::async(std::launch::async,
                               [&] { return Region::Attach(InContainer(1000)).header().max_keys; });
    std::ofstream(usage_) << kLimit;
    EXPECT_EQ(attached.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
    return attached;
  }

  void EndOtherProcess() { another_ = File(); }

  const std::string usage_ = system_.root() + "/sys/fs/cgroup/memory.current";

 private:
  File another_;
};
INSTANTIATE_TEST_SUITE_P(Directories, SharedRegionInTheMaking, ::testing::Values("/dev/shm"),
                         [](const auto&) { return "Memory"; });

TEST_P(SharedRegionInTheMaking, IsAttachedByAProcessWithoutRoomOnceItHasItsName) {
  LockDirectory();
  Region::Attach(InContainer(1000));
  const std::string unnamed = directory_ + "/unnamed";
  std::filesystem::rename(path_, unnamed);
  auto attached = AttachWithoutRoom();
  std::filesystem::rename(unnamed, path_);
  EXPECT_EQ(attached.get(), 1000u);
  EndOtherProcess();
}

TEST_P(SharedRegionInTheMaking, IsNotMadeTwiceWhereThereIsRoomForOne) {
  LockDirectory();
  Use(kRoom - BytesFor(1000, kRecordWords) * 3 / 2);
  auto attached = std::async(std::launch::async,
                             [&] { return Region::Attach(InContainer(1000)).header().max_keys; });
  // The other process may be slow: what it will reserve is not taken from it after a second.
  EXPECT_EQ(attached.wait_for(std::chrono::milliseconds(1500)), std::future_status::timeout);
  EndOtherProcess();
  EXPECT_EQ(attached.get(), 1000u);
}

TEST_P(SharedRegionInTheMaking, GivesItsRoomBackWhenItsProcessIsKilled) {
  LockDirectory();
  auto attached = AttachWithoutRoom();
  std::filesystem::remove(usage_);
  Use(0);
  EndOtherProcess();
  EXPECT_EQ(attached.get(), 1000u);
}

TEST_P(SharedRegionInRoom, IsMadeWhereNoLimitIsKnown) {
  EXPECT_EQ(Region::Attach(InContainer(1000)).header().max_keys, 1000u);
}

class SharedRegionOnDisk : public SharedRegionInRoom {};
INSTANTIATE_TEST_SUITE_P(Directories, SharedRegionOnDisk, ::testing::Values("/var/tmp"),
                         [](const auto&) { return "Disk"; });

TEST_P(SharedRegionOnDisk, TakesNothingOfTheMemoryLimit) {
  constexpr std::uint32_t kTmpfs = 0x01021994;
  struct statfs status = {};
  ASSERT_EQ(::statfs(directory_.c_str(), &status), 0);
  if (status.f_type == kTmpfs) GTEST_SKIP() << GetParam() << " is in memory here";
  Use(kLimit);
  EXPECT_EQ(Region::Attach(InContainer(1000)).header().max_keys, 1000u);
}

}  // namespace
}  // namespace rollgate::shared
