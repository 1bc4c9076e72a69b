// SPDX-License-Identifier: Apache-2.0
//
// The contents of a file: metadata, tensors, bytes, warnings. Any architecture, and vocabularies alone.
#include "console.hpp"
#include "input.hpp"
#include "json_text.hpp"
#include "mica/arch/lists.hpp"
#include "mica/base/visit.hpp"
#include "mica/budget/size.hpp"
#include "mica/format/lists.hpp"
#include "safe_text.hpp"
#include "verbs.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {
namespace {

class Inspect final : public Verb {
 public:
  explicit Inspect(const About& its) : Verb(its, Needs::header) {}
  int run() override;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    flags.group("Inspect");
    flags.toggle("--tensors", tensors_, "list every tensor");
  }

  bool tensors_ = false;
};

constexpr std::size_t shown_elements = 64;  // of an array

struct Sum {
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};

/// "blk.12.attn_q.weight" -> "blk.12"; everything outside of the layers is "other".
std::string layer_of(std::string_view tensor) {
  if (!tensor.starts_with("blk.")) return "other";
  const std::size_t dot = tensor.find('.', 4);
  unsigned number = 0;
  const std::string_view digits = tensor.substr(4, dot == std::string_view::npos ? dot : dot - 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return error == std::errc() && end == digits.data() + digits.size() ? join("blk.", number)
                                                                      : std::string("other");
}

/// In the order of the file, so that blk.10 comes after blk.9.
std::vector<std::pair<std::string, Sum>> sums_by(std::span<const gguf::TensorInfo> tensors,
                                                 std::string (*key)(const gguf::TensorInfo&)) {
  std::vector<std::pair<std::string, Sum>> sums;
  std::map<std::string, std::size_t> index;
  for (const gguf::TensorInfo& tensor : tensors) {
    const auto [at, is_new] = index.try_emplace(key(tensor), sums.size());
    if (is_new) sums.emplace_back(at->first, Sum());
    Sum& sum = sums[at->second].second;
    ++sum.tensors;
    sum.bytes += tensor.bytes;
  }
  return sums;
}

std::string layer_key(const gguf::TensorInfo& tensor) { return layer_of(tensor.name); }
std::string type_key(const gguf::TensorInfo& tensor) { return std::string(tensor.format.name); }

bool is_computable(std::string_view format) {
  return visit_if(
      format::All{}, [&](auto type) { return decltype(type)::type::name == format; }, [](auto) {});
}

/// Warnings about the file.
std::vector<std::string> oddities_of(const gguf::Document& document) {
  std::vector<std::string> found;
  const gguf::Metadata& metadata = document.metadata();
  const auto arch = metadata.find("general.architecture");
  if (!arch) found.push_back("no general.architecture");
  if (const auto name = arch ? arch->as<std::string_view>() : std::nullopt) {
    const bool known = visit_if(
        arch::All{}, [&](auto type) { return decltype(type)::type::name == *name; }, [](auto) {});
    if (!known) found.push_back(join("architecture '", escaped(*name), "' cannot be run by this version"));
  }
  if (document.tensors().empty()) found.push_back("no tensors: a vocabulary alone");
  for (const auto& [type, sum] : sums_by(document.tensors(), type_key)) {
    if (!is_computable(type))
      found.push_back(
          join(sum.tensors, " tensors of type ", type, ", which this version cannot compute with"));
  }
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    if (tensor.empty()) found.push_back(join("tensor '", escaped(tensor.name), "' has no values"));
  }
  if (document.sources().size() > 1 && !document.packed())
    found.push_back(join(document.sources().size(), " files make this model"));
  if (!metadata.contains("tokenizer.ggml.tokens")) found.push_back("no vocabulary");
  return found;
}

std::uint64_t tensor_bytes(const gguf::Document& document) {
  std::uint64_t bytes = 0;
  for (const gguf::TensorInfo& tensor : document.tensors()) bytes += tensor.bytes;
  return bytes;
}

std::uint64_t parameters(const gguf::Document& document) {
  std::uint64_t count = 0;
  for (const gguf::TensorInfo& tensor : document.tensors()) count += tensor.elements();
  return count;
}

/// Calls f(text) for the first elements of an array of strings or numbers; the text is JSON.
template <class F>
void for_elements(const gguf::Value& value, std::size_t max, F&& f) {
  std::size_t i = 0;
  const auto each = [&](const auto& array, auto&& text) {
    for (const auto element : array) {
      if (i++ == max) return;
      f(text(element));
    }
  };
  if (const auto strings = value.as<gguf::Array<std::string_view>>()) {
    each(*strings, [](std::string_view text) { return json_string(text); });
  } else if (const auto whole = value.as<gguf::Array<std::int64_t>>()) {
    each(*whole, [](std::int64_t number) { return join(number); });
  } else if (const auto real = value.as<gguf::Array<double>>()) {
    each(*real, [](double number) { return shortest(number); });
  } else if (const auto bools = value.as<gguf::Array<bool>>()) {
    each(*bools, [](bool truth) { return join(truth); });
  }
}

std::string array_json(const gguf::Value& value) {
  std::string elements;
  for_elements(value, shown_elements,
               [&](const std::string& text) { elements += join(elements.empty() ? "" : ",", text); });
  if (value.size() <= shown_elements) return join("[", elements, "]");
  return join("{\"type\":\"array\",\"of\":\"", gguf::name(value.element_type()),
              "\",\"length\":", value.size(), ",\"first\":[", elements, "]}");
}

std::string value_json(const gguf::Value& value) {
  if (value.is_array()) return array_json(value);
  if (const auto text = value.as<std::string_view>()) return json_string(*text);
  if (const auto truth = value.as<bool>()) return join(*truth);
  if (const auto whole = value.as<std::int64_t>()) return join(*whole);
  if (const auto whole = value.as<std::uint64_t>()) return join(*whole);
  return shortest(value.as<double>().value_or(0));
}

std::string tensor_json(const gguf::TensorInfo& tensor) {
  std::string shape;
  for (std::size_t d = 0; d < tensor.n_dims; ++d) shape += join(d == 0 ? "" : ",", tensor.dims[d]);
  return join("{\"name\":", json_string(tensor.name), ",\"shape\":[", shape, "],\"type\":\"",
              tensor.format.name, "\",\"bytes\":", tensor.bytes, ",\"offset\":", tensor.offset,
              ",\"file\":", tensor.source, ",\"packed\":", tensor.packed, "}");
}

std::string sums_json(const std::vector<std::pair<std::string, Sum>>& sums) {
  std::string text;
  for (const auto& [name, sum] : sums) {
    text += join(text.empty() ? "" : ",", json_string(name), ":{\"tensors\":", sum.tensors,
                 ",\"bytes\":", sum.bytes, "}");
  }
  return join("{", text, "}");
}

std::string document_json(const gguf::Document& document) {
  const gguf::Metadata& metadata = document.metadata();
  std::string keys, tensors, oddities;
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    keys += join(i == 0 ? "" : ",", json_string(metadata.key(i)), ":", value_json(metadata.value(i)));
  }
  for (const gguf::TensorInfo& tensor : document.tensors())
    tensors += join(tensors.empty() ? "" : ",", tensor_json(tensor));
  for (const std::string& oddity : oddities_of(document))
    oddities += join(oddities.empty() ? "" : ",", json_string(oddity));
  return join("{\"path\":", json_string(document.path()), ",\"version\":", document.version(),
              ",\"alignment\":", document.alignment(), ",\"packed\":", document.packed(),
              ",\"files\":", document.sources().size(), ",\"parameters\":", parameters(document),
              ",\"tensor_bytes\":", tensor_bytes(document),
              ",\"chat_template\":", metadata.contains("tokenizer.chat_template"), ",\"metadata\":{", keys,
              "},\"types\":", sums_json(sums_by(document.tensors(), type_key)),
              ",\"layers\":", sums_json(sums_by(document.tensors(), layer_key)), ",\"tensors\":[", tensors,
              "],\"oddities\":[", oddities, "]}\n");
}

std::string column(std::string text, std::size_t width) {
  text.append(text.size() < width ? width - text.size() : 0, ' ');
  return text + "  ";
}

std::string sums_text(std::string_view title, const std::vector<std::pair<std::string, Sum>>& sums) {
  std::string text = join(title, "\n");
  for (const auto& [name, sum] : sums) {
    text += join("  ", column(name, 16), column(join(sum.tensors, " tensors"), 14),
                 budget::size_text(sum.bytes), "\n");
  }
  return text;
}

std::string document_text(const gguf::Document& document, bool with_tensors) {
  const gguf::Metadata& metadata = document.metadata();
  const std::string packed =
      document.packed() ? join("packed in ", document.sources().size(), " files, ") : std::string();
  std::string text = join(
      cell_text(document.path()), ": GGUF ", document.version(), ", ", packed, document.tensors().size(),
      " tensors, ", budget::size_text(tensor_bytes(document)), ", ", parameters(document), " parameters, ",
      metadata.contains("tokenizer.chat_template") ? "with" : "without", " a chat template\n\nmetadata\n");
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    text += join("  ", column(escaped(metadata.key(i)), 44), metadata.value(i).description(), "\n");
  }
  text += sums_text("\ntypes", sums_by(document.tensors(), type_key)) +
          sums_text("\nlayers", sums_by(document.tensors(), layer_key));
  if (with_tensors) text += "\ntensors\n";
  for (const gguf::TensorInfo& tensor : document.tensors()) {
    if (!with_tensors) break;
    text += join("  ", column(escaped(tensor.name), 32), column(tensor.shape(), 20),
                 column(std::string(tensor.format.name), 8), budget::size_text(tensor.bytes), "\n");
  }
  const auto oddities = oddities_of(document);
  if (!oddities.empty()) text += "\noddities\n";
  for (const std::string& oddity : oddities) text += join("  ", oddity, "\n");
  return text;
}

int Inspect::run() {
  const gguf::Document document = open_document(*this);
  print(json ? document_json(document) : document_text(document, tensors_));
  return 0;
}

}  // namespace

AnyVerb make_inspect() {
  return std::make_unique<Inspect>(Verb::About{"inspect",
                                               "what is in a file, or behind a URL: metadata, tensors, bytes",
                                               "mica inspect model.gguf --tensors"});
}

AnyVerb make_show() {
  return std::make_unique<Inspect>(
      Verb::About{"show", "the same as inspect", "mica show hf.co/Qwen/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M"});
}

}  // namespace mica::program
