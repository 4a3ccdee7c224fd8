// A folder of its own for the regions of a test, and what is to be seen of them there.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "core/policy.h"
#include "shared/configuration.h"
#include "shared/region.h"

namespace rollgate::testing {

/// How many files this process has open.
inline std::ptrdiff_t OpenFiles() {
  std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

/// Tests of files in a memory file system, and in that of temporary files.
class RegionTest : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr const char* kName = "api";
  static constexpr std::uint64_t kRecordWords = 8;

  void SetUp() override {
    directory_ = std::string(GetParam()) + "/rollgate-test-XXXXXX";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr) << directory_;
    path_ = directory_ + "/rollgate-" + std::to_string(::geteuid()) + "-" + kName;
    const int file = ::open(directory_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0) GTEST_SKIP() << GetParam() << " has no files without a name";
    ::close(file);
    open_files_ = OpenFiles();
  }

  void TearDown() override {
    if (open_files_ != 0) {
      EXPECT_EQ(OpenFiles(), open_files_);
    }
    for (const std::string& name : Names()) {
      EXPECT_EQ(name, std::filesystem::path(path_).filename()) << "was left behind";
    }
    std::filesystem::remove_all(directory_);
  }

  shared::RegionOptions Options(std::uint64_t max_keys = 100) const {
    return {directory_, kName, max_keys, kRecordWords, 0, configuration_};
  }

  shared::Region Attach(std::uint64_t max_keys = 100) const {
    return shared::Region::Attach(Options(max_keys));
  }

  bool Unlink() const { return shared::Region::Unlink(directory_, kName); }

  /// What is in the directory.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  struct stat Status() const {
    struct stat status = {};
    EXPECT_EQ(::lstat(path_.c_str(), &status), 0) << path_;
    return status;
  }

  /// Overwrites a word of the file, as by another program.
  void Overwrite(std::size_t offset, std::uint64_t word) const {
    const shared::File file(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    ASSERT_EQ(::pwrite(file.descriptor(), &word, sizeof word, static_cast<off_t>(offset)), 8);
  }

  /// As if the host had been started anew since the region was made.
  void MakeStale() const { Overwrite(offsetof(shared::Header, boot), 12345); }

  std::string directory_;
  std::string path_;
  std::vector<std::uint64_t> configuration_ =
      shared::ConfigurationOf(Policy({{{60'000'000, 5}}}), false);

 private:
  std::ptrdiff_t open_files_ = 0;
};

/// Expects a SharedError of that kind whose message has all these parts.
template <class Call>
void ExpectError(SharedError::Kind kind, const std::vector<std::string>& parts, Call call) {
  try {
    call();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const SharedError& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << part << " is missing in: " << error.what();
    }
  }
}

}  // namespace rollgate::testing
