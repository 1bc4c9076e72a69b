// SPDX-License-Identifier: Apache-2.0
//
// A model that might be run: a row of the catalogue in all of its quantisations, or a file as it is. Its
// memory is planned from headers (plan/plan.hpp), each combination once.
#pragma once

#include "mica/gguf/reader.hpp"
#include "mica/paging/streamed.hpp"
#include "mica/plan/solve.hpp"
#include "mica_tools/fit/catalogue.hpp"
#include "mica_tools/fit/quantisation.hpp"
#include "mica_tools/fit/work.hpp"
#include "mica_tools/synth/synthetic_model.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace mica::fit {

/// Plans a question; streamed weights get the bytes that remain of a budget. The caller passes the function,
/// so that a program compiles its families once.
using Planner = std::function<plan::Plan(const gguf::Document&, plan::Question, std::uint64_t budget_bytes)>;

/// The planner of all families.
template <class Families = arch::All>
[[nodiscard]] plan::Plan plan_within(const gguf::Document& document, plan::Question question,
                                     std::uint64_t budget_bytes) {
  plan::fill_weight_capacity<Families>(document, question, budget_bytes);
  return plan::make_plan<Families>(document, question);
}

/// Bytes of a tokenizer's tables for each token, where no vocabulary can be read: about 50 for its text, as
/// many or more for its merges.
inline constexpr std::uint64_t tokenizer_bytes_per_token = 128;

/// One way to run a candidate.
struct Setting {
  std::size_t quantisation = 0;            // of its ladder
  std::size_t n_ctx = 0;                   // tokens; 0: what the model was trained for
  kv::Element element = kv::Element::f16;  // of keys and values
  bool streamed = false;                   // weights
  std::uint64_t budget_bytes = 0;          // for streamed weights and all else

  /// All members, for comparison.
  [[nodiscard]] auto key() const { return std::tuple(quantisation, n_ctx, element, streamed, budget_bytes); }
};

/// Weights of a document, in bytes or in numbers.
struct Parts {
  double all = 0;      // of all tensors
  double active = 0;   // of the tensors that a token uses: its experts, its row of per-layer embeddings
  double experts = 0;  // of all experts
};

/// Sums up tensors by `of`, their bytes or their elements.
template <class Of>
[[nodiscard]] Parts parts_of(const gguf::Document& document, const arch::Config& config, Of&& of) {
  Parts parts;
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    const double size = static_cast<double>(of(tensor)), used = plan::detail::part_used(tensor, config);
    const bool table = tensor.name == arch::tensor_names::per_layer_token_embd;
    parts.all += size;
    parts.active += table ? size / static_cast<double>(tensor.rows()) : size * used;
    if (used < 1) parts.experts += size;
  }
  return parts;
}

/// Raises ErrorCode::unsupported for a file that cannot write, which is not ranked among models that can.
inline void check_writes(const gguf::Document& file) {
  const std::string arch = file.metadata().get<std::string>("general.architecture").value_or("");
  for (const arch::FamilyTensors& family : arch::encoder_tensors)
    MICA_CHECK(family.arch != arch, unsupported, file.path(), ": ", arch,
               " embeds texts, and models that write are ranked; mica plan computes its memory, mica embed "
               "runs it");
}

class Candidate {
 public:
  /// A row of the catalogue. mlx: with the quantisations of MLX.
  Candidate(const Row& row, std::size_t threads, Planner planner, bool mlx = false)
      : name_(row.name),
        title_(row.title()),
        shape_(arch::find_shape(row.shape)),
        row_(&row),
        model_(&row),
        threads_(threads),
        planner_(std::move(planner)) {
    MICA_CHECK(shape_.has_value(), usage, "catalogue: no shape '", row.shape,
               "'; known: ", arch::shape_names());
    if (row.n_ctx_train != 0) shape_->n_ctx_train = row.n_ctx_train;
    if (mlx) {
      ladder_ = mlx_quantisations();
    } else if (row.recipe) {
      ladder_ = {{std::string(quantize::info(*row.recipe).name), row.recipe}};
    } else {
      ladder_ = gguf_quantisations();
    }
    documents_.resize(ladder_.size());
  }

  /// A file as it is. Raises what planning it raises.
  Candidate(gguf::Document file, std::size_t threads, Planner planner)
      : name_(file.path()), threads_(threads), planner_(std::move(planner)) {
    title_ = file.metadata().get<std::string>("general.name").value_or(name_);
    model_ = model_of(file);
    documents_.emplace_back(std::move(file));
    ladder_.push_back({"file"});
    ladder_.front() = quantisation_of_file();
  }

  /// Restricts the candidate to the quantisation `name`; false where it has none of that name. A row that is
  /// not published in quantised form accepts every recipe that can be written.
  [[nodiscard]] bool keep_only(std::string_view name) {
    std::vector<Quantisation> one;
    for (const Quantisation& each : ladder_) {
      if (kv::detail::same_name(each.name, name)) one.push_back(each);
    }
    const auto recipe = quantize::find_recipe(name);
    const bool is_other = one.empty() && shape_ && !row_->recipe && recipe &&
                          format::known_codecs.writes(quantize::info(*recipe).base);
    if (is_other) one.push_back({std::string(quantize::info(*recipe).name), recipe});
    if (one.empty()) return false;
    if (shape_) documents_ = std::vector<std::optional<gguf::Document>>(1);
    plans_.clear();
    weights_.clear();
    ladder_ = std::move(one);
    if (is_other) {
      Quantisation& only = ladder_.front();
      const double bits = bits_per_weight(document(0));
      only.penalty = penalty_of(only.name, bits);
      only.worth = worth_of(only.name, bits);
    }
    return true;
  }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& title() const noexcept { return title_; }  // for people
  [[nodiscard]] const Row* row() const noexcept { return row_; }              // null: a file
  /// The row of the catalogue with the date and the purpose: of a file the one with its name, else the first
  /// one with its shape. Null: there is none.
  [[nodiscard]] const Row* model() const noexcept { return model_; }
  /// Its quantisations, the best first; at least one.
  [[nodiscard]] const std::vector<Quantisation>& ladder() const noexcept { return ladder_; }
  /// The representative quantisation: Q4_K_M, else the only one or the last.
  [[nodiscard]] std::size_t reference() const noexcept {
    for (std::size_t i = 0; i < ladder_.size(); ++i) {
      if (ladder_[i].name == "Q4_K_M") return i;
    }
    return ladder_.size() - 1;
  }

  /// Both plan a short context the first time, and raise as plan().
  [[nodiscard]] const arch::Config& config() { return plan(min()).config; }
  [[nodiscard]] std::size_t n_ctx_train() { return config().n_ctx_train; }
  /// Weights, and of them those that a token can use.
  [[nodiscard]] Parts parameters() {
    return parts_of(document(0), config(), [](const gguf::TensorInfo& tensor) { return tensor.elements(); });
  }
  /// Bytes of the weights in a quantisation. An estimate, by bits a weight, for formats other than GGUF.
  [[nodiscard]] const Parts& weights(std::size_t quantisation) {
    const auto found = weights_.find(quantisation);
    if (found != weights_.end()) return found->second;
    return weights_.emplace(quantisation, count_weights(quantisation)).first->second;
  }
  /// Recommended bytes of a card: twice the weights in Q4_K_M, enough for better quantisations, keys and
  /// values; at least 2 GiB.
  [[nodiscard]] std::uint64_t recommended_bytes() {
    const auto four_bits = static_cast<std::uint64_t>(weights(reference()).all);
    return std::max(2 * four_bits, std::uint64_t{2} << 30);
  }

  /// The dry run. Cost: less than a millisecond for 8,192 tokens, and the same for a header that is needed
  /// first.
  [[nodiscard]] const plan::Plan& plan(const Setting& setting) {
    const auto found = plans_.find(setting.key());
    if (found != plans_.end()) return found->second;
    plan::Question question;
    question.model.n_ctx = setting.n_ctx;
    question.threads = threads_;
    question.choice.cache_type_k = question.choice.cache_type_v = setting.element;
    if (setting.streamed) question.choice.weights = paging::Choice::streamed;
    question.tokenizer_bytes = tokenizer_bytes_;
    const gguf::Document& header = document(setting.quantisation);
    if (shape_) question.tokenizer_bytes = shape_->n_vocab * tokenizer_bytes_per_token;
    // The header of a shape has no vocabulary, with which the memory of a process grows.
    const std::uint64_t process = shape_ ? shape_->n_vocab * plan::process_bytes_per_piece : 0;
    plan::Plan plan =
        planner_(header, question, setting.budget_bytes - std::min(setting.budget_bytes, process));
    plan.accounts[budget::Account::process] += process;
    plan.peak_bytes += process;
    tokenizer_bytes_ = plan.accounts[budget::Account::tokenizer];
    return plans_.emplace(setting.key(), std::move(plan)).first->second;
  }

  /// The work of a token when half of the context is filled.
  [[nodiscard]] plan::Work work(const Setting& setting) {
    const kv::AnyElements<> elements(setting.element, setting.element);
    return plan::work_of(document(setting.quantisation), plan(setting).config, elements, setting.n_ctx / 2);
  }

  /// The header in a quantisation; for formats other than GGUF, the one in Q8_0.
  [[nodiscard]] const gguf::Document& document(std::size_t quantisation) {
    std::optional<gguf::Document>& document = documents_[quantisation];
    if (!document) {
      const auto recipe = ladder_[quantisation].recipe.value_or(quantize::Recipe::Q8_0);
      document.emplace(quantize::SyntheticModel(*shape_, recipe).document());
    }
    return *document;
  }

 private:
  [[nodiscard]] static Setting min() noexcept { return {.n_ctx = format::tile_tokens}; }

  [[nodiscard]] Parts count_weights(std::size_t quantisation) {
    const double bits = ladder_[quantisation].bits;
    if (bits == 0 || !shape_)
      return parts_of(document(quantisation), config(), [](const gguf::TensorInfo& t) { return t.bytes; });
    const Parts p = parameters();
    return {p.all * bits / 8, p.active * bits / 8, p.experts * bits / 8};
  }

  /// 0 without weights.
  [[nodiscard]] static double bits_per_weight(const gguf::Document& document) {
    double bytes = 0, elements = 0;
    for (const gguf::TensorInfo& tensor : document.tensors()) {
      bytes += static_cast<double>(tensor.bytes);
      elements += static_cast<double>(tensor.elements());
    }
    return elements == 0 ? 0 : 8 * bytes / elements;
  }

  /// The quantisation that the file names; by its bits per weight where it names none.
  [[nodiscard]] Quantisation quantisation_of_file() {
    const gguf::Document& file = *documents_.front();
    const double bits = bits_per_weight(file);
    const auto type = file.metadata().get<std::uint32_t>("general.file_type");
    const auto recipe = type ? quantize::find_recipe(join(*type)) : std::nullopt;
    std::string name = recipe ? std::string(quantize::info(*recipe).name) : std::string("mixed");
    const double penalty = penalty_of(name, bits), worth = worth_of(name, bits);
    return {std::move(name), recipe, bits, penalty, worth};
  }

  /// Letters in lower case and digits alone.
  [[nodiscard]] static std::string bare(std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
      if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
    }
    return out;
  }

  [[nodiscard]] static const Row* model_of(const gguf::Document& file) {
    const auto& metadata = file.metadata();
    const std::string arch = metadata.get<std::string>("general.architecture").value_or("");
    const std::string title = bare(metadata.get<std::string>("general.name").value_or(""));
    const auto number = [&](std::string_view key) {
      return metadata.get<std::uint32_t>(join(arch, ".", key)).value_or(0);
    };
    const Row* first = nullptr;
    for (const Row& row : catalogue) {
      const auto shape = arch::find_shape(row.shape);
      if (!shape || shape->arch != arch || number("block_count") != shape->layers ||
          number("embedding_length") != shape->width)
        continue;
      if (bare(row.title()) == title) return &row;
      if (first == nullptr) first = &row;
    }
    return first;
  }

  std::string name_;
  std::string title_;
  std::optional<arch::Shape> shape_;
  const Row* row_ = nullptr;
  const Row* model_ = nullptr;
  std::size_t threads_;
  Planner planner_;
  std::vector<Quantisation> ladder_;
  std::vector<std::optional<gguf::Document>> documents_;  // by quantisation
  std::map<std::tuple<std::size_t, std::size_t, kv::Element, bool, std::uint64_t>, plan::Plan> plans_;
  std::map<std::size_t, Parts> weights_;  // by quantisation, in bytes
  std::optional<std::uint64_t> tokenizer_bytes_;
};

}  // namespace mica::fit
