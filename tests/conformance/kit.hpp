// SPDX-License-Identifier: Apache-2.0
//
// The conformance kit as tests see it: prompts and expected logits of its model files, and the figures by which
// logits are compared.

#pragma once

#include "shared.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

/// How far logits are from others. KL is of the softmax, exact against ours.
struct Figures {
  double max = 0;
  double rms = 0;
  double mean_kl = 0;
  double median_rms = 0;  // of the rows' rms
  double median_kl = 0;
};

inline double median(std::vector<double> values) {
  REQUIRE(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

inline std::vector<double> softmax(std::span<const float> row) {
  const double top = *std::max_element(row.begin(), row.end());
  std::vector<double> p(row.begin(), row.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - top);
  for (double& x : p) x /= sum;
  return p;
}

inline double divergence(std::span<const float> ours, std::span<const float> exact) {
  const auto p = softmax(exact), q = softmax(ours);
  double kl = 0;
  for (std::size_t k = 0; k < p.size(); ++k) {
    if (p[k] > 0) kl += p[k] * std::log(p[k] / q[k]);
  }
  return kl;
}

/// Both are (rows, n_vocab).
inline Figures compare(std::span<const float> ours, std::span<const float> exact, std::size_t n_vocab) {
  REQUIRE(ours.size() == exact.size());
  REQUIRE(std::all_of(ours.begin(), ours.end(), [](float x) { return std::isfinite(x); }));
  Figures out;
  std::vector<double> rms, kl;
  for (std::size_t i = 0; i < ours.size(); i += n_vocab) {
    double squares = 0;
    for (std::size_t k = i; k < i + n_vocab; ++k) {
      const double difference = static_cast<double>(ours[k]) - exact[k];
      out.max = std::max(out.max, std::fabs(difference));
      squares += difference * difference;
    }
    out.rms += squares;
    rms.push_back(std::sqrt(squares / static_cast<double>(n_vocab)));
    kl.push_back(divergence(ours.subspan(i, n_vocab), exact.subspan(i, n_vocab)));
  }
  out.rms = std::sqrt(out.rms / static_cast<double>(ours.size()));
  out.mean_kl = std::accumulate(kl.begin(), kl.end(), 0.0) / static_cast<double>(kl.size());
  out.median_rms = median(rms);
  out.median_kl = median(kl);
  return out;
}

/// Raw little-endian floats.
inline std::vector<float> read_floats(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE_MESSAGE(in.good(), path.string());
  std::vector<float> out(std::filesystem::file_size(path) / sizeof(float));
  in.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size() * sizeof(float)));
  REQUIRE(in.good());
  return out;
}

/// The index and what it points at.
class Kit {
 public:
  explicit Kit(std::filesystem::path root) : root_(std::move(root)) {
    std::ifstream in(root_ / "index.json");
    index_ = nlohmann::json::parse(in);
  }

  [[nodiscard]] const nlohmann::json& models() const { return index_["models"]; }
  [[nodiscard]] std::string path(const nlohmann::json& name) const {
    return (root_ / name.get<std::string>()).string();
  }
  /// The ids of a prompt of a model.
  [[nodiscard]] std::vector<std::uint32_t> ids(const nlohmann::json& model, const std::string& prompt) const {
    return index_["prompt_sets"][model["prompt_set"].get<std::string>()]["prompts"][prompt];
  }
  /// All rows of a file of logits, (rows, n_vocab); empty when the model has no such file.
  [[nodiscard]] std::vector<float> logits(const nlohmann::json& model, const char* which) const {
    if (!model.contains(which)) return {};
    return read_floats(root_ / model[which].get<std::string>());
  }

 private:
  std::filesystem::path root_;
  nlohmann::json index_;
};

/// The figures that the kit gives for another engine; it has no medians.
inline Figures figures(const nlohmann::json& j) {
  return {.max = j["max_abs"].get<double>(),
          .rms = j["rms"].get<double>(),
          .mean_kl = j["mean_kl"].get<double>()};
}

/// How near float arithmetic comes to `exact_logits`, which has GELU from a table of half floats.
inline double exact_tolerance(const nlohmann::json& model) {
  const std::string arch = model["arch"];
  if (arch == "gemma" || arch == "gemma2") return 0.01;
  if (arch == "gemma3") return 0.02;
  return arch == "gemma4" ? 0.1 : 5e-4;
}

/// And to `f64_logits`.
inline constexpr double f64_tolerance = 5e-4;

/// "models/x.gguf" without its folder and ending.
inline std::string short_name(const nlohmann::json& model) {
  return std::filesystem::path(model["file"].get<std::string>()).stem().string();
}

}  // namespace mica::test
