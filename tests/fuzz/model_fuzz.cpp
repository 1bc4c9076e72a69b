// SPDX-License-Identifier: Apache-2.0
//
// A small model file of any family with some numbers of its header and weights changed, then a step with the
// scalar kernels: refused by an error, or logits that are finite or said not to be. The first byte chooses
// the family.

#include "fuzz/gguf_edits.hpp"
#include "fuzz/input.hpp"
#include "mica/alloc/aligned.hpp"
#include "mica/alloc/budgeted.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/budget/ledger.hpp"
#include "mica/exec/inline.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/embedder.hpp"
#include "mica/runtime/session.hpp"
#include "mica_tools/synth/synthetic_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mica::fuzz::model_fuzz {
namespace {

using Allocator = alloc::Budgeted<alloc::Aligned>;
using Model = Transformer<arch::AnyOf<arch::All>, WithKvElement<format::F32>, WithKernels<kernel::Scalar>,
                          WithAllocator<Allocator>>;

/// One layer, or two where kinds of layers alternate.
arch::Shape shape_of(std::string_view arch) {
  arch::Shape shape{
      .name = "small", .model = "Small", .arch = arch, .layers = 1, .width = 32, .heads = 2, .kv_heads = 1};
  shape.head_dim = 16;
  shape.ff_width = 32;
  shape.n_vocab = 260;
  shape.n_ctx_train = 64;
  if (arch.starts_with("gemma") || arch == "gpt-oss" || arch == "modern-bert") {
    shape.layers = 2;
    shape.window = 16;
  }
  if (arch == "gemma4") {
    shape.window_interval = 2;
    shape.full_head_dim = 32;
    shape.full_kv_heads = 1;
    shape.full_v_from_k = true;
    shape.per_layer_width = 16;
  }
  if (arch.ends_with("moe") || arch == "gpt-oss") {
    shape.experts = 4;
    shape.experts_used = 2;
    shape.expert_ff_width = 32;
    shape.shared_ff_width = arch == "qwen35moe" ? 32 : 0;
  }
  if (arch.starts_with("qwen35")) {
    shape.layers = shape.interval = 2;
    shape.k_heads = 2;
    shape.v_heads = 4;
    shape.state_dim = 16;
    shape.taps = 4;
  }
  return shape;
}

arch::Shape encoder_shape_of(std::string_view arch) {
  arch::Shape shape = shape_of(arch);
  shape.tied = true;
  shape.pooling = arch::PoolingKey::mean;
  if (arch.starts_with("gemma")) {
    shape.dense_width = 32;
    return shape;
  }
  shape.kv_heads = shape.heads;
  shape.types = arch == "modern-bert" ? 0 : 2;
  return shape;
}

/// The file of a family, made when it is wanted for the first time.
const std::vector<std::byte>& file_of(std::size_t chosen) {
  static const Folder folder;
  static std::map<std::size_t, std::vector<std::byte>> files;
  constexpr std::size_t decoders = std::size(arch::family_tensors),
                        all = decoders + std::size(arch::encoder_tensors);
  const std::size_t i = chosen % all;
  std::vector<std::byte>& bytes = files[i];
  if (bytes.empty()) {
    exec::Inline executor;
    const arch::Shape shape = i < decoders ? shape_of(arch::family_tensors[i].arch)
                                           : encoder_shape_of(arch::encoder_tensors[i - decoders].arch);
    quantize::SyntheticModel(shape, chosen / all % 2 == 0 ? quantize::Recipe::F32 : quantize::Recipe::F16)
        .write(folder.path("model.gguf"), executor);
    std::ifstream in(folder.path("model.gguf"), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    bytes.assign(bytes_of_text(text).begin(), bytes_of_text(text).end());
  }
  return bytes;
}

std::vector<std::byte> changed(std::vector<std::byte> bytes, Input& input) {
  const gguf::Document document = gguf::parse(bytes, "base.gguf");
  for (std::size_t n = input.below(6); n > 0; --n) {
    const gguf::TensorInfo& tensor = document.tensors()[input.below(document.tensors().size())];
    switch (input.below(4)) {
      case 0:
      case 1:
        change_value(bytes, document.metadata(), input.below(document.metadata().size()), input);
        break;
      case 2:
        change_tensor(bytes, tensor, input);
        break;
      default: {  // the numbers of a tensor
        const std::string_view pattern = input.text(4);
        const std::size_t end = input.flag() ? tensor.bytes : std::min<std::size_t>(tensor.bytes, 4);
        for (std::size_t i = 0; i < end && !pattern.empty(); ++i)
          bytes[tensor.offset + i] = static_cast<std::byte>(pattern[i % pattern.size()]);
      }
    }
  }
  return bytes;
}

void run_text(Model& model, std::span<const TokenId> ids) {
  if (model.config().pooling != arch::Pooling::none) {
    Embedder<Model> embedder(model, {.texts = 2});
    std::vector<float> row(embedder.width());
    static_cast<void>(embedder.embed(ids.first(std::min(ids.size(), embedder.max_tokens())), row));
    return;
  }
  Session<Model> session(model);
  if (session.feed(ids) != model::StepStatus::ok) return;
  const auto row = session.logits();
  require(std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); }), "logits are finite");
}

void run(Input input) {
  const std::vector<std::byte> bytes = changed(file_of(input.byte()), input);
  accepted([&] {
    const gguf::Document document = gguf::parse(bytes, "changed.gguf");
    exec::Inline executor;
    budget::Ledger ledger(std::uint64_t{64} << 20);
    Model model(document, executor, {.n_ctx = 8, .chunk = 4, .logits_rows = 4, .log = {}},
                {.allocator = Allocator(ledger, budget::Account::weights)});
    const TokenId ids[] = {1, 70, 80};
    if (model.config().n_vocab > 80) run_text(model, ids);
  });
}

}  // namespace

MICA_FUZZ_TARGET(model) {
  run(Input(data, size));
  return 0;
}

}  // namespace mica::fuzz::model_fuzz
