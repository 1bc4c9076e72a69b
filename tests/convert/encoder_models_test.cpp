// SPDX-License-Identifier: Apache-2.0
//
// Tiny models of every family that embeds texts (encoder_models.py): every tensor must find its place, and
// the converted model must give the embedding or the scores of a reference in float64.

#include "convert/hf_folder.hpp"
#include "convert/model_values.hpp"
#include "mica/arch/any_of.hpp"
#include "mica/arch/lists.hpp"
#include "mica/kernel/scalar.hpp"
#include "mica/model/transformer.hpp"
#include "mica/runtime/embedder.hpp"
#include "mica_tools/convert/conversion.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace mica::test::encoder_models_test {
namespace {

using nlohmann::json;
using Model = Transformer<arch::AnyOf<arch::All>, WithKvElement<format::F32>, WithKernels<kernel::Scalar>>;

json models() {
  std::ifstream in(std::string(MICA_SOURCE) + "/tests/convert/encoder_models.json");
  return json::parse(in);
}

void fill(const json& model, HfFolder& folder) {
  folder.config = model["config"];
  for (const auto& [name, text] : model["files"].items())
    folder.others[name] = text.is_string() ? text.get<std::string>() : text.dump();
  const char* const answers[] = {"yes", "no"};
  for (std::size_t i = 0; i < model["answers"].size(); ++i)
    folder.tokenizer["model"]["vocab"][answers[i]] = model["answers"][i];
  add_tensors(model["tensors"], folder);
}

/// BERT with a separator, which a vocabulary of this test does not have.
struct PairBert : arch::Bert {
  [[nodiscard]] static arch::Config config(const gguf::Document& document) {
    arch::Config config = Bert::config(document);
    config.begin.get<block::EncoderInput>().separator = (10 * 37 + 11) % 250 + 4;  // of token 10
    return config;
  }
};
using PairModel = Transformer<PairBert, WithKvElement<format::F32>, WithKernels<kernel::Scalar>>;

template <class Model>
std::vector<float> row_of(const std::string& path, std::size_t tokens) {
  const gguf::Document document = gguf::open(path);
  exec::Inline executor;
  Model model(document, executor, {.n_ctx = tokens, .chunk = tokens, .log = {}});
  Embedder<Model> embedder(model);
  std::vector<TokenId> ids;
  for (TokenId i = 0; i < tokens; ++i) ids.push_back((i * 37 + 11) % 250 + 4);
  std::vector<float> row(embedder.width());
  REQUIRE(embedder.embed(ids, row) == model::StepStatus::ok);
  return row;
}

float difference(const std::vector<float>& row, const json& expected) {
  const auto wanted = expected.get<std::vector<float>>();
  REQUIRE(row.size() >= wanted.size());
  float most = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    most = std::max(most, std::fabs(row[i] - wanted[i]) / std::max(1.0F, std::fabs(wanted[i])));
  return most;
}

/// The folder, written as a file.
std::string converted(const HfFolder& folder) {
  convert::Conversion::open(folder.write()).write(folder.path("out.gguf"));
  return folder.path("out.gguf");
}

}  // namespace

TEST_CASE("a converted model gives the row of the reference, in every family that embeds texts") {
  const json all = models();
  CHECK(all.size() == 13);
  for (const auto& [name, model] : all.items()) {
    const auto& the_name = name;
    CAPTURE(the_name);
    HfFolder folder;
    fill(model, folder);
    CHECK(difference(row_of<Model>(converted(folder), model["tokens"]), model["row"]) < 2e-6F);
  }
}

TEST_CASE("the second text of a pair has the second type") {
  const json model = models()["bert"];
  HfFolder folder;
  fill(model, folder);
  const auto row = row_of<PairModel>(converted(folder), model["tokens"]);
  CHECK(difference(row, model["pair"]) < 2e-6F);
  CHECK(difference(row, model["row"]) > 1e-3F);
}

TEST_CASE("the keys of an encoder are those of its config and its modules") {
  const json all = models();
  const auto document = [&](const char* name) {
    HfFolder folder;
    fill(all[name], folder);
    return gguf::open(converted(folder));
  };
  const gguf::Document roberta = document("xlm-roberta-reranker");
  CHECK(roberta.metadata().require<std::string>("general.architecture") == "bert");
  CHECK(roberta.metadata().require<std::uint32_t>("bert.context_length") ==
        128);  // 130, two before the first
  CHECK(roberta.tensor("position_embd.weight").shape() == "64 x 128");
  CHECK(roberta.metadata().require<std::uint32_t>("bert.pooling_type") == 4);
  CHECK_FALSE(roberta.metadata().require<bool>("bert.attention.causal"));
  CHECK(roberta.metadata().require<std::uint32_t>("tokenizer.ggml.token_type_count") == 1);
  const auto labels =
      roberta.metadata().require<gguf::Array<std::string_view>>("bert.classifier.output_labels");
  CHECK(std::vector<std::string>(labels.begin(), labels.end()) ==
        std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"});
  const gguf::Document modern = document("modernbert");
  CHECK(modern.metadata().require<std::uint32_t>("modern-bert.attention.sliding_window") == 128);
  CHECK(modern.metadata().require<std::uint32_t>("modern-bert.attention.sliding_window_pattern") == 3);
  CHECK(modern.metadata().require<float>("modern-bert.rope.freq_base") == 160000.0F);
  CHECK(modern.metadata().require<std::uint32_t>("modern-bert.pooling_type") == 2);
  const gguf::Document gemma = document("embeddinggemma");
  CHECK(gemma.metadata().require<std::uint32_t>("gemma-embedding.dense_3_feat_in") == 128);
  CHECK(gemma.tensor("dense_2.weight").shape() == "64 x 128");
  CHECK(document("nomic").metadata().require<std::uint32_t>("nomic-bert.context_length") == 2048);
  const gguf::Document reranker = document("qwen3-reranker-untied");
  CHECK(reranker.tensor("cls.output.weight").shape() == "64 x 2");
  CHECK(reranker.find("output.weight") == nullptr);
}

TEST_CASE("prompts of sentence-transformers become prefixes of queries and documents") {
  const json all = models();
  const auto prefixes = [&](const char* prompts) {
    HfFolder folder;
    fill(all["bert"], folder);
    folder.others["config_sentence_transformers.json"] = join(R"({"prompts": )", prompts, "}");
    const gguf::Document document = gguf::open(converted(folder));
    const auto prefix = [&](std::string_view key) {
      return std::string(document.metadata().get<std::string_view>(key).value_or("none"));
    };
    return join(prefix("mica.prefix.query"), "|", prefix("mica.prefix.document"));
  };
  CHECK(prefixes(R"({"query": "query: ", "document": "title: none | ", "Clustering": "x"})") ==
        "query: |title: none | ");
  CHECK(prefixes(R"({"query": "search_query: ", "passage": "search_document: "})") ==
        "search_query: |search_document: ");
  CHECK(prefixes(R"({"query": "Instruct: x\nQuery:", "document": ""})") == "Instruct: x\nQuery:|none");
  CHECK(prefixes("null") == "none|none");
}

TEST_CASE("what an encoder's folder asks for and no file can say is refused by its key") {
  const json all = models();
  const auto message = [&](const char* name, const auto& change) {
    HfFolder folder;
    fill(all[name], folder);
    change(folder);
    const std::string path = folder.write();
    return refusal([&] { return convert::Conversion::open(path); });
  };
  const auto with = [&](const char* name, const char* key, const json& value) {
    return message(name, [&](HfFolder& folder) { folder.config[key] = value; });
  };
  CHECK(mentions(with("bert", "hidden_act", "relu"), "'hidden_act' is 'relu'"));
  CHECK(mentions(with("bert", "position_embedding_type", "relative_key"), "position_embedding_type"));
  CHECK(mentions(with("nomic", "moe_every_n_layers", 2), "without experts"));
  CHECK(mentions(with("nomic", "n_head", 0), "'n_head' is 0"));  // the name that the file has
  CHECK(mentions(with("jina", "feed_forward_type", "reglu"), "feed_forward_type"));
  CHECK(mentions(with("modernbert-reranker", "classifier_pooling", "cls"), "classifier_pooling"));
  CHECK(mentions(
      with("modernbert", "layer_types",
           json{"full_attention", "full_attention", "full_attention", "full_attention", "full_attention"}),
      "layer 1"));
  const auto file = [&](const char* name, const char* other, const char* text) {
    return message(name, [&](HfFolder& folder) { folder.others[other] = text; });
  };
  CHECK(mentions(file("bert", "1_Pooling/config.json", R"({"pooling_mode_max_tokens": true})"),
                 "supported are"));
  CHECK(mentions(file("bert", "1_Pooling/config.json",
                      R"({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": true})"),
                 "beside another pooling"));
  CHECK(mentions(file("bert", "modules.json", R"([{"type": "x.Quux", "path": "0_Quux"}])"),
                 "a module of the type 'x.Quux'"));
  CHECK(mentions(file("bert", "modules.json", R"([5])"), "a module of the type ''"));
  CHECK(mentions(file("bert", "modules.json",
                      R"([{"type": "x.Pooling", "path": "1_Pooling"},
                          {"type": "x.Pooling", "path": "1_Pooling"}])"),
                 "two modules"));
  CHECK(mentions(with("bert", "architectures", json{"BertForSequenceClassification"}), "names a classifier"));
  CHECK(mentions(file("bert", "config_sentence_transformers.json", R"({"prompts": {"query": 1}})"),
                 "prompt 'query' is no text"));
  CHECK(mentions(file("bert", "modules.json", R"([{"type": "x.Pooling", "path": "../elsewhere"}])"),
                 "no folder"));
  CHECK(mentions(file("embeddinggemma", "2_Dense/config.json",
                      R"({"in_features": 64, "out_features": 128, "activation_function": "torch.nn.Tanh"})"),
                 "without both"));
}

}  // namespace mica::test::encoder_models_test
