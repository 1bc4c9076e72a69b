// SPDX-License-Identifier: Apache-2.0
//
// A control group of version 1 or 2 with a hard limit of memory, where a test may make one, and a neighbour
// that wants memory in it.

#pragma once

#include "mica/budget/pressure.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mica::test {

/// Exists while this does; everybody in it must have left by then.
class MemoryCage {
 public:
  explicit MemoryCage(std::uint64_t bytes) {
    std::error_code error;
    const std::filesystem::path v1 = "/sys/fs/cgroup/memory";
    v1_ = std::filesystem::is_directory(v1, error);
    folder_ =
        (v1_ ? v1 : std::filesystem::path("/sys/fs/cgroup")) / ("mica-test-" + std::to_string(::getpid()));
    if (!std::filesystem::create_directory(folder_, error)) return;
    made_ = write(v1_ ? "memory.limit_in_bytes" : "memory.max", bytes);
    write(v1_ ? "memory.memsw.limit_in_bytes" : "memory.swap.max",
          v1_ ? bytes : 0);  // fails where nobody swaps
    made_ = made_ && std::filesystem::exists(members(), error);
  }
  MemoryCage(const MemoryCage&) = delete;
  MemoryCage& operator=(const MemoryCage&) = delete;
  ~MemoryCage() {
    std::error_code error;
    for (int i = 0; i < 200 && std::filesystem::exists(folder_, error); ++i) {
      if (::rmdir(folder_.c_str()) == 0) return;
      ::usleep(10'000);
    }
  }

  /// False where the system allows none.
  explicit operator bool() const { return made_; }
  /// Who writes his number there is in it.
  std::string members() const { return (folder_ / "cgroup.procs").string(); }
  /// Words of a shell that runs a command in it.
  std::vector<std::string> inside(std::vector<std::string> command) const {
    command.insert(command.begin(), {"-c", "echo $$ > \"$0\" && exec \"$@\"", members()});
    return command;
  }
  /// The most that was ever in it, page cache included; 0 where the system does not say.
  std::uint64_t peak() const {
    std::uint64_t bytes = 0;
    std::ifstream(folder_ / (v1_ ? "memory.max_usage_in_bytes" : "memory.peak")) >> bytes;
    return bytes;
  }
  /// Processes that were killed in it for want of memory.
  std::uint64_t kills() const {
    std::ifstream file(folder_ / (v1_ ? "memory.oom_control" : "memory.events"));
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with("oom_kill ")) return std::stoull(line.substr(9));
    }
    return 0;
  }

 private:
  bool write(const char* name, std::uint64_t value) const {
    std::ofstream file(folder_ / name);
    file << value << std::flush;
    return file.good();
  }

  bool v1_ = false;
  bool made_ = false;
  std::filesystem::path folder_;
};

/// A process in the cage that takes memory, a mebibyte at a time, as long as three are left; else it waits.
class Hog {
 public:
  /// Begins when the file `after` is no longer empty. Takes `bytes` bytes, and rests after each mebibyte.
  Hog(const MemoryCage& cage, const std::string& after, std::uint64_t bytes, std::chrono::milliseconds rest)
      : child_(::fork()) {
    if (child_ == 0) ::_exit(take(cage, after, bytes, rest) ? 0 : 1);
  }
  ~Hog() {
    if (child_ > 0) leave();
  }
  /// Waits until it has what it wanted, or has waited for a minute; answers whether it has. Then it leaves.
  bool leave() {
    int status = 1;
    ::waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  static bool take(const MemoryCage& cage, const std::string& after, std::uint64_t bytes,
                   std::chrono::milliseconds rest) {
    constexpr std::uint64_t mib = std::uint64_t{1} << 20;
    { std::ofstream(cage.members()) << ::getpid(); }
    budget::PressureReader reader("", std::chrono::seconds(0));
    std::error_code error;
    const auto stop = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    bool begun = false;
    for (std::uint64_t taken = 0; taken < bytes;) {
      const auto now = std::chrono::steady_clock::now();
      if (now > stop) return false;
      std::this_thread::sleep_for(rest);
      begun = begun || (std::filesystem::file_size(after, error) > 0 && !error);
      const auto pressure = reader.poll(now);
      if (!begun || !pressure || pressure->left < 3 * mib) continue;
      auto* const page = static_cast<volatile char*>(
          ::mmap(nullptr, mib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      if (page == MAP_FAILED) return false;
      for (std::uint64_t at = 0; at < mib; at += 4096) page[at] = 1;
      taken += mib;
    }
    return true;
  }

  ::pid_t child_;
};

}  // namespace mica::test
