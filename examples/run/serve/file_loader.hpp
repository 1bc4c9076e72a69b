// SPDX-License-Identifier: Apache-2.0
//
// How the server opens its models: by the options of the command line, changed until they fit.
#pragma once

#include "answer_options.hpp"
#include "mica/runtime/memory_watch.hpp"
#include "mica_tools/fit/fallbacks.hpp"
#include "mica_tools/serve/loader.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace mica::program {

/// Bytes of mapped code beside any_process_bytes: kernels for many weight formats, libraries for HTTP and
/// TLS. Measured after answers of 20 models of 16 families: 18 MiB.
inline constexpr std::uint64_t server_bytes = std::uint64_t{18} << 20;

class FileLoader final : public serve::Loader {
 public:
  /// The verb outlives it. many: several models share the memory, so their contexts are shorter by default.
  /// watch: of all models; empty: none.
  FileLoader(const AnswerVerb& verb, std::size_t parallel, bool many, std::shared_ptr<MemoryWatch> watch)
      : verb_(verb), parallel_(parallel), many_(many), watch_(std::move(watch)) {}
  FileLoader(const FileLoader&) = delete;
  FileLoader& operator=(const FileLoader&) = delete;
  /// On rank 0: the others end.
  ~FileLoader() override;

  // Required by serve::Loader
  std::uint64_t bytes(const serve::ModelCard& card, std::uint64_t budget, std::size_t answers) override;
  std::shared_ptr<serve::LoadedModel> load(const serve::ModelCard& card,
                                           const std::shared_ptr<budget::Ledger>& ledger,
                                           std::size_t answers) override;

  // Specific to FileLoader
  /// On a rank that is not the first: opens the model as often as rank 0 does, and repeats its steps.
  void follow(const serve::ModelCard& card, const std::shared_ptr<budget::Ledger>& ledger);

 private:
  [[nodiscard]] Model open(const serve::ModelCard& card, const std::shared_ptr<budget::Ledger>& ledger,
                           std::size_t answers);
  const plan::Fallback& chosen(const serve::ModelCard& card, std::uint64_t budget);
  [[nodiscard]] plan::Fallback encoder_within(const serve::ModelCard& card, const gguf::Document& document,
                                              std::uint64_t budget) const;
  const plan::Fallback& keep(const serve::ModelCard& card, const gguf::Document& document,
                             plan::Fallback found, std::uint64_t budget);

  const AnswerVerb& verb_;
  std::size_t parallel_;
  bool many_;
  std::shared_ptr<MemoryWatch> watch_;
  std::map<std::string, plan::Fallback> chosen_;  // by id
};

}  // namespace mica::program
