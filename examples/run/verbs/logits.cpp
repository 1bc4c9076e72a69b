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

class Logits final : public RunningVerb, public IdsOptions {
 public:
  Logits()
      : RunningVerb(
            {"logits", "raw logits after given ids", "mica logits model.gguf --ids 1,2,3 -o out.f32"}) {}
  int run() override;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    RunningOptions::add_to(flags);
    IdsOptions::add_to(flags);
    flags.group("Logits");
    flags.text("--positions", positions_, "LIST", "last, all, or indexes: 0,5,9");
    flags.toggle("--decode", decode_, "one token at a time");
    flags.text("-o,--output", output_, "FILE", "raw little-endian float32 rows");
  }

  std::string positions_ = "last";
  bool decode_ = false;
  std::string output_;
};

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

int Logits::run() {
  refuse_own_input(output_, {ids_file});
  const auto given = parsed();
  MICA_CHECK(!given.empty(), usage, "logits: no ids; give --ids 1,2,3 or --ids-file FILE");
  MICA_CHECK(!output_.empty(), usage, "logits: no output; give -o FILE");
  const auto positions = positions_of(positions_, given.size());
  if (n_ctx == 0) n_ctx = given.size();
  Model model = open_model(*this, 16);
  auto session = model.session();
  io::AtomicFile file(output_);
  RowWriter writer(session, positions, file);
  const std::size_t step = decode_ ? 1 : given.size();
  for (std::size_t at = 0; at < given.size(); at += step) {
    const auto status =
        session.feed_rows(std::span(given).subspan(at, step), &interrupted(),
                          [&](std::size_t first, std::size_t count) { writer.on_chunk(first, count); });
    if (interrupted()) return 130;
    MICA_CHECK(status != model::StepStatus::context_full, limit, given.size(),
               " ids do not fit a context of ", model.transformer().n_ctx(), " tokens; use a larger -c");
    MICA_CHECK(status != model::StepStatus::no_memory, budget, model::text(status));
    MICA_CHECK(status == model::StepStatus::ok, failed, model::text(status));
  }
  file.commit();
  print(join("{\"rows\":", positions.size(), ",\"vocab\":", model.config().n_vocab, ",\"positions\":[",
             list(positions), "]}\n"));
  return 0;
}

}  // namespace

AnyVerb make_logits() { return std::make_unique<Logits>(); }

}  // namespace mica::program
