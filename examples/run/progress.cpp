// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include "console.hpp"
#include "mica/base/error.hpp"
#include "safe_text.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>
#include <sys/ioctl.h>
#include <unistd.h>

namespace mica::program {
namespace {

/// Columns of a line that "\r" reaches whole: without the last one, behind which some terminals begin a row.
std::size_t columns() {
  constexpr std::size_t unknown = 79;
  struct ::winsize size {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return unknown;
  return size.ws_col - 1U;
}

}  // namespace

bool shows_progress(const OutputOptions& options) {
  const char* const term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  return ::isatty(STDERR_FILENO) == 1 && !dumb && !options.quiet && !options.json && !options.jsonl;
}

Progress::Progress(const OutputOptions& options, Elsewhere elsewhere)
    : options_(options),
      shown_(shows_progress(options)),
      writes_tenths_(elsewhere == Elsewhere::tenths && !shown_ && !options.quiet && !options.json &&
                     !options.jsonl) {}

void Progress::update(WorkState work) {
  if (!shown_ && !writes_tenths_) return;
  work.at = watch_.seconds();
  show(work, work.at);
}

void Progress::show(const WorkState& work, double now) {
  if (writes_tenths_ && tenths_.due(work)) note(options_, join("mica: ", tenth_text(work)));
  if (!is_due()) return;
  next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  dirty_ = true;
  WorkState safe = work;
  safe.what = cell_text(work.what);
  safe.more = cell_text(work.more);
  show_status(progress_line(safe, now, columns()));
}

std::function<void(std::uint64_t)> Progress::counter(std::string what, std::uint64_t all, WorkUnit unit) {
  return [this, what = std::move(what), unit, all = std::max<std::uint64_t>(all, 1),
          done = std::uint64_t{0}](std::uint64_t more) mutable {
    if (interrupted()) throw Stop{130, {}};
    done += more;
    update({.what = what, .done = done, .all = all, .unit = unit});
  };
}

void Progress::clear() {
  if (std::exchange(dirty_, false)) show_status({});
}

Waiting::Waiting(const OutputOptions& options, std::function<WorkState(double)> state)
    : progress_(options, Progress::Elsewhere::nothing), state_(std::move(state)) {
  if (!shows_progress(options)) return;
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error&) {  // the work goes on without a line
  }
}

Waiting::~Waiting() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Waiting::watch() {
  const Stopwatch watch;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return done_; })) {
    try {
      const double now = watch.seconds();
      progress_.show(state_(now), now);
    } catch (const std::bad_alloc&) {  // the line stays as it is
    }
  }
}

bool ReadingLine::read(std::size_t tokens) {
  const std::lock_guard lock(mutex_);
  if (tokens > reading_.done) {
    reading_.done = tokens;
    reading_.at = watch_.seconds();
    if (!shows_progress(options_)) elsewhere_.show(reading_, reading_.at);
  }
  return tokens < reading_.all;
}

}  // namespace mica::program
