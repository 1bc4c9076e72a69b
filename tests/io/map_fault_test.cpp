// SPDX-License-Identifier: Apache-2.0

#include "mica/io/map_fault.hpp"

#include "io/temporary_folder.hpp"
#include "mica/io/map.hpp"
#include "shared.hpp"

#include <csignal>
#include <memory>
#include <string>
#include <sys/wait.h>

namespace mica::test::map_fault_test {
namespace {

/// What fault_text() says of an address.
std::string text_of(const void* address, std::size_t room = io::fault_text_bytes) {
  std::string text(room, '\0');
  text.resize(io::fault_text(address, text));
  return text;
}

bool maps_can_be_read() {
  if (std::filesystem::exists("/proc/self/maps")) return true;
  skipped("the files behind faults", "this system does not say what is mapped");
  return false;
}

void on_sigbus(int, ::siginfo_t* info, void*) {
  char text[io::fault_text_bytes];
  const std::size_t n = io::fault_text(info->si_addr, text);
  static_cast<void>(::write(STDOUT_FILENO, text, n));
  ::_exit(n == 0 ? 2 : 1);
}

}  // namespace

TEST_CASE("memory that is no mapped file has no text") {
  if (!maps_can_be_read()) return;
  const int on_the_stack = 0;
  CHECK(text_of(&on_the_stack).empty());
  CHECK(text_of(nullptr).empty());
  CHECK(text_of(std::make_unique<int>().get()).empty());
}

TEST_CASE("the text has the name of the file and the byte, and how short the file is now") {
  if (!maps_can_be_read()) return;
  const TemporaryFolder folder;
  const std::string path = folder.file("a file\tof\x1bthree pages", numbered_bytes(3 * 4096));
  const std::string shown = folder.path("a file?of?three pages");
  const io::Mapping mapping{io::File::open(path)};
  const std::byte* const at = mapping.bytes().data();
  CHECK(text_of(at + 4097) ==
        shown +
            ": byte 4097 of the mapped file cannot be read: the disk failed, or the file became shorter\n");
  std::filesystem::resize_file(path, 4096);
  CHECK(text_of(at + 4097) ==
        shown +
            ": became shorter while it was mapped: 4096 bytes now, byte 4097 is needed; a model must not be "
            "written to while it runs\n");
  CHECK(text_of(at + 4095).find("cannot be read") != std::string::npos);
  CHECK(text_of(at + 4097, 10) == shown.substr(0, 10));
  std::filesystem::remove(path);
  CHECK(text_of(at + 4097).starts_with(shown + " (deleted): byte 4097 of the mapped file cannot be read"));
}

TEST_CASE("a handler says which file was cut, when the page is touched") {
  if (!maps_can_be_read()) return;
  const TemporaryFolder folder;
  const std::string path = folder.file("weights", numbered_bytes(2 * 4096)), said = folder.path("said");
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(::open(said.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    struct ::sigaction action {};
    action.sa_sigaction = on_sigbus;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, nullptr);
    const io::Mapping mapping{io::File::open(path)};
    std::filesystem::resize_file(path, 0);
    const volatile std::byte* const at = mapping.bytes().data() + 4096;
    static_cast<void>(*at);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(
      contents(said).find("weights: became shorter while it was mapped: 0 bytes now, byte 4096 is needed") !=
      std::string::npos);
}

}  // namespace mica::test::map_fault_test
