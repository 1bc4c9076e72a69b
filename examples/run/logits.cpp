// SPDX-License-Identifier: Apache-2.0
//
// Raw logits for outside checkers: rows of little-endian float32, as the model computes them.
#include "console.hpp"
#include "input.hpp"
#include "load.hpp"
#include "mica/base/assert.hpp"
#include "mica/io/atomic_file.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

namespace mica::program {
namespace {

/// Positions in rising order, each below n.
std::vector<std::size_t> positions_of(const std::string& text, std::size_t n) {
  std::vector<std::size_t> positions;
  if (text == "last") return {n - 1};
  if (text == "all") {
    for (std::size_t i = 0; i < n; ++i) positions.push_back(i);
    return positions;
  }
  for (const char *at = text.data(), *end = at + text.size(); at < end;) {
    std::size_t position = 0;
    const auto [next, error] = std::from_chars(at, end, position);
    MICA_CHECK(error == std::errc() && (next == end || *next == ','), usage, "--positions '", escaped(text),
               "': needed: last, all, or numbers with commas between them");
    MICA_CHECK(position < n, usage, "--positions: ", position, " is not below the number of ids, ", n);
    positions.push_back(position);
    at = next == end ? end : next + 1;
  }
  std::sort(positions.begin(), positions.end());
  return positions;
}

/// Writes the rows that fall into the chunk just computed.
class RowWriter {
 public:
  RowWriter(Session<AnyModel>& session, std::vector<std::size_t> positions, io::AtomicFile& file)
      : session_(session), positions_(std::move(positions)), file_(file) {}

  void on_chunk(std::size_t first, std::size_t count) {
    while (next_ < positions_.size() && positions_[next_] < first + count) {
      std::size_t end = next_;
      while (end < positions_.size() && positions_[end] < first + count &&
             end - next_ < session_.model().logits_rows())
        ++end;
      const auto rows =
          session_.logits(std::span(positions_).subspan(next_, end - next_));  // (positions, n_vocab)
      file_.write(std::as_bytes(std::span(rows.data(), rows.rows() * rows.cols())));
      next_ = end;
    }
  }

 private:
  Session<AnyModel>& session_;
  std::vector<std::size_t> positions_;
  io::AtomicFile& file_;
  std::size_t next_ = 0;
};

std::string list(const std::vector<std::size_t>& numbers) {
  std::string out;
  for (const std::size_t n : numbers) out += join(out.empty() ? "" : ",", n);
  return out;
}

}  // namespace

int logits(const Options& options) {
  const auto ids = ids_of(options);
  MICA_CHECK(!ids.empty(), usage, "logits: no ids; give --ids 1,2,3 or --ids-file FILE");
  MICA_CHECK(!options.output.empty(), usage, "logits: no output; give -o FILE");
  const auto positions = positions_of(options.positions, ids.size());
  Options sized = options;
  if (sized.n_ctx == 0) sized.n_ctx = ids.size();
  Model model = open_model(sized, 16);
  auto session = model.session();
  io::AtomicFile file(options.output);
  RowWriter writer(session, positions, file);
  const std::size_t step = options.decode ? 1 : ids.size();
  for (std::size_t at = 0; at < ids.size(); at += step) {
    const auto status =
        session.feed_rows(std::span(ids).subspan(at, step), &interrupted(),
                          [&](std::size_t first, std::size_t count) { writer.on_chunk(first, count); });
    if (interrupted()) return 130;
    MICA_CHECK(status != model::StepStatus::context_full, limit, ids.size(), " ids do not fit a context of ",
               model.transformer().n_ctx(), " tokens; use a larger -c");
    MICA_CHECK(status != model::StepStatus::no_memory, budget, model::text(status));
    MICA_CHECK(status == model::StepStatus::ok, failed, model::text(status));
  }
  file.commit();
  print(join("{\"rows\":", positions.size(), ",\"vocab\":", model.config().n_vocab, ",\"positions\":[",
             list(positions), "]}\n"));
  return 0;
}

}  // namespace mica::program
