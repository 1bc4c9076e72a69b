// SPDX-License-Identifier: Apache-2.0
//
// The arguments of calls as expressions: the schemas of all tools in one document, and their objects in the
// notation of a format. Not here: what is around the arguments (call_language.hpp).
#pragma once

#include "mica/base/error.hpp"
#include "mica_tools/calls/call_format.hpp"
#include "mica_tools/calls/call_language_options.hpp"
#include "mica_tools/calls/detail/call_texts.hpp"
#include "mica_tools/calls/detail/sample_call.hpp"
#include "mica_tools/calls/tools_of_json.hpp"
#include "mica_tools/json/parse_json.hpp"
#include "mica_tools/schema/json_rules.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::calls::detail {

using schema::Json;
using schema::NeedId;
using schema::SchemaId;

/// A tool as a request describes it.
struct Tool {
  std::string name;
  Json parameters;  // its schema
};

/// The tools of a list. Without a schema, only an object without members is allowed. Raises ErrorCode::usage
/// for a list that is none, and for a name that is there twice.
[[nodiscard]] inline std::vector<Tool> read_tools(const Json& list) {
  MICA_CHECK(list.is_array(), usage, "tools: found no array; it is [{\"type\": \"function\", ...}, ...]");
  std::vector<Tool> out;
  for (const Json& each : list) {
    const Json* const described = described_tool(each);
    MICA_CHECK(described != nullptr, usage, "tools: entry ", out.size(), " has no name");
    const Json* const parameters = parameters_of(*described);
    Tool tool{described->at("name").get<std::string>(),
              parameters != nullptr ? *parameters : Json{{"additionalProperties", false}}};
    const auto same = [&](const Tool& other) { return other.name == tool.name; };
    MICA_CHECK(std::none_of(out.begin(), out.end(), same), usage, "tools: '", escaped(tool.name, 60),
               "' is there twice");
    out.push_back(std::move(tool));
  }
  return out;
}

/// How the values of a format are written, within its arguments.
[[nodiscard]] inline schema::Spelling spelling_of(const CallFormat& format, std::string quote,
                                                  const std::string& stop) {
  schema::Spelling out;
  if (format.notation == Notation::json) out.excluded = stop;
  if (format.notation == Notation::tags) out.excluded = trimmed(format.parameter.close);
  if (format.notation == Notation::python)
    out.null = "None", out.yes = "True", out.no = "False", out.has_single_quotes = true;
  if (format.notation != Notation::bare) return out;
  out.has_bare_names = true;
  if (quote.empty()) return out;
  out.quote = std::move(quote);
  out.excluded = format.quote;
  out.has_escapes = false;
  return out;
}

/// The arguments of the tools of one request. Format and options outlive it.
class CallArguments {
 public:
  /// Raises ErrorCode::usage for a schema that is none, or that no object meets; ErrorCode::unsupported for
  /// names and values that the notation cannot write.
  CallArguments(const CallFormat& format, const CallLanguageOptions& options, const std::vector<Tool>& tools,
                const std::vector<ToolTypes>& types, CallTexts& texts, Expressions& expressions);

  /// The arguments of tool i, without the brackets around parameters.
  [[nodiscard]] ExprId of(std::size_t tool);
  /// The texts of CallLanguageOptions::text_schema. Raises as of(); unsupported where the notation has
  /// another spelling of JSON.
  [[nodiscard]] ExprId text();
  /// The rules that its expressions call.
  [[nodiscard]] std::unique_ptr<constraint::Rules> take_rules() { return std::move(rules_); }

 private:
  using Literals = schema::Literals;
  /// A way to write the value of a parameter.
  struct Value {
    std::string type;
    ExprId text;
  };

  [[nodiscard]] static std::string document_of(const std::vector<Tool>& tools, const std::string& text);
  [[nodiscard]] SchemaId find(const std::string& pointer) {
    return rules_->document().resolve(0, "#" + pointer, "$ref");
  }
  [[nodiscard]] SchemaId schema_of(std::string_view tool) {
    return find("/$defs/" + schema::pointer_part(tool));
  }
  void check_names(const ToolTypes& tool);
  [[nodiscard]] ExprId parameters(const schema::ObjectShape& shape, const ToolTypes& tool);
  void check_counts(const schema::ObjectShape& shape);
  [[nodiscard]] ExprId named(const std::string& name, NeedId need, const ToolTypes& tool,
                             const schema::ObjectShape& shape);
  [[nodiscard]] ExprId others(const schema::ObjectShape& shape, const ToolTypes& tool);
  [[nodiscard]] std::vector<Value> values(NeedId need, const std::string& name, const ToolTypes& tool);
  [[nodiscard]] ExprId raw_strings(NeedId need);
  [[nodiscard]] std::optional<NeedId> both(NeedId need, schema::Literal literal) {
    Literals literals = rules_->shapes().cases().literals(need);
    literals.push_back(literal);
    return rules_->need(std::move(literals));
  }
  [[noreturn]] void refuse(std::string_view keyword, SchemaId at, std::string_view why) {
    schema::refuse(keyword, rules_->document().place(at),
                   join(why, " cannot be written in the calls of ", format_.family));
  }

  const CallFormat& format_;
  const std::vector<ToolTypes>& types_;
  Expressions& x_;
  std::unique_ptr<schema::JsonRules> rules_;
  schema::Strings raw_;                                            // strings between tags
  std::vector<NeedId> needs_;                                      // of each tool
  std::string open_, key_close_, value_open_, close_, separator_;  // around a parameter; its type is between
};

inline CallArguments::CallArguments(const CallFormat& format, const CallLanguageOptions& options,
                                    const std::vector<Tool>& tools, const std::vector<ToolTypes>& types,
                                    CallTexts& texts, Expressions& expressions)
    : format_(format),
      types_(types),
      x_(expressions),
      raw_(expressions,
           {.quote = "", .has_escapes = false, .excluded = std::string(trimmed(format.parameter.close))}) {
  schema::SchemaOptions json = options.schema;
  if (format.notation == Notation::python) json.whitespace = schema::Whitespace::spaced;
  if (format.notation == Notation::bare) json.whitespace = schema::Whitespace::compact;
  rules_ = std::make_unique<schema::JsonRules>(document_of(tools, options.text_schema), expressions, json,
                                               spelling_of(format, texts.bytes(format.quote), options.stop));
  const CallParts parts = call_parts(format, options.tokens);
  std::string* side = &open_;
  for (const CallPart& part : parts.parameter) {
    if (part.kind == CallPart::Kind::key) side = &key_close_;
    if (part.kind == CallPart::Kind::type) side = &value_open_;
    if (part.kind == CallPart::Kind::value) side = &close_;
    *side += texts.bytes(part);
  }
  for (const CallPart& part : parts.parameter_separator) separator_ += texts.bytes(part);
  for (std::size_t i = 0; i < tools.size(); ++i) {
    const SchemaId id = schema_of(tools[i].name);
    const auto need = rules_->need({{id}, {find("/types/object")}});
    MICA_CHECK(need, usage, "schema: no object meets ", rules_->document().place(id),
               ", the parameters of a tool: some of its keywords contradict each other");
    needs_.push_back(*need);
    MICA_CHECK(options.stop.empty() || tools[i].name.find(options.stop) == std::string::npos, unsupported,
               "tools: the name '", escaped(tools[i].name, 60), "' contains '", escaped(options.stop, 40),
               "', at which answers end");
    check_names(types[i]);
  }
}

/// A schema with an identifier, so that "#/..." in it means a part of itself.
[[nodiscard]] inline Json with_id(Json schema, const std::string& id) {
  const bool has_id = schema.is_object() && schema.contains("$id") && schema["$id"].is_string();
  if (schema.is_object() &&
      (!has_id || schema::split_uri(schema["$id"].get_ref<const std::string&>()).before.empty()))
    schema["$id"] = id;
  return schema;
}

/// One document with all schemas. text: that of the text, or empty.
inline std::string CallArguments::document_of(const std::vector<Tool>& tools, const std::string& text) {
  Json schemas = Json::object(), types = Json::object();
  for (std::size_t i = 0; i < tools.size(); ++i)
    schemas[tools[i].name] = with_id(tools[i].parameters, "tool:" + std::to_string(i));
  for (const char* const type : {"null", "boolean", "number", "string", "array", "object"})
    types[type] = {{"type", type}};
  types["true"] = {{"const", true}};
  types["false"] = {{"const", false}};
  Json out = {{"$defs", std::move(schemas)}, {"types", std::move(types)}};
  if (!text.empty()) out["text"] = with_id(io::parse_json<Json>(text, "schema", ErrorCode::usage), "text:");
  return out.dump();
}

inline ExprId CallArguments::text() {
  const SchemaId id = find("/text");
  if (format_.notation == Notation::python || format_.notation == Notation::bare)
    refuse("text", id, "JSON beside tools");
  return rules_->spaced(rules_->texts(id));
}

inline void CallArguments::check_names(const ToolTypes& tool) {
  const SampleCall sample(format_);
  MICA_CHECK(sample.is_read(tool), unsupported, "tools: the name '", escaped(tool.name, 60),
             "' cannot be read in the calls of ", format_.family, "; use letters, digits, _ and -");
  if (format_.notation == Notation::json) return;
  for (const schema::Shape& shape : rules_->shapes().of(needs_.back())) {
    if (!shape.object) continue;
    for (const schema::NamedMember& member : shape.object->named) {
      if (member.name.empty() || !sample.is_read(tool, member.name))
        refuse("properties", shape.object->at, join("the name '", escaped(member.name, 60), "'"));
    }
  }
}

inline ExprId CallArguments::of(std::size_t tool) {
  if (format_.notation == Notation::json || format_.notation == Notation::bare)
    return rules_->texts_of(needs_[tool]);
  std::vector<ExprId> parts;
  for (const schema::Shape& shape : rules_->shapes().of(needs_[tool])) {
    if (shape.object) parts.push_back(parameters(*shape.object, types_[tool]));
    if (!shape.values.empty()) refuse("enum", schema_of(types_[tool].name), "an object that is given");
  }
  return x_.alt(std::move(parts));
}

/// The parameters of an object, in the order of its schema.
inline ExprId CallArguments::parameters(const schema::ObjectShape& shape, const ToolTypes& tool) {
  check_counts(shape);
  const ExprId separator = x_.literal(separator_), other = others(shape, tool);
  // What follows when some were written, and when none was.
  ExprId after = x_.repeat(x_.cat(separator, other), 0), first = x_.optional(x_.cat(other, after));
  for (std::size_t i = shape.named.size(); i-- > 0;) {
    const auto& [name, need, required] = shape.named[i];
    const ExprId written = x_.cat(named(name, need, tool, shape), after), next = x_.cat(separator, written);
    after = required ? next : x_.alt(next, after);
    first = required ? written : x_.alt(written, first);
  }
  return first;
}

inline void CallArguments::check_counts(const schema::ObjectShape& shape) {
  const auto required = static_cast<std::uint64_t>(std::count_if(
      shape.named.begin(), shape.named.end(), [](const auto& member) { return member.required; }));
  if (shape.obligations != 0) refuse("not", shape.at, "an object that has some member");
  if (shape.count.min > required) refuse("minProperties", shape.at, "a number of members");
  if (shape.count.max != schema::no_max && (!shape.others.empty() || shape.named.size() > shape.count.max))
    refuse("maxProperties", shape.at, "a number of members");
}

inline ExprId CallArguments::named(const std::string& name, NeedId need, const ToolTypes& tool,
                                   const schema::ObjectShape& shape) {
  std::vector<constraint::Branch> branches;
  for (const Value& value : values(need, name, tool))
    branches.push_back(
        {open_ + name + key_close_ + value.type + value_open_, x_.cat(value.text, x_.literal(close_))});
  if (branches.empty())
    refuse("properties", shape.at, join("'", escaped(name, 60), "', which the parser reads as a string,"));
  return x_.table(std::move(branches));
}

/// Any one parameter that keywords do not name.
inline ExprId CallArguments::others(const schema::ObjectShape& shape, const ToolTypes& tool) {
  std::vector<ExprId> parts;
  for (const schema::OtherMembers& other : shape.others) {
    const ExprId names = x_.both(other.names, x_.repeat(x_.set(name_bytes()), 1));
    if (!x_.accepts_some(names)) continue;
    const std::vector<Value> ways = values(other.need, "", tool);
    if (ways.empty())
      refuse("additionalProperties", shape.at, "a member whose type is not known by its name");
    for (const Value& value : ways)
      parts.push_back(x_.cat({x_.literal(open_), names, x_.literal(key_close_ + value.type + value_open_),
                              value.text, x_.literal(close_)}));
  }
  return x_.alt(std::move(parts));
}

/// The ways to write a value that meets a need. In a call without types, the parser knows by the schema alone
/// whether the value is a string.
inline std::vector<CallArguments::Value> CallArguments::values(NeedId need, const std::string& name,
                                                               const ToolTypes& tool) {
  if (format_.notation == Notation::python) return {{"", rules_->texts_of(need)}};
  const ParameterMarks& marks = format_.parameter;
  std::vector<Value> out;
  const auto add = [&](const std::string& type, std::optional<NeedId> of) {
    if (of) out.push_back({type, rules_->texts_of(*of)});
  };
  const bool is_typed = !marks.type_open.empty();
  if (is_typed || tool.is_string(name)) {
    const ExprId texts = raw_strings(need);
    if (x_.accepts_some(texts)) out.push_back({marks.string_type, texts});
  }
  if (is_typed && !marks.other_type.empty())
    add(marks.other_type, both(need, {find("/types/string"), false}));
  if (is_typed && marks.other_type.empty()) {
    for (const std::string type : {"null", "boolean", "number", "array", "object"})
      add(type, both(need, {find("/types/" + type)}));
  }
  if (is_typed || tool.is_string(name)) return out;
  add("", need);
  // Templates write values that are neither lists nor objects as JSON or as Python does.
  for (const auto& [type, text] : {std::pair("true", "True"), {"false", "False"}, {"null", "None"}}) {
    if (both(need, {find("/types/" + std::string(type))})) out.push_back({"", x_.literal(text)});
  }
  return out;
}

/// The strings of a need, as they are.
inline ExprId CallArguments::raw_strings(NeedId need) {
  std::vector<ExprId> parts;
  for (const schema::Case& at : rules_->shapes().cases().cases(need)) {
    if (!at.values && (at.types & schema::string_type) != 0) parts.push_back(raw_.string(at.string));
    for (const Json* const value : at.values.value_or(std::vector<const Json*>())) {
      if (value->is_string()) parts.push_back(x_.literal(raw_.texts_of(*value)[0]));
    }
  }
  return x_.alt(std::move(parts));
}

}  // namespace mica::calls::detail
