// SPDX-License-Identifier: Apache-2.0
//
// A model as a packed directory: mica pack IN DIR. Every verb opens it like a file; --verify reads all of it.
#include "mica_tools/pack/pack.hpp"

#include "columns.hpp"
#include "console.hpp"
#include "json_text.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/budget/limits.hpp"
#include "mica/budget/size.hpp"
#include "mica/runtime/stats.hpp"
#include "packed_input.hpp"
#include "progress.hpp"
#include "verb.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <string>

namespace mica::program {
namespace {

class Pack final : public Verb {
 public:
  Pack()
      : Verb({"pack", "a model as a folder that loads and streams faster: IN DIR",
              "mica pack model.gguf model.packed"}) {}
  int run() override;

  std::vector<std::string> words;
  bool dry_run = false;
  bool verify = false;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    flags.group("Pack");
    flags.words(words, "DIR", "the folder; made where it is missing");
    flags.toggle("--dry-run", dry_run, "show every file with its size, write nothing");
    flags.toggle("--verify", verify, "read all of a packed directory and compare every checksum");
  }
};

std::string files_json(const pack::Plan& plan) {
  std::string files;
  for (const auto& file : plan.manifest.files)
    files +=
        join(files.empty() ? "" : ",", "{\"name\":", json_string(file.name), ",\"bytes\":", file.bytes, "}");
  return join("\"files\":[", files, "],\"bytes\":", plan.bytes());
}

void show_plan(const Pack& verb, const pack::Plan& plan, const std::string& folder) {
  std::string free_json = "null", free_text;
  if (const auto free = folder.empty() ? std::nullopt : io::free_space(folder); free.has_value()) {
    free_json = join(free.value_or(0));
    free_text = join("; the disk has ", budget::size_text(free.value_or(0)), " free");
  }
  if (verb.json) return print(join("{", files_json(plan), ",\"free_bytes\":", free_json, "}\n"));
  std::string out;
  for (const auto& file : plan.manifest.files) out += join(at_left(file.name, 28), " ", file.bytes, "\n");
  print(join(out, plan.manifest.files.size(), " files, ", plan.bytes(), " bytes (",
             budget::size_text(plan.bytes()), ")", free_text, "\n"));
}

int verify_folder(const Pack& verb, BufferAllocator allocator) {
  MICA_CHECK(!verb.model_path.empty() && verb.words.empty(), usage,
             "pack --verify: needed: DIR, a packed directory");
  const Stopwatch watch;
  const gguf::Document document = gguf::open(verb.model_path);
  const std::uint64_t bytes = document.file_bytes();
  verify_packed(verb, document, allocator);
  const std::size_t files = document.sources().size();
  if (verb.json)
    print(join("{\"files\":", files, ",\"bytes\":", bytes, ",\"intact\":true,\"seconds\":",
               fixed(watch.seconds(), 3), ",\"peak_bytes\":", peak_bytes(), "}\n"));
  note(verb, join(cell_text(document.path()), ": ", files, " files, ", budget::size_text(bytes),
                  ", every checksum matches, ", fixed(watch.seconds(), 1), " s"));
  return 0;
}

/// ", 3 of them there already"; the manifest is always written.
std::string kept_text(const pack::Outcome& outcome) {
  if (outcome.kept == 0) return {};
  return outcome.kept + 1 >= outcome.files ? std::string(", all of them there already")
                                           : join(", ", outcome.kept, " of them there already");
}

int Pack::run() {
  budget::Ledger ledger(budget::memory_limits().usable());
  const BufferAllocator allocator(ledger, budget::Account::io_buffers);
  if (verify) return verify_folder(*this, allocator);
  MICA_CHECK(!model_path.empty() && words.size() <= 1 && (dry_run || words.size() == 1), usage,
             "pack: needed: IN DIR, such as model.gguf model.packed");
  const std::string folder = words.empty() ? std::string() : words[0];
  const Stopwatch watch;
  const gguf::Document document = gguf::open(model_path);
  pack::Plan plan = pack::make_plan(document);
  if (dry_run) return show_plan(*this, plan, folder), 0;
  if (document.packed()) verify_packed(*this, document, allocator);  // damage is not copied
  Progress progress(*this);
  const pack::Outcome outcome = pack::pack(document, plan, folder, allocator,
                                           progress.counter("packing", plan.bytes()), log_to_stderr(*this));
  progress.clear();
  if (json)
    print(join("{", files_json(plan), ",\"kept\":", outcome.kept, ",\"seconds\":", fixed(watch.seconds(), 3),
               ",\"peak_bytes\":", peak_bytes(), "}\n"));
  last_note(*this, [&] {
    return join(cell_text(folder), ": ", outcome.files, " files, ", budget::size_text(outcome.bytes),
                kept_text(outcome), ", ", fixed(watch.seconds(), 1), " s");
  });
  return 0;
}

}  // namespace

AnyVerb make_pack() { return std::make_unique<Pack>(); }

}  // namespace mica::program
