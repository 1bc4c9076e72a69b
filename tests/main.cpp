// SPDX-License-Identifier: Apache-2.0
//
// The one main() of all test programs, compiled once. A test case that does not end within MICA_CASE_SECONDS is
// named, and the program aborts.

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#if __has_include(<unistd.h>)

#include <csignal>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace {

constexpr unsigned max_seconds = MICA_CASE_SECONDS;
std::string message;  // for the case that runs; its bytes do not change while the alarm is set

extern "C" void abort_case(int) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, message.data(), message.size());
  std::signal(SIGABRT, SIG_DFL);  // doctest's handler allocates
  std::abort();
}

class Alarm final : public doctest::IReporter {
 public:
  explicit Alarm(const doctest::ContextOptions&) { std::signal(SIGALRM, abort_case); }

  void test_case_start(const doctest::TestCaseData& data) override {
    message = std::string(data.m_file.c_str()) + ": " + data.m_name + ": does not end\n";
    ::alarm(max_seconds);
  }
  void test_case_end(const doctest::CurrentTestCaseStats&) override { ::alarm(0); }

  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};

REGISTER_LISTENER("alarm", 1, Alarm);

}  // namespace

#endif
