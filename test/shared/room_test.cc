// A region is made only where there is room for it, and otherwise the error says what would fit;
// which memory limit of control groups counts for that.
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
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shared/memory_limit.h"
#include "shared/region.h"
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
  const std::uint64_t keys = 69'000;  // about KeysIn(left - kKept * 3 / 2, kRecordWords)
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
  EXPECT_GT(BytesFor(keys + keys / 8, kRecordWords), left - kKept) << "and hardly more would fit";
}

TEST_P(SharedRegionInRoom, FitsExactlyIntoWhatIsLeft) {
  EXPECT_EQ(Region::Attach(InContainer(1000)).header().max_keys, 1000u) << "no limit is known";
  EXPECT_TRUE(Unlink());
  const std::uint64_t needed = BytesFor(1000, kRecordWords);
  Use(kRoom - needed + 1);
  ExpectError(Kind::kSystem,
              {"needs " + std::to_string(needed), std::to_string(needed - 1 + kKept)},
              [&] { Region::Attach(InContainer(1000)); });
  Use(kRoom - needed);
  EXPECT_EQ(Region::Attach(InContainer(1000)).header().max_keys, 1000u);
}

TEST_P(SharedRegionInRoom, NamesMaxInIntervalWhereLogsAreKept) {
  Use(0);
  RegionOptions options = InContainer(5000);  // fits into a /dev/shm of 64 MB, which is asked first
  options.record_words = 512;
  ExpectError(Kind::kSystem, {"lower maxKeys from 5000 to about 1900"},
              [&] { Region::Attach(options); });
  options.has_log = true;
  ExpectError(Kind::kSystem, {"to about 1900, or lower maxInInterval"},
              [&] { Region::Attach(options); });
  options.max_keys = 1;
  options.record_words = 4096;
  ExpectError(Kind::kSystem, {"not even one id fits: lower maxInInterval"},
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

class SharedMemoryLimit : public ::testing::Test {
 protected:
  /// A system with the memory controller of that version, whose groups from `root` on are mounted.
  void Mount(int version, const std::string& group, const std::string& root = "/") {
    version_ = version;
    const std::string mounted = "35 31 0:32 " + root + " " + folder();
    if (version == 1) {
      system_.Write("/proc/self/cgroup", "12:cpu,cpuacct:/elsewhere\n5:hugetlb,memory:" + group +
                                             "\n1:name=systemd:/a:b\n0::/\n");
      system_.Write("/proc/self/mountinfo",
                    "33 31 0:30 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n" +
                        mounted +
                        " ro,nosuid shared:15 master:2 - cgroup cgroup rw,hugetlb,memory\n"
                        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    } else {
      system_.Write("/proc/self/cgroup", "0::" + group + "\n");
      system_.Write("/proc/self/mountinfo", "22 27 0:21 / /proc rw,relatime - proc proc rw\n" +
                                                mounted +
                                                " rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    }
  }

  /// A group. Version 1 has lines of the group alone in memory.stat as well.
  void Group(const std::string& path, const std::string& limit, std::uint64_t usage,
             std::uint64_t active_file = 0, std::uint64_t inactive_file = 0) {
    const bool is_first = version_ == 1;
    system_.Write(LimitOf(path), limit + "\n");
    system_.Write(folder() + path + (is_first ? "/memory.usage_in_bytes" : "/memory.current"),
                  std::to_string(usage) + "\n");
    const std::string total = is_first ? "inactive_file 3\nactive_file 5\ntotal_" : "file 5\n";
    system_.Write(folder() + path + "/memory.stat",
                  total + "active_file " + std::to_string(active_file) + "\n" +
                      (is_first ? "total_" : "") + "inactive_file " +
                      std::to_string(inactive_file) + "\nslab 0\n");
  }

  std::string folder() const { return version_ == 1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup"; }
  std::string LimitOf(const std::string& group) const {
    return folder() + group + (version_ == 1 ? "/memory.limit_in_bytes" : "/memory.max");
  }
  std::string NoLimit() const { return version_ == 1 ? "9223372036854771712" : "max"; }

  /// That the limit of a group is the one that counts.
  void ExpectLimit(const std::string& group, std::uint64_t bytes, std::uint64_t left) const {
    const std::optional<MemoryLimit> limit = TightestMemoryLimit(system_.root());
    ASSERT_TRUE(limit);
    EXPECT_EQ(limit->bytes, bytes);
    EXPECT_EQ(limit->left, left);
    EXPECT_EQ(limit->file, system_.root() + LimitOf(group));
  }

  void ExpectNone() const { EXPECT_FALSE(TightestMemoryLimit(system_.root())); }

  const testing::FakeSystem system_;

 private:
  int version_ = 2;
};

TEST_F(SharedMemoryLimit, IsThatOfTheProcessesGroupWithoutPageCache) {
  for (const int version : {1, 2}) {
    SCOPED_TRACE(version);
    Mount(version, "/docker/abc");
    Group("", NoLimit(), 9000);
    Group("/docker", NoLimit(), 8000);
    Group("/docker/abc", "5000", 1000);
    Group("/docker/other", "10", 10);
    ExpectLimit("/docker/abc", 5000, 4000);
    Group("/docker/abc", "5000", 3000, 2000, 500);
    ExpectLimit("/docker/abc", 5000, 4500);
    // Full of files that were read twice.
    Group("/docker/abc", "5000", 3000, 9000);
    ExpectLimit("/docker/abc", 5000, 5000);
  }
}

TEST_F(SharedMemoryLimit, IsTheTightestOfAllGroupsAroundBesideWhatIsKept) {
  Mount(2, "/pod/container/child");
  Group("", "90000", 80000);
  Group("/pod", "6000", 5500);
  Group("/pod/container", "9000", 5000);
  Group("/pod/container/child", "max", 100);
  ExpectLimit("/pod", 6000, 500);
  Group("/pod", "16000", 5500);
  ExpectLimit("/pod/container", 9000, 4000);
  Group("", "80100", 80000);
  ExpectLimit("", 80100, 100);
  Group("/pod", "5000", 7000, 100);
  ExpectLimit("/pod", 5000, 0);
  Group("", "max", 80000);
  Group("/pod", "16000", 14800);
  Group("/pod/container", "5000", 4000);
  ExpectLimit("/pod", 16000, 1200);
}

TEST_F(SharedMemoryLimit, KeepsASixteenthOfTheLimitBut16MebibytesAtMost) {
  constexpr std::uint64_t kMebi = 1 << 20;
  Mount(2, "/a");
  for (const auto& [limit, kept] :
       {std::pair{16 * kMebi, kMebi}, {256 * kMebi, 16 * kMebi}, {65536 * kMebi, 16 * kMebi}}) {
    SCOPED_TRACE(limit);
    Group("/a", std::to_string(limit), limit - 2 * kMebi - kept);
    const std::optional<MemoryLimit> memory = TightestMemoryLimit(system_.root());
    ASSERT_TRUE(memory);
    EXPECT_EQ(memory->kept, kept);
    EXPECT_EQ(memory->left, kept + 2 * kMebi);
    EXPECT_EQ(memory->Usable(), 2 * kMebi);
  }
  Group("/a", std::to_string(16 * kMebi), 16 * kMebi - 1);
  EXPECT_EQ(TightestMemoryLimit(system_.root())->Usable(), 0u);
}

TEST_F(SharedMemoryLimit, IsFoundInAContainer) {
  // The container's group is mounted in place of the whole tree, and /proc has the host's paths.
  Mount(1, "/docker/abc/child", "/docker/abc");
  Group("", "5000", 1000);
  Group("/child", "4000", 500);
  ExpectLimit("/child", 4000, 3500);
  Mount(1, "/docker/abc", "/docker/abc");
  ExpectLimit("", 5000, 4000);
  // The paths do not fit together: what can be seen is the container's own group.
  Mount(1, "/docker/abcdef", "/docker/abc");
  ExpectLimit("", 5000, 4000);
  // A namespace of control groups: /proc has paths from the container's group on.
  for (const char* group : {"/", "/../sibling"}) {
    Mount(2, group);
    Group("", "7000", 1000);
    ExpectLimit("", 7000, 6000);
  }
}

TEST_F(SharedMemoryLimit, IsFoundBelowPathsWithBlanksAndColons) {
  system_.Write("/proc/self/cgroup", "0::/my group/a:b\n");
  system_.Write("/proc/self/mountinfo", "29 23 0:26 / /sys/fs/c\\040group rw - cgroup2 none rw\n");
  system_.Write("/sys/fs/c group/my group/a:b/memory.max", "5000\n");
  system_.Write("/sys/fs/c group/my group/a:b/memory.current", "1000\n");
  EXPECT_EQ(TightestMemoryLimit(system_.root())->left, 4000u);
}

TEST_F(SharedMemoryLimit, IsNoneWithoutALimitOrWhereTheSystemDoesNotSay) {
  ExpectNone();
  system_.Write("/proc/self/cgroup", "0::/a\n");
  ExpectNone();
  system_.Write("/proc/self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n");
  ExpectNone();
  Mount(2, "/a");
  ExpectNone();
  system_.Write("/sys/fs/cgroup/a/memory.max", "max\n");
  ExpectNone();
  system_.Write("/sys/fs/cgroup/a/memory.max", "5000\n");
  ExpectNone();
  // What cannot be read: a folder.
  std::filesystem::create_directory(system_.root() + "/sys/fs/cgroup/a/memory.current");
  ExpectNone();
}

TEST_F(SharedMemoryLimit, SkipsGroupsThatCannotBeRead) {
  Mount(2, "/a/b/c");
  Group("/a", "5000", 1000);
  Group("/a/b", "4000", 3900);
  std::filesystem::remove(system_.root() + "/sys/fs/cgroup/a/b/memory.current");
  ExpectLimit("/a", 5000, 4000);
  std::filesystem::remove(system_.root() + "/sys/fs/cgroup/a/memory.stat");
  ExpectLimit("/a", 5000, 4000);
}

TEST_F(SharedMemoryLimit, IsNoneInGarbage) {
  Mount(2, "/a");
  for (const char* limit : {"", "-1", "5000x", "99999999999999999999999999", "\xff"}) {
    SCOPED_TRACE(limit);
    Group("/a", limit, 1000);
    ExpectNone();
  }
  Group("/a", "5000", 1000);
  for (const char* groups : {"", "\n\n", ":", "::", "0", "0:", "0::\n:", "x\ny:z\n", "::::"}) {
    SCOPED_TRACE(groups);
    system_.Write("/proc/self/cgroup", groups);
    TightestMemoryLimit(system_.root());
  }
  Mount(2, "/a");
  for (const char* mounts : {"", "\n", " - ", "- - -\n", "1 2 3 4 - cgroup2 a b\n", "1 2 3 / /\\04",
                             "1 2 3 / / - cgroup2\n", "1 2 3 / \\8zz rw - cgroup2 a b"}) {
    SCOPED_TRACE(mounts);
    system_.Write("/proc/self/mountinfo", mounts);
    ExpectNone();
  }
}

}  // namespace
}  // namespace rollgate::shared
