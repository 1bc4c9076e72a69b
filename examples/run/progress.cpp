// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include "console.hpp"
#include "mica/base/error.hpp"

#include <cstdlib>
#include <string_view>
#include <utility>
#include <unistd.h>

namespace mica::program {

bool shows_progress(const Options& options) {
  const char* const term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  return ::isatty(STDERR_FILENO) == 1 && !dumb && !options.quiet && !options.json && !options.jsonl;
}

void Progress::update(const std::string& text) {
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  dirty_ = true;
  write_error(join("\r", text, "\x1b[K"));
}

void Progress::clear() {
  if (std::exchange(dirty_, false)) write_error("\r\x1b[K");
}

Waiting::Waiting(const Options& options, std::string text) : progress_(options), text_(std::move(text)) {
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
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return done_; })) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
    progress_.update(join(text_, " ... ", seconds.count(), " s"));
  }
}

}  // namespace mica::program
