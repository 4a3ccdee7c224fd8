// What tests of regions stand on: a folder of their own, a system that is made up, and processes
// that are killed.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/policy.h"
#include "shared/configuration.h"
#include "shared/region.h"
#include "shared/shared_store.h"

namespace rollgate::testing {

/// The factor for every bound in real time: above 1 on a busy or sanitized machine.
inline double Patience() {
  const char* factor = std::getenv("ROLLGATE_PATIENCE");
  return factor ? std::atof(factor) : 1;
}

/// How many files this process has open.
inline std::ptrdiff_t OpenFiles() {
  std::filesystem::directory_iterator files("/proc/self/fd");
  return std::distance(begin(files), end(files));
}

/// A region of its own for a test, removed at its end.
class RegionName {
 public:
  RegionName() : name_("test-" + std::to_string(getpid()) + "-" + std::to_string(++made_)) {}
  ~RegionName() { UnlinkShared(kDirectory, name_); }
  RegionName(const RegionName&) = delete;
  RegionName& operator=(const RegionName&) = delete;

  std::string path() const {
    return std::string(kDirectory) + "/rollgate-" + std::to_string(::geteuid()) + "-" + name_;
  }

  SharedStoreOptions Options(std::size_t max_keys = 1000) const {
    SharedStoreOptions options;
    options.directory = kDirectory;
    options.name = name_;
    options.max_keys = max_keys;
    return options;
  }

 private:
  static constexpr const char* kDirectory = "/dev/shm";
  static inline int made_ = 0;
  std::string name_;
};

/// What processes with this policy agree on.
inline std::vector<std::uint64_t> ConfigurationFor(const PolicyOptions& options) {
  return shared::ConfigurationOf(Policy(options), {}, shared::LogFormFor(Policy(options), 0));
}

/// Holds all entries of a region's file but the first.
class EntriesOfOthers {
 public:
  explicit EntriesOfOthers(const std::string& path)
      : file_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {
    Set(F_WRLCK, 1, shared::kEntries - 1);
  }
  void Free(std::size_t entry) { Set(F_UNLCK, entry, 1); }

 private:
  void Set(short type, std::size_t start, std::size_t count) {
    struct flock lock = {};
    lock.l_type = type;
    lock.l_start = static_cast<off_t>(start);
    lock.l_len = static_cast<off_t>(count);
    EXPECT_EQ(::fcntl(file_.descriptor(), F_OFD_SETLK, &lock), 0);
  }

  shared::File file_;
};

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
    return {directory_, kName, max_keys, kRecordWords, configuration_};
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

  std::string directory_;
  std::string path_;
  std::vector<std::uint64_t> configuration_ = ConfigurationFor({{{60'000'000, 5}}});

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

class FakeSystem {
 public:
  /// Has a boot id and nothing else.
  explicit FakeSystem(const std::string& boot_id = "11111111-2222-3333-4444-555555555555") {
    EXPECT_NE(::mkdtemp(root_.data()), nullptr) << root_;
    Write("/proc/sys/kernel/random/boot_id", boot_id + "\n");
  }
  ~FakeSystem() { std::filesystem::remove_all(root_); }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;

  const std::string& root() const { return root_; }

  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }

 private:
  std::string root_ = "/tmp/rollgate-system-XXXXXX";
};

/// One T that this process shares with all that it forks.
template <class T>
class SharedBetweenProcesses {
 public:
  SharedBetweenProcesses() {
    void* memory =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    value_.reset(new (memory) T());
  }

  T* operator->() const { return value_.get(); }

 private:
  struct Unmap {
    void operator()(T* value) const { ::munmap(value, sizeof(T)); }
  };
  std::unique_ptr<T, Unmap> value_;
};

/// A gate that many processes pass at one moment.
class StartingGate {
 public:
  void Pass() {
    while (!is_open_.load()) ::sched_yield();
  }
  void Open() { is_open_ = true; }
  void Close() { is_open_ = false; }

 private:
  std::atomic<bool> is_open_{false};
};

class Child {
 public:
  static constexpr std::int64_t kThrew = -1;

  /// In the child: sends the number to its parent, any time.
  using Send = std::function<void(std::int64_t)>;

  /// Runs `run` in a copy of this process, which ends when it returns. Sends kThrew if it throws.
  explicit Child(const std::function<void(const Send&)>& run) {
    int pipe[2];
    if (::pipe(pipe) != 0) throw std::runtime_error("pipe() failed");
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork() failed");
    if (pid_ != 0) {
      ::close(pipe[1]);
      from_child_ = pipe[0];
      return;
    }
    ::close(pipe[0]);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const auto send = [&pipe](std::int64_t number) {
      if (::write(pipe[1], &number, sizeof number) != sizeof number) ::_exit(1);
    };
    int status = 0;
    try {
      run(send);
    } catch (...) {
      send(kThrew);
      status = 1;
    }
    ::_exit(status);
  }
  Child(Child&& other) noexcept = delete;
  ~Child() {
    Kill();
    ::close(from_child_);
  }

  pid_t pid() const { return pid_; }

  /// Waits for the next number that the child sends; kThrew as well if it ends without one.
  std::int64_t Receive() {
    std::int64_t number;
    return ::read(from_child_, &number, sizeof number) == sizeof number ? number : kThrew;
  }

  /// Waits for its end; returns whether that was a good one.
  bool Ends() {
    if (!has_ended_) has_ended_ = ::waitpid(pid_, &status_, 0) == pid_;
    return has_ended_ && WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  }

  void Kill() {
    if (has_ended_) return;
    ::kill(pid_, SIGKILL);
    Ends();
  }

 private:
  pid_t pid_ = -1;
  int from_child_ = -1;
  int status_ = 0;
  bool has_ended_ = false;
};

/// Processes that begin at one moment, once all have been started.
inline std::vector<std::unique_ptr<Child>> StartTogether(
    int count, const std::function<void(const Child::Send&)>& run) {
  SharedBetweenProcesses<StartingGate> gate;
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < count; ++i) {
    children.push_back(std::make_unique<Child>([&](const Child::Send& send) {
      gate->Pass();
      run(send);
    }));
  }
  gate->Open();
  return children;
}

/// Never returns: what a child does that is to be killed.
[[noreturn]] inline void StayAlive() {
  for (;;) ::pause();
}

}  // namespace rollgate::testing
