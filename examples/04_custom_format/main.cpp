// SPDX-License-Identifier: Apache-2.0
//
// Lesson 4: a weight format of your own, from quantizing to text.
//
//   04_custom_format [MODEL.gguf]
//
// SYM3 (sym3.hpp) is a format that GGUF does not have. The lesson writes a model in it, opens the file with a
// table that knows it, and generates text. Nothing of mica changes. The struct alone is enough; a codec
// (sym3_codec-inl.hpp and its unit, sym3_kernels.cpp) makes its products as fast as those of mica's own
// formats. docs/policies/weights.md has the table of members.

#include "mica/arch/llama.hpp"
#include "mica/runtime/complete.hpp"
#include "mica_tools/quantize/quantize.hpp"
#include "sym3.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

namespace {

namespace fs = std::filesystem;

/// Writes the matrices of a model in SYM3; the embedding, which is the head too, in Q8_0.
void write_in_sym3(const std::string& from, const std::string& to) {
  const mica::gguf::Document document = mica::gguf::open(from);
  mica::quantize::JobOptions wanted;
  wanted.recipe = mica::quantize::Recipe::Q8_0;
  wanted.mix.embedding = mica::format::Q8_0::id;
  wanted.mix.format_of = [](std::string_view) { return std::optional(mine::Sym3::id); };
  wanted.allow_requantize = true;
  wanted.codecs = mica::format::row_codecs<mine::Formats>();
  mica::exec::Inline executor;
  mica::quantize::quantize(mica::quantize::Job(document, wanted), to, executor);
}

void print_tensors(const mica::gguf::Document& document) {
  std::uint64_t bytes = 0, matrices = 0;
  for (const mica::gguf::TensorInfo& tensor : document.tensors()) {
    if (tensor.format.id != mine::Sym3::id) continue;
    bytes += tensor.bytes;
    ++matrices;
  }
  std::printf("%llu matrices in SYM3, %llu bytes\n", static_cast<unsigned long long>(matrices),
              static_cast<unsigned long long>(bytes));
}

void tell(const std::string& path) {
  auto model = mica::open<mica::TypeList<mica::arch::Llama>, mine::Formats>(path);
  std::printf("Once upon a time");
  mica::complete(
      model, "Once upon a time", {.max_tokens = 40, .sampler = {.temperature = 0}},
      [](std::string_view text) { return std::fwrite(text.data(), 1, text.size(), stdout) == text.size(); });
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "examples/models/fairy.gguf";
  if (!fs::exists(path)) {
    std::printf("%s is not there: name a small Llama\n", path.c_str());
    return 0;
  }
  const std::string file = (fs::temp_directory_path() / "mica_lesson_sym3.gguf").string();
  write_in_sym3(path, file);
  try {
    static_cast<void>(mica::gguf::open(file));
  } catch (const mica::Error& error) {
    std::printf("Without the table: %s\n", error.what());
  }
  print_tensors(mica::gguf::open(file, mica::format::table<mine::Formats>()));
  tell(file);
  fs::remove(file);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
