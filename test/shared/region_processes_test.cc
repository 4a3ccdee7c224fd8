// A region among processes: those who race to make it, are killed, or are copies of one another.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "shared/region.h"
#include "shared/regions.h"

namespace rollgate::shared {
namespace {

using testing::Child;
using testing::ExpectError;
using testing::FakeSystem;
using testing::Patience;
using testing::SharedBetweenProcesses;
using testing::StartingGate;
using testing::StartTogether;
using testing::StayAlive;
using Kind = SharedError::Kind;
using Send = Child::Send;

/// Tells an entry of a region, and which of all regions it is.
std::int64_t NumberOf(const Region& region) {
  const std::uint64_t which = region.header().secret[0] << 16 >> 4;
  return static_cast<std::int64_t>(which | region.entry());
}

class SharedRegionOfMany : public testing::RegionTest {};
INSTANTIATE_TEST_SUITE_P(Directories, SharedRegionOfMany, ::testing::Values("/dev/shm", "/tmp"),
                         [](const auto& info) { return info.index == 0 ? "Memory" : "Disk"; });

TEST_P(SharedRegionOfMany, IsMadeOnceHoweverManyStartTogether) {
  constexpr int kChildren = 12;
  for (int round = 0; round < 10; ++round) {
    const auto children = StartTogether(kChildren, [&](const Send& send) {
      const Region region = Attach();
      send(NumberOf(region));
      StayAlive();
    });
    std::set<std::int64_t> sent;
    for (const auto& child : children) sent.insert(child->Receive());
    const Region region = Attach();
    std::set<std::int64_t> expected;
    for (int i = 0; i < kChildren; ++i) expected.insert(NumberOf(region) - kChildren + i);
    EXPECT_EQ(sent, expected);
    EXPECT_EQ(Names().size(), 1u);
    EXPECT_TRUE(Unlink());
  }
}

/// A file system of 64 MB in place of a directory, for this process alone; tells whether that can
/// be had here.
bool MountSmall(const std::string& directory) {
  const auto write = [](const char* path, const std::string& text) {
    const File file(::open(path, O_WRONLY | O_CLOEXEC));
    return ::write(file.descriptor(), text.data(), text.size()) > 0;
  };
  const std::string user = "0 " + std::to_string(::geteuid()) + " 1";
  const std::string group = "0 " + std::to_string(::getegid()) + " 1";
  return ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write("/proc/self/setgroups", "deny") &&
         write("/proc/self/uid_map", user) && write("/proc/self/gid_map", group) &&
         ::mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=64m") == 0;
}

TEST_P(SharedRegionOfMany, IsMadeOnceWhereThereIsSpaceForOneOnly) {
  constexpr std::int64_t kNoSpace = 7;
  Child outer([&](const Send& send) {
    const bool is_mounted = MountSmall(directory_);
    send(is_mounted ? 1 : 0);
    if (!is_mounted) return;
    for (int round = 0; round < 3; ++round) {
      const auto attach = [&](const Send&) { Attach(400'000); };  // 37 MB
      for (const auto& child : StartTogether(6, attach)) {
        if (!child->Ends()) return send(0);
      }
      Unlink();
    }
    // More than there is: nothing stays of it.
    try {
      Attach(1'000'000);
    } catch (const SharedError&) {
      send(Names().empty() ? kNoSpace : 0);
    }
  });
  if (outer.Receive() == 0) GTEST_SKIP() << "no file system can be mounted here";
  EXPECT_EQ(outer.Receive(), kNoSpace);
  EXPECT_TRUE(outer.Ends());
}

TEST_P(SharedRegionOfMany, CanBeRemovedAndMadeByAllAtOnce) {
  const auto children = StartTogether(4, [&](const Send&) {
    for (int round = 0; round < 200; ++round) {
      const Region region = Attach();
      if (region.header().magic != kMagic) ::_exit(1);
      region.view().records[0] = 1;
      Unlink();
    }
  });
  for (const auto& child : children) EXPECT_TRUE(child->Ends());
  EXPECT_LE(Names().size(), 1u);
}

TEST_P(SharedRegionOfMany, LeavesNothingOfAProcessThatIsKilledWhileItMakesIt) {
  constexpr std::uint64_t kKeys = 200'000;
  for (int round = 0; round < 40; ++round) {
    {
      Child child([&](const Send& send) {
        send(0);
        Attach(kKeys);
        StayAlive();
      });
      child.Receive();
      const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(500 * round);
      while (std::chrono::steady_clock::now() < end && Names().empty()) {
      }
    }
    EXPECT_LE(Names().size(), 1u);
    EXPECT_EQ(Attach(kKeys).entry(), 0u);
    EXPECT_EQ(Names().size(), 1u);
    EXPECT_TRUE(Unlink());
  }
}

TEST_P(SharedRegionOfMany, GivesACopyOfAProcessAnEntryOfItsOwn) {
  for (const bool is_removed : {false, true}) {
    Region region = Attach();
    if (is_removed) {
      EXPECT_TRUE(Unlink());
    }
    EXPECT_FALSE(region.IsForked());
    {
      Child child([&](const Send& send) {
        send(region.IsForked() ? 1 : 0);
        Header* const header = &region.header();
        region.TakeEntryAgain();
        send(region.IsForked() ? 1 : 0);
        send(static_cast<std::int64_t>(region.entry()));
        send(&region.header() == header ? 1 : 0);
        region.view().records[0] = 42;
        send(0);
        StayAlive();
      });
      EXPECT_EQ(child.Receive(), 1);
      EXPECT_EQ(child.Receive(), 0);
      EXPECT_EQ(child.Receive(), 1) << "the entry after ours";
      EXPECT_EQ(child.Receive(), 1) << "what is mapped stays where it is";
      EXPECT_EQ(child.Receive(), 0);
      EXPECT_EQ(region.view().records[0], 42u);
      EXPECT_FALSE(region.IsForked());
      EXPECT_EQ(region.entry(), 0u);
      EXPECT_EQ(region.header().entries_used, 2u);
    }
    region.TakeEntryAgain();
    EXPECT_EQ(region.entry(), 1u) << "the child is gone, our own entry is still ours meanwhile";
  }
}

TEST_P(SharedRegionOfMany, KeepsTheEntryOfTheOriginalWhateverItsCopyDoes) {
  auto region = std::make_unique<Region>(Attach());
  Child letting_go([&](const Send&) { region.reset(); });
  EXPECT_TRUE(letting_go.Ends());
  Child living([&](const Send& send) {
    send(0);
    StayAlive();
  });
  living.Receive();
  EXPECT_EQ(Attach().entry(), 1u);
  region.reset();
  EXPECT_EQ(Attach().entry(), 0u) << "free again, although a copy lives";
}

TEST_P(SharedRegionOfMany, HasTheEntryAgainOfAKilledProcessWhoseCopyHasTakenAnother) {
  SharedBetweenProcesses<StartingGate> end;
  Child original([&](const Send& send) {
    Region region = Attach();
    send(static_cast<std::int64_t>(region.entry()));
    if (::fork() != 0) StayAlive();
    ::alarm(static_cast<unsigned>(60 * Patience()));  // nobody looks after this one
    region.TakeEntryAgain();
    send(static_cast<std::int64_t>(region.entry()));
    end->Pass();
  });
  EXPECT_EQ(original.Receive(), 0);
  EXPECT_EQ(original.Receive(), 1);
  original.Kill();
  {
    const Region first = Attach();
    EXPECT_EQ(first.entry(), 0u);
    EXPECT_EQ(Attach().entry(), 2u);
  }
  end->Open();
}

TEST_P(SharedRegionOfMany, KeepsWhatItHasWhenACopyFindsNoEntry) {
  Region region = Attach();
  testing::EntriesOfOthers others(path_);
  Child child([&](const Send& send) {
    try {
      region.TakeEntryAgain();
    } catch (const SharedError& error) {
      send(error.kind() == Kind::kFull && region.IsForked() ? 1 : 0);
    }
    while (region.IsForked()) {
      try {
        region.TakeEntryAgain();
      } catch (const SharedError&) {
      }
    }
    send(static_cast<std::int64_t>(region.entry()));
  });
  EXPECT_EQ(child.Receive(), 1);
  others.Free(7);
  EXPECT_EQ(child.Receive(), 7);
  EXPECT_TRUE(child.Ends());
}

TEST_P(SharedRegionOfMany, IsRefusedBeforeALimitOnFilesEndsTheProcess) {
  Child child([&](const Send& send) {
    const struct rlimit limit = {1 << 20, 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      Attach(100'000);
    } catch (const SharedError& error) {
      send(std::string(error.what()).find("1048576 bytes are left for a file") != std::string::npos
               ? 1
               : 0);
    }
  });
  EXPECT_EQ(child.Receive(), 1);
  EXPECT_TRUE(child.Ends());
  EXPECT_TRUE(Names().empty());
}

/// A region that another start of the host has made, or a container with its own boot id.
class SharedRegionOfBoots : public testing::RegionTest {
 protected:
  Region AttachOn(const FakeSystem& system) const {
    RegionOptions options = Options();
    options.system_root = system.root();
    return Region::Attach(options);
  }

  /// Waits until a process has the file of the region open.
  bool IsOpenedBy(pid_t pid) const {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(20 * Patience());
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
  AttachOn(one_).view().records[0] = 42;
  EXPECT_EQ(AttachOn(one_).view().records[0], 42u);
  EXPECT_EQ(AttachOn(other_).view().records[0], 0u);

  // Another version, other limits.
  Overwrite(offsetof(Header, version), 77);
  EXPECT_EQ(AttachOn(one_).header().version, kVersion);
  Overwrite(offsetof(Header, configuration), 1);
  EXPECT_EQ(AttachOn(other_).header().configuration[0], configuration_[0]);
}

TEST_P(SharedRegionOfBoots, IsCommonToAllWhileALivingProcessHoldsIt) {
  Child child([&](const Send& send) {
    const Region region = AttachOn(one_);
    region.view().records[0] = 42;
    send(static_cast<std::int64_t>(region.entry()));
    StayAlive();
  });
  EXPECT_EQ(child.Receive(), 0);
  const ino_t inode = Status().st_ino;
  {
    const Region region = AttachOn(other_);
    EXPECT_EQ(region.view().records[0], 42u);
    EXPECT_EQ(region.entry(), 1u);
    EXPECT_EQ(Status().st_ino, inode);
    child.Kill();
    EXPECT_EQ(AttachOn(other_).view().records[0], 42u) << "the survivor's boot id is another one";
  }
  EXPECT_EQ(AttachOn(other_).view().records[0], 0u);
}

TEST_P(SharedRegionOfBoots, IsRefusedRatherThanRemovedWhenALivingProcessHasOtherLimits) {
  const Region region = AttachOn(one_);
  RegionOptions options = Options();
  options.system_root = other_.root();
  const auto limits = testing::ConfigurationFor({{{60'000'000, 9}}});
  options.configuration = limits;
  const ino_t inode = Status().st_ino;
  ExpectError(Kind::kMismatch, {"'api'"}, [&] { Region::Attach(options); });
  EXPECT_EQ(Status().st_ino, inode);
}

/// One process would remove the region, the other attaches: none may end with a removed one.
TEST_P(SharedRegionOfBoots, IsOneForTwoWhoAttachAtOnce) {
  for (int round = 0; round < 50; ++round) {
    SCOPED_TRACE(round);
    { const Region region = AttachOn(one_); }
    SharedBetweenProcesses<StartingGate> gate;
    const auto attach = [&](const FakeSystem& system) {
      return std::make_unique<Child>([&](const Send& send) {
        gate->Pass();
        const Region region = AttachOn(system);
        send(static_cast<std::int64_t>(region.header().secret[0] >> 1));
        StayAlive();
      });
    };
    const auto first = attach(one_);
    const auto second = attach(other_);
    gate->Open();
    const std::int64_t secret = first->Receive();
    ASSERT_NE(secret, Child::kThrew);
    ASSERT_EQ(second->Receive(), secret);
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
  Child child([&](const Send& send) {
    const Region region = AttachOn(other_);
    send(static_cast<std::int64_t>(region.header().secret[0] >> 1));
    StayAlive();
  });
  ASSERT_TRUE(IsOpenedBy(child.pid()));
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  const Region region = AttachOn(other_);
  ASSERT_EQ(::flock(stale.descriptor(), LOCK_UN), 0);
  EXPECT_EQ(child.Receive(), static_cast<std::int64_t>(region.header().secret[0] >> 1));
}

/// Takes as long as a process keeps trying, several times.
class SharedSlowRegion : public SharedRegionOfBoots {};
INSTANTIATE_TEST_SUITE_P(Directories, SharedSlowRegion, ::testing::Values("/dev/shm"),
                         [](const auto&) { return "Memory"; });

TEST_P(SharedSlowRegion, IsRefusedInTheEndWhileOthersLockIt) {
  { const Region region = AttachOn(one_); }
  const auto expect_refusal = [&](const FakeSystem& system) {
    ExpectError(Kind::kSystem, {path_, "locked or removed by others"}, [&] { AttachOn(system); });
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
