// SPDX-License-Identifier: Apache-2.0
//
// pull: downloads a model of a hub, after a plan of what it will need.
#include "budgeted.hpp"
#include "console.hpp"
#include "json_text.hpp"
#include "mica/base/assert.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "mica_tools/hub/published.hpp"
#include "model_name.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

namespace mica::program {
namespace {

class PullVerb final : public Verb {
 public:
  PullVerb()
      : Verb({"pull", "download a model by its name, after a plan of its memory",
              "mica pull hf.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M"},
             Needs::name) {}
  int run() override;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    flags.group("Pull");
    flags.number("--streams", pull_.connections, {1, 32}, "connections at the same time");
    flags.toggle("--force", pull_.force, "also a model that does not fit in memory");
    flags.checked("--memory", memory_, "SIZE", "the memory that it must fit in: 6GiB; else what is free",
                  [](const std::string& text, const std::string& where) {
                    if (budget::parse_size(text, std::uint64_t{1} << 40, where) == 0)
                      raise(ErrorCode::usage, where, " needs a size above 0, found '", escaped(text), "'");
                  });
    flags.number("-c,--ctx-size,--ctx", n_ctx_, {0, std::numeric_limits<std::uint32_t>::max()},
                 "tokens of context that must fit; 0: 8192, or what the model was trained for");
  }

  Pull pull_;
  std::string memory_;
  std::size_t n_ctx_ = 0;
};

int PullVerb::run() {
  const auto name = hub_name_of(*this);
  if (!name) {
    MICA_CHECK(!model_path.empty(), usage, "no model was named; see mica pull --help");
    const bool is_repo = std::count(model_path.begin(), model_path.end(), '/') == 1;
    std::error_code error;
    const bool is_file = std::filesystem::exists(model_path, error);
    raise(is_file ? ErrorCode::usage : ErrorCode::file, escaped(model_path, 200),
          is_file ? ": a file, and" : ":",
          " is no model of a hub; needed: hf.co/ORG/REPO, or a short name (mica list --known)",
          is_repo ? join("; did you mean hf.co/", escaped(model_path, 200), "?")
                  : hub::near_published(model_path));
  }
  OpenOptions open;
  open.n_ctx = n_ctx_;
  const budget::MemoryLimits limits = budget::memory_limits();
  open.limits = limits;
  if (!memory_.empty()) open.memory_bytes = budget::parse_size(memory_, limits.usable(), "--memory");
  const Wish wish{open.memory_bytes.value_or(limits.usable()), n_ctx_};
  std::optional<FoundModel> found;
  if (is_offline(*this)) {
    found = find_here(*this, *name, wish);
    MICA_CHECK(found, file, name->text(),
               ": is not here, and --offline or HF_HUB_OFFLINE forbids to ask the hub");
  } else {
    found = find_there(*this, *name, wish);
    const plan::Adjustable free{n_ctx_ == 0, true, true, true};
    try {
      if (!found->here) plan_download(*this, *found, open, free, pull_.force);
    } catch (const Error& error) {
      if (!pull_.force || error.code() != ErrorCode::unsupported) throw;
      note(*this, join("mica: ", error.message()));
    }
  }
  const bool was_here = found->here;
  pull_.events = json || jsonl;
  const std::string path = is_offline(*this) ? found->place : download(*this, *found, pull_);
  if (pull_.events) {
    print(join("{\"event\":\"done\",\"name\":", json_string(found->name.text()), ",\"path\":",
               json_string(path), ",\"bytes\":", found->variant.bytes, ",\"downloaded\":", !was_here, "}\n"));
    return 0;
  }
  if (was_here) note(*this, join("mica: ", found->name.text(), ": is here already"));
  print(join(path, "\n"));
  return 0;
}

}  // namespace

AnyVerb make_pull() { return std::make_unique<PullVerb>(); }

}  // namespace mica::program
