// A folder that a region takes for the root of the system: files of /proc and of control groups.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rollgate::testing {

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

}  // namespace rollgate::testing
