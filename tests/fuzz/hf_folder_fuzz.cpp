// SPDX-License-Identifier: Apache-2.0
//
// The files of a Hugging Face folder that describe a model: config.json, tokenizer.json,
// tokenizer_config.json, generation_config.json and chat_template.json, separated by lines with --- alone.
// Refused by an error, or the sizes of a family and a vocabulary for its embedding.

#include "fuzz/convert_checks.hpp"
#include "fuzz/input.hpp"
#include "mica_tools/convert/config.hpp"
#include "mica_tools/convert/modules.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace mica::fuzz::hf_folder_fuzz {
namespace {

constexpr std::array<std::string_view, 5> names = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                                   "generation_config.json", "chat_template.json"};

void run(std::string_view text) {
  static const Folder folder;
  for (const std::string_view name : names) {
    std::filesystem::remove(folder.path(name));
    const std::size_t end = std::min(text.find("\n---\n"), text.size());
    if (end > 0) folder.write(name, text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 5));
  }
  accepted([&] {
    const convert::Config config(convert::read_json(folder.path("config.json")), folder.path("config.json"));
    static_cast<void>(config.model_types());
    accepted([&] {
      const convert::Sizes sizes = convert::read_sizes(config, {});
      require(sizes.layers >= 1 && sizes.width >= 1 && sizes.heads >= 1 && sizes.head_dim >= 1,
              "sizes are positive");
      require(std::isfinite(sizes.epsilon), "numbers are finite");
    });
    const std::uint64_t n_vocab = 1 + config.count_or("vocab_size", 20) % 64;
    const std::string family = config.text_or("family", "");
    const convert::VocabularyData read = convert::read_vocabulary(folder.path(), config, n_vocab, family);
    check_vocabulary(read, n_vocab);
  });
}

}  // namespace

MICA_FUZZ_TARGET(hf_folder) {
  run({reinterpret_cast<const char*>(data), size});
  return 0;
}

}  // namespace mica::fuzz::hf_folder_fuzz
