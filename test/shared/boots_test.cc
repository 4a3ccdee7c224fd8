// What becomes of a region that another start of the host has made, or a container with its own
// boot id.
#include <gtest/gtest.h>
#include <sys/file.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "shared/fake_system.h"
#include "shared/processes.h"
#include "shared/region.h"
#include "shared/regions.h"

namespace rollgate::shared {
namespace {

using testing::Child;
using testing::ExpectError;
using testing::FakeSystem;
using testing::SharedBetweenProcesses;
using testing::StartingGate;
using testing::StayAlive;
using Kind = SharedError::Kind;
using Tell = Child::Tell;

class SharedRegionOfBoots : public testing::RegionTest {
 protected:
  Region AttachOn(const FakeSystem& system) const {
    RegionOptions options = Options();
    options.system_root = system.root();
    return Region::Attach(options);
  }

  /// Waits until a process has the file of the region open.
  bool IsOpenedBy(pid_t pid) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const std::string files = "/proc/" + std::to_string(pid) + "/fd";
    while (std::chrono::steady_clock::now() < deadline) {
      for (const auto& file : std::filesystem::directory_iterator(files)) {
        std::error_code is_closed;
        if (std::filesystem::read_symlink(file, is_closed) == path_) return true;
      }
    }
    return false;
  }

  const FakeSystem one_{"11111111-1111-1111-1111-111111111111"};
  const FakeSystem other_{"22222222-2222-2222-2222-222222222222"};
};
INSTANTIATE_TEST_SUITE_P(Directories, SharedRegionOfBoots, ::testing::Values("/dev/shm", "/tmp"),
                         [](const auto& info) { return info.index == 0 ? "Memory" : "Disk"; });

TEST_P(SharedRegionOfBoots, IsReplacedWhenNobodyHoldsItWhateverItSays) {
  AttachOn(one_).records()[0] = 42;
  EXPECT_EQ(AttachOn(one_).records()[0], 42u);
  EXPECT_EQ(AttachOn(other_).records()[0], 0u);

  // Another version, other limits.
  Overwrite(offsetof(Header, version), 77);
  EXPECT_EQ(AttachOn(one_).header().version, kVersion);
  Overwrite(offsetof(Header, configuration), 1);
  EXPECT_EQ(AttachOn(other_).header().configuration[0], configuration_[0]);
}

TEST_P(SharedRegionOfBoots, IsCommonToAllWhileALivingProcessHoldsIt) {
  Child child([&](const Tell& tell) {
    const Region region = AttachOn(one_);
    region.records()[0] = 42;
    tell(static_cast<std::int64_t>(region.entry()));
    StayAlive();
  });
  EXPECT_EQ(child.Told(), 0);
  const ino_t inode = Status().st_ino;
  {
    const Region region = AttachOn(other_);
    EXPECT_EQ(region.records()[0], 42u);
    EXPECT_EQ(region.entry(), 1u);
    EXPECT_EQ(Status().st_ino, inode);
    child.Kill();
    EXPECT_EQ(AttachOn(other_).records()[0], 42u) << "the survivor's boot id is another one";
  }
  EXPECT_EQ(AttachOn(other_).records()[0], 0u);
}

TEST_P(SharedRegionOfBoots, IsRefusedRatherThanRemovedWhenALivingProcessHasOtherLimits) {
  const Region region = AttachOn(one_);
  RegionOptions options = Options();
  options.system_root = other_.root();
  const auto limits = ConfigurationOf(Policy({{{60'000'000, 7}}}), false);
  options.configuration = limits;
  const ino_t inode = Status().st_ino;
  ExpectError(Kind::kMismatch, {"'api'"}, [&] { Region::Attach(options); });
  EXPECT_EQ(Status().st_ino, inode);
}

/// One process would remove the region, the other attaches: none may end with a removed one.
TEST_P(SharedRegionOfBoots, IsOneForTwoWhoAttachAtOnce) {
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    { const Region region = AttachOn(one_); }
    SharedBetweenProcesses<StartingGate> gate;
    const auto attach = [&](const FakeSystem& system) {
      return std::make_unique<Child>([&](const Tell& tell) {
        gate->Pass();
        const Region region = AttachOn(system);
        tell(static_cast<std::int64_t>(region.header().secret[0] >> 1));
        StayAlive();
      });
    };
    const auto first = attach(one_);
    const auto second = attach(other_);
    gate->Open();
    const std::int64_t secret = first->Told();
    ASSERT_NE(secret, Child::kThrew);
    ASSERT_EQ(second->Told(), secret);
    const Region region = AttachOn(round % 2 == 0 ? one_ : other_);
    ASSERT_EQ(static_cast<std::int64_t>(region.header().secret[0] >> 1), secret);
    ASSERT_EQ(region.entry(), 2u);
  }
}

TEST_P(SharedRegionOfBoots, IsNotRemovedByThoseWhoStillSeeAnEarlierOne) {
  { const Region region = AttachOn(one_); }
  // Somebody who is about to replace it, and is slow.
  const File stale = OpenOwn(path_);
  ASSERT_EQ(::flock(stale.descriptor(), LOCK_EX), 0);
  Child child([&](const Tell& tell) {
    const Region region = AttachOn(other_);
    tell(static_cast<std::int64_t>(region.header().secret[0] >> 1));
    StayAlive();
  });
  ASSERT_TRUE(IsOpenedBy(child.pid()));
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  const Region region = AttachOn(other_);
  ASSERT_EQ(::flock(stale.descriptor(), LOCK_UN), 0);
  EXPECT_EQ(child.Told(), static_cast<std::int64_t>(region.header().secret[0] >> 1));
}

TEST_P(SharedRegionOfBoots, DoesNotHoldUpAProcessForLongWhileOthersLockIt) {
  { const Region region = AttachOn(one_); }
  const auto expect_refusal = [&](const FakeSystem& system) {
    const auto start = std::chrono::steady_clock::now();
    ExpectError(Kind::kSystem, {path_, "locked or removed by others"}, [&] { AttachOn(system); });
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  };
  {
    const File file = OpenOwn(path_);
    const FileLock lock(file, std::try_to_lock);
    ASSERT_TRUE(lock);
    expect_refusal(other_);
    ExpectError(Kind::kSystem, {path_, "locked or removed by others"},
                [&] { Region::Unlink(directory_, kName); });
  }
  {
    const File file = OpenOwn(path_);
    const EntryLock all = EntryLock::TakeAll(file);
    ASSERT_TRUE(all);
    expect_refusal(one_);
  }
  EXPECT_EQ(AttachOn(other_).entry(), 0u);
}

}  // namespace
}  // namespace rollgate::shared
