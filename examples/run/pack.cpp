// SPDX-License-Identifier: Apache-2.0
//
// A model as a packed folder: mica pack IN DIR. It opens like a file everywhere; --verify reads all of it.
#include "mica_tools/pack/pack.hpp"

#include "console.hpp"
#include "json_text.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/budget/size.hpp"
#include "mica/runtime/stats.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <string>

namespace mica::program {
namespace {

using BufferAllocator = alloc::Budgeted<alloc::Aligned>;

/// Shows how far the work is, and ends it after an interrupt.
pack::OnBytes progress_of(Progress& progress, std::string what, std::uint64_t all) {
  return [&progress, what = std::move(what), all = std::max<std::uint64_t>(all, 1),
          done = std::uint64_t{0}](std::uint64_t bytes) mutable {
    if (interrupted()) throw Stop{130, {}};
    done += bytes;
    progress.update(what, done, all);
  };
}

std::string files_json(const pack::Plan& plan) {
  std::string files;
  for (const auto& file : plan.manifest.files)
    files +=
        join(files.empty() ? "" : ",", "{\"name\":", json_string(file.name), ",\"bytes\":", file.bytes, "}");
  return join("\"files\":[", files, "],\"bytes\":", plan.bytes());
}

void show_plan(const Options& options, const pack::Plan& plan, const std::string& folder) {
  std::string free_json = "null", free_text;
  if (const auto free = folder.empty() ? std::nullopt : io::free_space(folder); free.has_value()) {
    free_json = join(free.value_or(0));
    free_text = join("; the disk has ", budget::size_text(free.value_or(0)), " free");
  }
  if (options.json) return print(join("{", files_json(plan), ",\"free_bytes\":", free_json, "}\n"));
  std::string out;
  for (const auto& file : plan.manifest.files) {
    std::string name = file.name;
    if (name.size() < 28) name.append(28 - name.size(), ' ');
    out += join(name, " ", file.bytes, "\n");
  }
  print(join(out, plan.manifest.files.size(), " files, ", plan.bytes(), " bytes (",
             budget::size_text(plan.bytes()), ")", free_text, "\n"));
}

int verify(const Options& options, BufferAllocator allocator) {
  MICA_CHECK(!options.model.empty() && options.words.empty(), usage,
             "pack --verify: needed: DIR, a packed folder");
  const Stopwatch watch;
  const gguf::Document document = gguf::open(options.model);
  std::uint64_t bytes = 0;
  for (const gguf::Source& source : document.sources()) bytes += source.size();
  {
    Progress progress(options);
    pack::verify(document, allocator, progress_of(progress, "verifying", bytes), log_to_stderr(options));
  }
  const std::size_t files = document.sources().size();
  if (options.json)
    print(join("{\"files\":", files, ",\"bytes\":", bytes, ",\"intact\":true,\"seconds\":",
               fixed(watch.seconds(), 3), ",\"peak_bytes\":", peak_bytes(), "}\n"));
  note(options, join(cell_text(document.path()), ": ", files, " files, ", bytes,
                     " bytes, every checksum matches, ", fixed(watch.seconds(), 1), " s"));
  return 0;
}

}  // namespace

int pack_model(const Options& options) {
  budget::Ledger ledger(options.limits.usable());
  const BufferAllocator allocator(ledger, budget::Account::io_buffers);
  if (options.verify) return verify(options, allocator);
  MICA_CHECK(
      !options.model.empty() && options.words.size() <= 1 && (options.dry_run || options.words.size() == 1),
      usage, "pack: needed: IN DIR, such as model.gguf model.packed");
  const std::string folder = options.words.empty() ? std::string() : options.words[0];
  const Stopwatch watch;
  const gguf::Document document = gguf::open(options.model);
  pack::Plan plan = pack::make_plan(document);
  if (options.dry_run) return show_plan(options, plan, folder), 0;
  Progress progress(options);
  const pack::Outcome outcome =
      pack::pack(document, plan, folder, allocator, progress_of(progress, "packing", plan.bytes()),
                 log_to_stderr(options));
  progress.clear();
  if (options.json)
    print(join("{", files_json(plan), ",\"kept\":", outcome.kept, ",\"seconds\":", fixed(watch.seconds(), 3),
               ",\"peak_bytes\":", peak_bytes(), "}\n"));
  note(options, join(folder, ": ", outcome.files, " files, ", outcome.bytes, " bytes",
                     outcome.kept == 0 ? std::string() : join(", ", outcome.kept, " of them there already"),
                     ", ", fixed(watch.seconds(), 1), " s"));
  return 0;
}

}  // namespace mica::program
