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
};

inline std::vector<double> softmax(std::span<const float> row) {
  const double top = *std::max_element(row.begin(), row.end());
  std::vector<double> p(row.begin(), row.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - top);
  for (double& x : p) x /= sum;
  return p;
}

/// Both are (rows, n_vocab).
inline Figures compare(std::span<const float> ours, std::span<const float> exact, std::size_t n_vocab) {
  REQUIRE(ours.size() == exact.size());
  Figures out;
  double squares = 0, kl = 0;
  bool finite = true;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double difference = static_cast<double>(ours[i]) - exact[i];
    finite = finite && std::isfinite(difference);
    out.max = std::max(out.max, std::fabs(difference));
    squares += difference * difference;
  }
  REQUIRE(finite);
  for (std::size_t i = 0; i < ours.size(); i += n_vocab) {
    const auto p = softmax(exact.subspan(i, n_vocab)), q = softmax(ours.subspan(i, n_vocab));
    for (std::size_t k = 0; k < n_vocab; ++k) {
      if (p[k] > 0) kl += p[k] * std::log(p[k] / q[k]);
    }
  }
  const auto n = static_cast<double>(ours.size());
  out.rms = std::sqrt(squares / n);
  out.mean_kl = kl / (n / static_cast<double>(n_vocab));
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

/// The figures that the kit gives for another engine.
inline Figures figures(const nlohmann::json& j) {
  return {j["max_abs"].get<double>(), j["rms"].get<double>(), j["mean_kl"].get<double>()};
}

}  // namespace mica::test
