// Other processes in tests: copies of this one that do something, tell a number, and live on until
// they are let go or killed.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <stdexcept>
#include <utility>

namespace rollgate::testing {

/// One T that this process shares with all that it forks.
template <class T>
class SharedBetweenProcesses {
 public:
  SharedBetweenProcesses() {
    void* memory =
        ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    value_ = new (memory) T();
  }
  ~SharedBetweenProcesses() { ::munmap(value_, sizeof(T)); }
  SharedBetweenProcesses(const SharedBetweenProcesses&) = delete;
  SharedBetweenProcesses& operator=(const SharedBetweenProcesses&) = delete;

  T* operator->() const { return value_; }

 private:
  T* value_;
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

  /// In the child: `tell` the number, any time.
  using Tell = std::function<void(std::int64_t)>;

  /// Runs `run` in a copy of this process, which ends when it returns. kThrew is told if it throws.
  explicit Child(const std::function<void(const Tell&)>& run) {
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::runtime_error("fork() failed");
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    int status = 0;
    try {
      run([this](std::int64_t number) { TellNow(number); });
    } catch (...) {
      TellNow(kThrew);
      status = 1;
    }
    ::_exit(status);
  }
  Child(Child&& other) noexcept = delete;
  ~Child() { Kill(); }

  pid_t pid() const { return pid_; }

  /// Waits for the next number that the child tells; kThrew as well if it ends without one.
  std::int64_t Told() {
    while (!shared_->has_told.load()) {
      if (HasEnded() && !shared_->has_told.load()) return kThrew;
      ::sched_yield();
    }
    const std::int64_t number = shared_->told;
    shared_->has_told = false;
    return number;
  }

  /// Waits for its end; tells whether that was a good one.
  bool Ends() {
    while (!HasEnded()) ::sched_yield();
    return WIFEXITED(status_) && WEXITSTATUS(status_) == 0;
  }

  void Kill() {
    if (HasEnded()) return;
    ::kill(pid_, SIGKILL);
    Ends();
  }

 private:
  struct Shared {
    std::atomic<bool> has_told{false};
    std::int64_t told = 0;
  };

  void TellNow(std::int64_t number) {
    while (shared_->has_told.load()) ::sched_yield();
    shared_->told = number;
    shared_->has_told = true;
  }

  bool HasEnded() {
    if (!has_ended_) has_ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
    return has_ended_;
  }

  SharedBetweenProcesses<Shared> shared_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool has_ended_ = false;
};

/// Never returns: what a child does that is to be killed.
[[noreturn]] inline void StayAlive() {
  for (;;) ::pause();
}

}  // namespace rollgate::testing
