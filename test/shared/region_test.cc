// How a region is made, found, refused and removed, by one process.
#include "shared/region.h"

#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "shared/regions.h"
#include "shared/tiny_region.h"

namespace rollgate::shared {
namespace {

using testing::ExpectError;
using Kind = SharedError::Kind;

class SharedRegion : public testing::RegionTest {
 protected:
  /// The call that an error names.
  std::string Removal() const {
    return "RateLimiter.unlinkShared({ name: 'api', directory: '" + directory_ + "' })";
  }
};
INSTANTIATE_TEST_SUITE_P(Directories, SharedRegion, ::testing::Values("/dev/shm", "/tmp"),
                         [](const auto& info) { return info.index == 0 ? "Memory" : "Disk"; });

TEST_P(SharedRegion, IsMadeWholeAndPrivateWhateverTheUmask) {
  for (const mode_t mask : {0, 0777}) {
    const mode_t before = ::umask(mask);
    const Region region = Attach();
    ::umask(before);
    EXPECT_EQ(Status().st_mode, static_cast<mode_t>(S_IFREG | 0600));
    EXPECT_EQ(static_cast<std::size_t>(Status().st_size), region.view().geometry.bytes());
    EXPECT_GE(static_cast<std::size_t>(Status().st_blocks) * 512, region.view().geometry.bytes());
    EXPECT_TRUE(Unlink());
  }
}

TEST_P(SharedRegion, BeginsWithEachRecordInOnePlaceAndNothingElse) {
  const Region region = Attach(1000);
  const Header& header = region.header();
  EXPECT_EQ(header.max_keys, 1000u);
  EXPECT_EQ(header.record_words, kRecordWords);
  EXPECT_EQ(header.buckets, Geometry::BucketsFor(1000));
  EXPECT_EQ(header.entries_used, 1u);
  EXPECT_EQ(region.entry(), 0u);
  const std::set<std::uint64_t> words(header.secret.begin(), header.secret.end());
  EXPECT_EQ(words.size(), header.secret.size());
  EXPECT_EQ(testing::Audit(region.view()), std::vector<std::string>());
  for (const Word& word :
       {std::cref(header.era), std::cref(header.forgotten), std::cref(header.alignment.offset),
        std::cref(header.alignment.lead), std::cref(region.view().entries[1].keys)}) {
    EXPECT_EQ(word, 0u);
  }
  const Word* const records = region.view().records;
  const std::size_t size = region.view().geometry.records() * kRecordWords;
  EXPECT_TRUE(std::all_of(records, records + size, [](const Word& word) { return word == 0; }));
}

TEST_P(SharedRegion, IsTheSameForAllWhoAttach) {
  const Region first = Attach(100);
  const Region second = Attach(7000);
  EXPECT_NE(&first.header(), &second.header());
  EXPECT_EQ(second.header().secret, first.header().secret);
  EXPECT_EQ(second.header().max_keys, 100u) << "that of the first counts";
  EXPECT_EQ(second.view().geometry.bytes(), first.view().geometry.bytes());
  EXPECT_EQ(first.entry(), 0u);
  EXPECT_EQ(second.entry(), 1u);
  EXPECT_EQ(first.header().entries_used, 2u);
  const std::uint64_t last = first.view().geometry.records() * kRecordWords - 1;
  first.view().records[last] = 42;
  EXPECT_EQ(second.view().records[last], 42u);
}

TEST_P(SharedRegion, MovesAndTakesItsEntryAlong) {
  Region first = Attach();
  Region second = Attach();
  Region moved = std::move(second);
  EXPECT_EQ(moved.entry(), 1u);
  first = std::move(moved);
  EXPECT_EQ(first.entry(), 1u);
  EXPECT_EQ(first.header().magic, kMagic);
}

TEST_P(SharedRegion, WithOtherOptionsIsRefusedAndBothAreNamed) {
  const Region region = Attach();
  const auto other = testing::ConfigurationFor({{{1'500, 7}}, 0, false, Algorithm{3}});
  RegionOptions options = Options();
  options.configuration = other;
  options.record_words = 12;
  ExpectError(
      Kind::kMismatch,
      {"'api'", "expected " + TextOf(other), "made with " + TextOf(configuration_), Removal()},
      [&] { Region::Attach(options); });
  options.configuration = configuration_;
  ExpectError(Kind::kFile, {path_, "records of 8 words, expected 12"},
              [&] { Region::Attach(options); });
}

TEST_P(SharedRegion, OfAnotherSizeThanItSaysIsRefused) {
  const auto size = static_cast<off_t>(Attach().view().geometry.bytes());
  const auto header = static_cast<off_t>(sizeof(Header));
  const auto resize = [&](off_t to) { ASSERT_EQ(::truncate(path_.c_str(), to), 0); };
  for (const off_t wrong : {size + 1, size - 1, header, header - 1, off_t{10}, off_t{0}}) {
    SCOPED_TRACE(wrong);
    resize(wrong);
    ExpectError(Kind::kFile, {path_, "has " + std::to_string(wrong) + " bytes", "expected"},
                [&] { Attach(); });
    EXPECT_EQ(Status().st_size, wrong) << "it must be left alone";
  }
}

struct Damage {
  const char* name;
  std::size_t offset;
  std::uint64_t word;
  const char* message;
};
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
const Damage kDamages[] = {
    {"magic", offsetof(Header, magic), kMagic + 1, "does not begin as a shared limiter does"},
    {"version", offsetof(Header, version), 77, "number 77, expected 4"},
    {"bytes", offsetof(Header, bytes), 4096, "bytes"},
    {"no buckets", offsetof(Header, buckets), 0, "0 buckets"},
    {"another bucket", offsetof(Header, buckets), 19, "19 buckets"},
    {"2^28 buckets", offsetof(Header, buckets), 1 << 28, "268435456 buckets"},
    {"2^61 buckets", offsetof(Header, buckets), std::uint64_t{1} << 61, "buckets"},
    {"all buckets", offsetof(Header, buckets), kMost, "18446744073709551615 buckets"},
    {"no words", offsetof(Header, record_words), 0, "records of 0 words"},
    {"no state", offsetof(Header, record_words), 4, "records of 4 words"},
    {"other words", offsetof(Header, record_words), 12, "bytes, expected"},
    {"many words", offsetof(Header, record_words), kMost, "which is impossible"},
    {"no ids", offsetof(Header, max_keys), 0, "0 ids"},
    {"many ids", offsetof(Header, max_keys), kMost, "which is impossible"},
    {"configuration", offsetof(Header, configuration_words), 1016, "1016 words of configuration"},
    {"entries", offsetof(Header, entries_used), 1025, "1025 entries"},
};

TEST_P(SharedRegion, ThatIsImpossibleIsRefusedAndLeftAlone) {
  for (const Damage& damage : kDamages) {
    SCOPED_TRACE(damage.name);
    { const Region region = Attach(); }
    const ino_t inode = Status().st_ino;
    Overwrite(damage.offset, damage.word);
    ExpectError(Kind::kFile, {path_, damage.message, Removal()}, [&] { Attach(); });
    EXPECT_EQ(Status().st_ino, inode);
    EXPECT_TRUE(Unlink());
  }
}

TEST_P(SharedRegion, CannotBeFoundWithoutAFileToSpareAndSaysSo) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the undefined behavior sanitizer opens files itself to look at objects";
#endif
  { const Region region = Attach(); }
  struct rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit none = {0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  ExpectError(Kind::kSystem, {"boot_id: Too many open files"}, [&] { Attach(); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(Attach().entry(), 0u);
}

TEST_P(SharedRegion, ThatOthersMayReadOrWriteIsRefused) {
  { const Region region = Attach(); }
  for (const mode_t mode : {0640, 0602}) {
    ASSERT_EQ(::chmod(path_.c_str(), mode), 0);
    ExpectError(Kind::kFile, {path_, mode == 0640 ? "mode 0640" : "mode 0602", "expected 0600"},
                [&] { Attach(); });
  }
}

TEST_P(SharedRegion, OfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  { const Region region = Attach(); }
  ASSERT_EQ(::chown(path_.c_str(), 65534, 65534), 0);
  ExpectError(Kind::kFile, {path_, "id 65534, expected 0"}, [&] { Attach(); });
  ExpectError(Kind::kFile, {path_, "id 65534, expected 0"}, [&] { Unlink(); });
  EXPECT_EQ(Status().st_uid, 65534u);
}

/// Neither attached to nor removed: no file at all.
TEST_P(SharedRegion, IsNothingButARegularFile) {
  const std::string elsewhere = directory_ + "-elsewhere";
  { const Region region = Attach(); }
  ASSERT_EQ(::rename(path_.c_str(), elsewhere.c_str()), 0);
  const std::pair<const char*, std::function<int()>> kinds[] = {
      {"a symbolic link", [&] { return ::symlink(elsewhere.c_str(), path_.c_str()); }},
      {"a symbolic link", [&] { return ::symlink("/nowhere", path_.c_str()); }},
      {"a directory", [&] { return ::mkdir(path_.c_str(), 0700); }},
      {"a FIFO", [&] { return ::mkfifo(path_.c_str(), 0600); }},
      {"a socket", [&] { return ::mknod(path_.c_str(), S_IFSOCK | 0600, 0); }},
  };
  for (const auto& [kind, make] : kinds) {
    SCOPED_TRACE(kind);
    ASSERT_EQ(make(), 0);
    const std::string message = std::string("is ") + kind + ", expected a regular file";
    ExpectError(Kind::kFile, {path_, message}, [&] { Attach(); });
    ExpectError(Kind::kFile, {path_, message}, [&] { Unlink(); });
    EXPECT_FALSE(S_ISREG(Status().st_mode));
    std::filesystem::remove(path_);
  }
  EXPECT_TRUE(std::filesystem::remove(elsewhere));
}

TEST_P(SharedRegion, OfForeignBytesIsRefusedAndCanBeRemoved) {
  EXPECT_FALSE(Unlink());
  const std::string text(20'000, 'x');
  std::ofstream(path_) << text;
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  ExpectError(Kind::kFile, {path_, "does not begin as a shared limiter does"}, [&] { Attach(); });
  EXPECT_EQ(static_cast<std::size_t>(Status().st_size), text.size());
  EXPECT_TRUE(Unlink());
  EXPECT_FALSE(Unlink());
  EXPECT_FALSE(Region::Unlink(directory_ + "/nowhere", kName));
}

TEST_P(SharedRegion, ThatIsRemovedStaysWithThoseWhoAreAttached) {
  const Region before = Attach();
  EXPECT_TRUE(Unlink());
  EXPECT_TRUE(Names().empty());
  const Region after = Attach();
  EXPECT_EQ(after.entry(), 0u);
  EXPECT_NE(after.header().secret, before.header().secret);
  before.view().records[0] = 1;
  EXPECT_EQ(before.header().magic, kMagic);
  EXPECT_EQ(after.view().records[0], 0u);
}

TEST_P(SharedRegion, SaysSoWhenAllEntriesAreTaken) {
  const Region first = Attach();
  testing::EntriesOfOthers others(path_);  // all but ours
  ExpectError(Kind::kFull, {"1024 limiters"}, [&] { Attach(); });
  EXPECT_EQ(first.header().entries_used, 1u);

  others.Free(kEntries - 1);
  const Region last = Attach();
  EXPECT_EQ(last.entry(), kEntries - 1);
  EXPECT_EQ(first.header().entries_used, kEntries);
  ExpectError(Kind::kFull, {"1024 limiters"}, [&] { Attach(); });
}

TEST_P(SharedRegion, ThatIsLargerThanTheDirectoryIsRefused) {
  RegionOptions options = Options(1'000'000);
  options.record_words = std::uint64_t{1} << 22;  // 40 terabytes
  options.has_log = true;
  ExpectError(Kind::kSystem,
              {"needs 4", " bytes for " + path_, "are left in the file system of " + directory_,
               "lower maxInInterval"},
              [&] { Region::Attach(options); });
  EXPECT_TRUE(Names().empty());
}

TEST_P(SharedRegion, OfMoreIdsThanThereAreNumbersForIsRefused) {
  for (const std::uint64_t max_keys : {std::uint64_t{1} << 28, std::uint64_t{1} << 60, kMost}) {
    ExpectError(Kind::kSystem, {std::to_string(max_keys) + " ids", "lower maxKeys to at most "},
                [&] { Attach(max_keys); });
  }
  EXPECT_TRUE(Names().empty());
}

TEST_P(SharedRegion, SaysWhatIsWrongWithTheDirectory) {
  RegionOptions options = Options();
  options.directory = directory_ + "/nowhere";
  ExpectError(Kind::kSystem, {options.directory, "No such file"}, [&] { Region::Attach(options); });
  options.directory = "/dev/null";
  ExpectError(Kind::kSystem, {"/dev/null", "Not a directory"}, [&] { Region::Attach(options); });
  options.directory = "/proc";
  ExpectError(Kind::kSystem, {"file system of /proc", "another directory"},
              [&] { Region::Attach(options); });
}

TEST_P(SharedRegion, HasNoNameThatLeadsElsewhere) {
  for (const std::string name : {"", "a/b", "../x", "/"}) {
    RegionOptions options = Options();
    options.name = name;
    ExpectError(Kind::kSystem, {"'" + name + "'"}, [&] { Region::Attach(options); });
    ExpectError(Kind::kSystem, {"'" + name + "'"}, [&] { Region::Unlink(directory_, name); });
  }
  RegionOptions options = Options();
  options.name = std::string(300, 'x');
  ExpectError(Kind::kSystem, {"File name too long"}, [&] { Region::Attach(options); });
}

TEST_P(SharedRegion, IsMadeWhileAnotherProgramHasTheDirectoryLocked) {
  const File directory(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::flock(directory.descriptor(), LOCK_EX), 0);
  EXPECT_EQ(Attach().header().magic, kMagic);
}

TEST_P(SharedRegion, IsMadeWhileSignalsKeepComing) {
  struct sigaction action = {};
  struct sigaction before = {};
  static std::atomic<int> signals{0};
  action.sa_handler = [](int) { ++signals; };
  ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
  const itimerval often = {{0, 2000}, {0, 2000}};
  const itimerval never = {};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  EXPECT_EQ(Attach(400'000).header().max_keys, 400'000u);
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  EXPECT_GT(signals, 0);
}

}  // namespace
}  // namespace rollgate::shared
