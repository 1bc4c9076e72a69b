// SPDX-License-Identifier: Apache-2.0

#include "mica/model/observer.hpp"

#include "mica/arch/llama.hpp"
#include "model/run_model.hpp"
#include "model/tiny_hybrid.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

namespace mica::test::observer_test {
namespace {

/// Rows as somebody saw them.
struct Rows {
  std::size_t calls = 0, rows = 0, cols = 0;
  std::vector<float> values = {};

  void add(MatrixView<const float> more) {
    ++calls;
    rows += more.rows();
    cols = more.cols();
    for (std::size_t r = 0; r < more.rows(); ++r) values.insert(values.end(), more[r].begin(), more[r].end());
  }
  [[nodiscard]] double squares() const {
    double sum = 0;
    for (const float v : values) sum += static_cast<double>(v) * static_cast<double>(v);
    return sum;
  }
};

/// Writes down all it sees.
class Recorder {
 public:
  // Required by Observer
  static constexpr bool active = true;
  void product(std::string_view tensor, MatrixView<const float> rows, std::size_t index) noexcept {
    products[{std::string(tensor), index}].add(rows);
  }
  void layer(std::size_t index, MatrixView<const float> rows) noexcept {
    order.push_back(index);
    layers[index].add(rows);
  }

  [[nodiscard]] const Rows& of(std::size_t layer, std::string_view part) const {
    return products.at({arch::tensor_names::layer(layer, part), model::no_expert});
  }

  std::map<std::pair<std::string, std::size_t>, Rows> products;
  std::map<std::size_t, Rows> layers;
  std::vector<std::size_t> order;
};
static_assert(Observer<Recorder>);

using Watched = Hybrid::With<WithObserver<Recorder>>;

constexpr std::size_t n = 11;

/// One step of n tokens that a recorder sees, with the logits of all of them.
template <class Model>
std::vector<float> step(Model& model, Recorder* recorder, std::size_t chunk = n) {
  model.observe(recorder);
  auto cache = model.make_cache();
  return feed(model, cache, random_ids(n, 67), chunk);
}

/// Whether rows are the norm of others.
bool is_norm_of(const TinyHybrid& tiny, const std::string& weight, const Rows& rows, const Rows& of) {
  std::vector<float> w(rows.cols);
  tiny.document().read(tiny.document().tensor(weight), std::as_writable_bytes(std::span(w)));
  double worst = 0;
  for (std::size_t r = 0; r < rows.rows; ++r) {
    double squares = 0;
    for (std::size_t c = 0; c < rows.cols; ++c) squares += std::pow(of.values[r * rows.cols + c], 2.0);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(rows.cols) + 1e-5);
    for (std::size_t c = 0; c < rows.cols; ++c) {
      const std::size_t i = r * rows.cols + c;
      const double exact = static_cast<double>(of.values[i]) * factor * static_cast<double>(w[c]);
      worst = std::max(worst, std::fabs(static_cast<double>(rows.values[i]) - exact));
    }
  }
  return rows.rows == of.rows && worst < 1e-5;
}

/// The matrices of a file that products are made with; experts are not told apart.
std::size_t matrices(const gguf::Document& document) {
  std::size_t count = 0;
  for (const auto& tensor : document.tensors()) {
    const bool other = tensor.name == "token_embd.weight" || tensor.name.find("conv1d") != tensor.name.npos;
    if (tensor.n_dims > 1 && !other) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("an observer sees the layers in order, and the input of each product once a step") {
  for (const HybridRecipe& recipe : {HybridRecipe{}, with_experts(), of_q8_0(with_experts())}) {
    CAPTURE(recipe.experts);
    const TinyHybrid tiny(recipe);
    exec::Inline executor;
    Watched model(tiny.document(), executor, {.n_ctx = 64, .chunk = n, .logits_rows = n, .log = {}});
    Recorder seen;
    static_cast<void>(step(model, &seen));
    CHECK(seen.order == std::vector<std::size_t>{0, 1, 2, 3});
    std::size_t whole = 0;
    for (const auto& each : seen.products) {
      const auto& key = each.first;
      const Rows& rows = each.second;
      CAPTURE(key.first);
      CHECK(rows.calls == 1);
      CHECK(rows.cols == tiny.document().tensor(key.first).width());
      if (key.second != model::no_expert) continue;
      CHECK(rows.rows == n);
      ++whole;
    }
    CHECK(whole + (recipe.experts == 0 ? 0 : 3 * recipe.layers) == matrices(tiny.document()));
  }
}

TEST_CASE("what goes into a layer's first products is the norm of what the layer before gave") {
  const TinyHybrid tiny(with_experts());
  exec::Inline executor;
  Watched model(tiny.document(), executor, {.n_ctx = 64, .chunk = n, .logits_rows = n, .log = {}});
  Recorder seen;
  static_cast<void>(step(model, &seen));
  for (std::size_t i = 1; i < 4; ++i) {
    CAPTURE(i);
    const std::string norm = arch::tensor_names::layer(i, "attn_norm");
    const std::vector<std::string> first =
        tiny.attends(i) ? std::vector<std::string>{"attn_q", "attn_k", "attn_v"}
                        : std::vector<std::string>{"attn_qkv", "attn_gate", "ssm_alpha", "ssm_beta"};
    for (const std::string& part : first) {
      CAPTURE(part);
      CHECK(is_norm_of(tiny, norm, seen.of(i, part), seen.layers.at(i - 1)));
    }
  }
  const Rows& head = seen.products.at({"output.weight", model::no_expert});
  CHECK(is_norm_of(tiny, "output_norm.weight", head, seen.layers.at(3)));
}

TEST_CASE("experts together see every token as often as the token uses experts") {
  const TinyHybrid tiny(with_experts());
  exec::Inline executor;
  Watched model(tiny.document(), executor, {.n_ctx = 64, .chunk = n, .logits_rows = n, .log = {}});
  Recorder seen;
  static_cast<void>(step(model, &seen));
  for (std::size_t i = 0; i < 4; ++i) {
    std::map<std::string, std::pair<std::size_t, double>> sums;  // by tensor: rows, and their sum of squares
    for (const auto& [key, rows] : seen.products) {
      if (key.second == model::no_expert) continue;
      CHECK(key.second < tiny.recipe().experts);
      sums[key.first].first += rows.rows;
      sums[key.first].second += rows.squares();
    }
    const double tokens = seen.of(i, "ffn_gate_inp").squares();
    for (const auto part : {"ffn_gate_exps", "ffn_up_exps"}) {
      const auto& [rows, squares] = sums.at(arch::tensor_names::layer(i, part));
      CHECK(rows == n * tiny.recipe().used);
      CHECK(squares == doctest::Approx(static_cast<double>(tiny.recipe().used) * tokens));
    }
    CHECK(sums.at(arch::tensor_names::layer(i, "ffn_down_exps")).first == n * tiny.recipe().used);
  }
}

TEST_CASE("rows are the same in whatever steps they are seen") {
  const TinyHybrid tiny{HybridRecipe{}};
  exec::Inline executor;
  Watched model(tiny.document(), executor, {.n_ctx = 64, .chunk = n, .logits_rows = n, .log = {}});
  Recorder whole, parts;
  static_cast<void>(step(model, &whole));
  static_cast<void>(step(model, &parts, 4));
  REQUIRE(whole.products.size() == parts.products.size());
  for (const auto& each : whole.products) {
    CAPTURE(each.first.first);
    CHECK(same_bits(each.second.values, parts.products.at(each.first).values));
  }
  for (const auto& [i, rows] : whole.layers) CHECK(same_bits(rows.values, parts.layers.at(i).values));
}

TEST_CASE("an observer changes no bit, and null is nobody") {
  for (const HybridRecipe& recipe : {HybridRecipe{}, with_experts()}) {
    const TinyHybrid tiny(recipe);
    exec::Inline executor;
    const ModelOptions options{.n_ctx = 64, .chunk = n, .logits_rows = n, .log = {}};
    Hybrid plain(tiny.document(), executor, options);
    Watched watched(tiny.document(), executor, options);
    auto cache = plain.make_cache();
    const auto expected = feed(plain, cache, random_ids(n, 67), n);
    Recorder seen;
    CHECK(same_bits(expected, step(watched, &seen)));
    const std::size_t calls = seen.order.size();
    CHECK(same_bits(expected, step(watched, nullptr)));
    CHECK(seen.order.size() == calls);
  }
}

}  // namespace mica::test::observer_test
