// SPDX-License-Identifier: Apache-2.0
//
// One of two units that include every header. That they link into one program is a test, and that a program may
// open the namespace mica beside std.

#include "every_header.hpp"

#include <doctest/doctest.h>

#include <string>

const char* version_seen_by_other_unit();

TEST_CASE("two units that include everything link and share what they name") {
  CHECK(version_seen_by_other_unit() == mica::version.data());
}

namespace every_header_test {

using namespace std;
using namespace mica;

/// A type of the program may have the name of a room.
struct format {
  int n = 0;
};

/// Locals and members may have the name of any room; the names of rooms stay usable beside them.
struct Settings {
  int advice = 1, alloc = 1, arch = 1, block = 1, budget = 1, convert = 1, detail = 1, encode = 1, exec = 1,
      fit = 1, gguf = 1, io = 1, jinja = 1, json = 1, kernel = 1, kv = 1, measure = 1, model = 1, name = 1,
      open = 1, pace = 1, pack = 1, paging = 1, plan = 1, quantize = 1, remote = 1, runtime = 1, sample = 1,
      synth = 1, tensor = 1, text = 1, write = 1;
};

inline int use(const Settings& settings) {
  const int text = settings.text, io = settings.io, plan = settings.plan, model = settings.model;
  const text::TokenId id = 1;  // a qualified name skips variables
  const OpenOptions options{.n_ctx = 16};
  const string status(model::text(model::StepStatus::ok));
  const kv::Choice storage = kv::Choice::paged;
  const sample::SamplerOptions sampler;
  const every_header_test::format own{3};
  const bool same = storage == options.choice.kv;
  return text + io + plan + model + own.n + static_cast<int>(id) + static_cast<int>(sampler.top_k) +
         static_cast<int>(status.size()) + static_cast<int>(same);
}

TEST_CASE("a program may open mica and std, and give the names of rooms to its own things") {
  CHECK(use({}) == 4 + 3 + 1 + sample::SamplerOptions{}.top_k +
                       static_cast<int>(mica::model::text(mica::model::StepStatus::ok).size()));
  CHECK(is_same_v<TokenId, text::TokenId>);
  CHECK(is_same_v<Model, BasicModel<arch::All>>);
}

}  // namespace every_header_test
