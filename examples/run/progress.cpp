// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include "console.hpp"
#include "mica/base/error.hpp"
#include "safe_text.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <string_view>
#include <utility>
#include <sys/ioctl.h>
#include <unistd.h>

namespace mica::program {
namespace {

/// The text without characters that would be in a second row of the terminal, which "\r" does not reach.
std::string within_width(std::string text) {
  struct ::winsize size {};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return text;
  std::size_t end = std::min<std::size_t>(text.size(), size.ws_col - 1U);
  while (end > 0 && end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

}  // namespace

bool shows_progress(const OutputOptions& options) {
  const char* const term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  return ::isatty(STDERR_FILENO) == 1 && !dumb && !options.quiet && !options.json && !options.jsonl;
}

void Progress::update(std::string_view text) {
  if (!is_due()) return;
  next_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  dirty_ = true;
  show_status(within_width(cell_text(text)));
}

void Progress::update(std::string_view what, std::uint64_t done, std::uint64_t all, std::string_view more) {
  if (is_due()) update(join(bar_text(what, done, all, watch_.seconds()), more));
}

std::function<void(std::uint64_t)> Progress::counter(std::string what, std::uint64_t all) {
  return [this, what = std::move(what), all = std::max<std::uint64_t>(all, 1),
          done = std::uint64_t{0}](std::uint64_t more) mutable {
    if (interrupted()) throw Stop{130, {}};
    done += more;
    update(what, done, all);
  };
}

void Progress::clear() {
  if (std::exchange(dirty_, false)) show_status({});
}

Waiting::Waiting(const OutputOptions& options, std::function<std::string(double)> text)
    : progress_(options), text_(std::move(text)) {
  if (shows_progress(options)) thread_ = std::thread([this] { watch(); });
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
      progress_.update(text_(watch.seconds()));
    } catch (const std::bad_alloc&) {  // the line stays as it is
    }
  }
}

}  // namespace mica::program
