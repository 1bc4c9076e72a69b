// SPDX-License-Identifier: Apache-2.0
//
// The rules of JSON texts of a schema. A rule is a value that meets a need, or what may follow a member of an
// object, or an item of an array; the latter two have parameters: which members are there already, how many
// items. A rule is made when a text comes to it.
//
//   object 5 after {a}    "}"  |  "," "b": value 7, then object 5 after {a, b}  |  ...
#pragma once

#include "mica/constraint/rules.hpp"
#include "mica_tools/schema/shapes.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::schema {

using constraint::RuleId;

/// Owns all that a schema is compiled to, but its expressions.
class JsonRules final : public constraint::Rules {
 public:
  /// spelling: of values, where they are not written as JSON. Raises as Document() and Keywords do, for each
  /// schema that a value may reach.
  JsonRules(std::string_view text, Expressions& expressions, const SchemaOptions& options,
            Spelling spelling = {})
      : options_(options),
        document_(text, options_),
        strings_(expressions, std::move(spelling)),
        cases_(document_, strings_, options_),
        shapes_(cases_, strings_, expressions),
        x_(expressions) {
    make_spaces();
  }

  /// The texts of a schema of the document. Expands all needs that a value may reach, so that what is not
  /// supported is refused now. Raises ErrorCode::usage where no value meets the schema.
  [[nodiscard]] ExprId texts(SchemaId schema);
  /// The number of a set of literals. Expands all needs that a value may reach, as texts() does. Nothing
  /// where no value meets them.
  [[nodiscard]] std::optional<NeedId> need(Literals literals);
  /// The texts of a need that need() gave, or that is a member of one of its shapes.
  [[nodiscard]] ExprId texts_of(NeedId need) { return call(need); }
  [[nodiscard]] Shapes& shapes() noexcept { return shapes_; }

  // Required by Rules
  [[nodiscard]] inline ExprId body(RuleId rule, Expressions& expressions) override;
  [[nodiscard]] std::size_t bytes() const noexcept override {
    return rules_.size() * 96 + cases_.size() * 256 + objects_.size() * 512 + arrays_.size() * 256;
  }

  /// An expression between the white space that the options allow.
  [[nodiscard]] ExprId spaced(ExprId e) { return x_.cat({space_, e, space_}); }
  [[nodiscard]] Document& document() noexcept { return document_; }

 private:
  enum class Kind : std::uint32_t { value, object, array };
  static constexpr std::size_t max_counted = 6;       // `contains` of one array: their subsets are tried
  static constexpr std::uint32_t first_flag = 0x100;  // beside the kind: no comma before the next one
  /// The numbers of a rule: its kind, then
  ///   value   need
  ///   object  shape; members so far, at most the largest that counts; obligations met, as bits; then the place
  ///           of the next member, or one bit for each member that is there
  ///   array   shape; items so far, at most the largest that counts; the counts of counted items; then places
  ///           of values that were used
  using Numbers32 = std::vector<std::uint32_t>;
  struct Alternative {
    NeedId need;
    Numbers32 after;  // the rule
  };

  [[nodiscard]] ExprId call(Numbers32 numbers);
  [[nodiscard]] ExprId call(NeedId need) { return call({static_cast<std::uint32_t>(Kind::value), need}); }
  void make_spaces();
  void reach(NeedId need);
  template <class F>
  void for_each_item_need(const ArrayShape& shape, F&& f);
  [[nodiscard]] ExprId value_of(const Json& value);
  [[nodiscard]] ExprId value_body(NeedId need);

  // Objects
  [[nodiscard]] ExprId object_start(std::size_t shape);
  [[nodiscard]] ExprId object_body(const Numbers32& state);
  [[nodiscard]] bool object_may_end(const ObjectShape& shape, const Numbers32& state) const;
  [[nodiscard]] ExprId members(const ObjectShape& shape, const Numbers32& state);
  [[nodiscard]] bool in_order() const noexcept { return options_.order == MemberOrder::schema; }
  [[nodiscard]] bool is_there(const Numbers32& state, std::size_t member) const noexcept {
    return in_order() ? member < state[4] : (state[4 + member / 32] >> (member % 32) & 1) != 0;
  }
  [[nodiscard]] Numbers32 with_member(const ObjectShape& shape, Numbers32 state, std::size_t member) const;
  [[nodiscard]] Numbers32 counted(const ObjectShape& shape, Numbers32 state) const;
  struct Left {
    std::uint64_t required = 0, possible = 0;  // members that are not there
  };
  [[nodiscard]] Left left(const ObjectShape& shape, const Numbers32& state) const;

  // Arrays
  [[nodiscard]] ExprId array_start(std::size_t shape);
  [[nodiscard]] ExprId array_body(const Numbers32& state);
  [[nodiscard]] bool array_may_end(const ArrayShape& shape, const Numbers32& state) const;
  [[nodiscard]] ExprId items(const Numbers32& state);
  [[nodiscard]] ExprId unique_items(const Numbers32& state);
  [[nodiscard]] std::vector<Alternative> next_items(const Numbers32& state);
  [[nodiscard]] bool can_end(const Numbers32& state);
  [[nodiscard]] std::uint32_t places(const ArrayShape& shape) const;
  void check_array(std::size_t shape);

  SchemaOptions options_;
  Document document_;
  Strings strings_;
  Cases cases_;
  Shapes shapes_;
  Expressions& x_;
  ExprId space_ = ExprId::empty, after_comma_ = ExprId::empty, after_colon_ = ExprId::empty;
  std::vector<Numbers32> rules_;
  std::map<Numbers32, RuleId> rule_ids_;
  std::vector<const ObjectShape*> objects_;           // of shapes_
  std::deque<ArrayShape> arrays_;                     // stay where they are
  std::vector<std::vector<std::string>> listed_;      // of each array: values of unique items
  std::map<NeedId, std::vector<ExprId>> structured_;  // of each need: texts of its arrays and objects
  std::map<NeedId, bool> reached_;
  std::map<Numbers32, bool> can_end_;
};

inline ExprId JsonRules::call(Numbers32 numbers) {
  const auto [at, added] = rule_ids_.emplace(numbers, static_cast<RuleId>(rules_.size()));
  if (added) rules_.push_back(std::move(numbers));
  return x_.call(at->second);
}

inline void JsonRules::make_spaces() {
  if (options_.whitespace == Whitespace::spaced) after_comma_ = after_colon_ = x_.literal(" ");
  if (options_.whitespace != Whitespace::any) return;
  ByteSet spaces(' ', ' ');
  for (const char c : {'\t', '\n', '\r'}) spaces.insert(static_cast<std::uint8_t>(c));
  space_ = after_comma_ = after_colon_ = x_.repeat(x_.set(spaces), 0);
}

inline ExprId JsonRules::texts(SchemaId schema) {
  const auto found = need({{schema}});
  MICA_CHECK(found, usage, "schema: no value meets ", document_.place(schema),
             ": some of its keywords contradict each other, or it requires itself");
  return call(*found);
}

inline std::optional<NeedId> JsonRules::need(Literals literals) {
  const auto found = cases_.intern(std::move(literals));
  if (!found || !shapes_.lives(*found)) return std::nullopt;
  reach(*found);
  return found;
}

/// Calls f(need) for all needs that an item can have: each counted literal is met, not met, or does not
/// matter.
template <class F>
void JsonRules::for_each_item_need(const ArrayShape& shape, F&& f) {
  if (shape.counted.size() > max_counted)
    refuse("contains", document_.place(shape.counted[0].value.schema),
           join("more than ", max_counted, " of them apply to one array"));
  for (std::uint64_t k = 0; k <= shape.first.size() && k < shape.count.max; ++k) {
    std::vector<Literals> all = {k < shape.first.size() ? shape.first[k] : shape.others};
    for (const CountedItems& each : shape.counted) {
      for (std::size_t i = 0, n = all.size(); i < n; ++i) {
        for (const Literal literal : {each.value, negated(each.value)}) {
          all.push_back(all[i]);
          all.back().push_back(literal);
        }
      }
    }
    for (Literals& literals : all) {
      if (const auto need = cases_.intern(std::move(literals))) f(*need);
    }
  }
}

/// Makes the bodies of all values that a value of the need can contain.
inline void JsonRules::reach(NeedId need) {
  std::vector<NeedId> open;
  if (reached_.emplace(need, true).second) open.push_back(need);
  for (std::size_t i = 0; i < open.size(); ++i) {
    for (const Shape& shape : shapes_.of(open[i])) {
      const auto add = [&](NeedId next) {
        if (reached_.emplace(next, true).second) open.push_back(next);
      };
      if (shape.object) {
        for (const NamedMember& member : shape.object->named) {
          if (!strings_.has_name(member.name))
            refuse("properties", document_.place(shape.object->at),
                   join("the name '", escaped(member.name, 60),
                        "' cannot be written in the calls of the model"));
          add(member.need);
        }
        for (const OtherMembers& other : shape.object->others) add(other.need);
        for (const ObligedMembers& each : shape.object->obliged) add(each.members.need);
      }
      if (!shape.array) continue;
      for_each_item_need(*shape.array, add);
    }
    static_cast<void>(value_body(open[i]));
  }
}

inline ExprId JsonRules::body(RuleId rule, Expressions& /*expressions*/) {
  const Numbers32 numbers = rules_[static_cast<std::size_t>(rule)];
  switch (static_cast<Kind>(numbers[0] & ~first_flag)) {
    case Kind::value:
      return value_body(numbers[1]);
    case Kind::object:
      return object_body(numbers);
    default:
      return array_body(numbers);
  }
}

/// A given value as JSON text.
inline ExprId JsonRules::value_of(const Json& value) {
  if (!value.is_structured()) return x_.literal(strings_.texts_of(value)[0]);
  const bool object = value.is_object();
  std::vector<ExprId> parts = {x_.literal(object ? "{" : "["), space_};
  for (auto at = value.begin(); at != value.end(); ++at) {
    if (at != value.begin()) parts.insert(parts.end(), {space_, x_.literal(","), after_comma_});
    if (object)
      parts.insert(parts.end(),
                   {x_.literal(strings_.names_of(at.key())[0]), space_, x_.literal(":"), after_colon_});
    parts.push_back(value_of(*at));
  }
  parts.insert(parts.end(), {space_, x_.literal(object ? "}" : "]")});
  return x_.cat(parts);
}

inline ExprId JsonRules::value_body(NeedId need) {
  const auto known = structured_.find(need);
  if (known != structured_.end()) return x_.alt(known->second);
  std::vector<ExprId> parts;
  for (const Shape& shape : shapes_.of(need)) {
    parts.push_back(shape.scalar);
    for (const Json* value : shape.values) {
      if (in_order()) {
        parts.push_back(value_of(*value));
      } else if (const auto given = cases_.intern({{document_.schema_of(*value)}})) {
        parts.push_back(call(*given));
      }
    }
    if (shape.object) {
      objects_.push_back(&*shape.object);
      parts.push_back(object_start(objects_.size() - 1));
    }
    if (shape.array) {
      arrays_.push_back(*shape.array);
      listed_.emplace_back();
      check_array(arrays_.size() - 1);
      parts.push_back(array_start(arrays_.size() - 1));
    }
  }
  std::sort(parts.begin(), parts.end());
  structured_.emplace(need, parts);
  return x_.alt(std::move(parts));
}

// Objects

inline ExprId JsonRules::object_start(std::size_t shape) {
  const ObjectShape& object = *objects_[shape];
  Numbers32 state = {static_cast<std::uint32_t>(Kind::object), static_cast<std::uint32_t>(shape), 0, 0};
  state.resize(in_order() ? 5 : 4 + std::max<std::size_t>(1, (object.named.size() + 31) / 32));
  const ExprId close = x_.literal("}");
  std::vector<ExprId> parts;
  if (object_may_end(object, state)) parts.push_back(x_.cat(space_, close));
  // The members are a rule of their own, made when the text comes to them.
  state[0] |= first_flag;  // no comma before the first member
  if (!object.named.empty() || !object.others.empty()) {
    if (object.count.max > 0) parts.push_back(x_.cat(space_, call(state)));
  }
  return x_.cat(x_.literal("{"), x_.alt(std::move(parts)));
}

inline JsonRules::Left JsonRules::left(const ObjectShape& shape, const Numbers32& state) const {
  Left out;
  for (std::size_t i = 0; i < shape.named.size(); ++i) {
    if (is_there(state, i)) continue;
    ++out.possible;
    out.required += shape.named[i].required;
  }
  out.required += shape.members_to_meet(state[3]).value_or(no_max / 2);
  if (!shape.others.empty()) out.possible = no_max;
  return out;
}

inline bool JsonRules::object_may_end(const ObjectShape& shape, const Numbers32& state) const {
  return state[2] >= shape.count.min && left(shape, state).required == 0;
}

inline JsonRules::Numbers32 JsonRules::counted(const ObjectShape& shape, Numbers32 state) const {
  const std::uint64_t most = shape.count.max != no_max ? shape.count.max : shape.count.min;
  state[0] = static_cast<std::uint32_t>(Kind::object);
  state[2] = static_cast<std::uint32_t>(std::min<std::uint64_t>(state[2] + 1, most));
  return state;
}
inline JsonRules::Numbers32 JsonRules::with_member(const ObjectShape& shape, Numbers32 state,
                                                   std::size_t member) const {
  if (in_order()) {
    state[4] = static_cast<std::uint32_t>(member + 1);
  } else {
    state[4 + member / 32] |= 1U << (member % 32);
  }
  return counted(shape, std::move(state));
}

inline ExprId JsonRules::object_body(const Numbers32& state) {
  const ObjectShape& shape = *objects_[state[1]];
  const bool first = (state[0] & first_flag) != 0;
  const ExprId next = members(shape, state);
  if (first) return next;
  std::vector<ExprId> parts;
  if (object_may_end(shape, state)) parts.push_back(x_.literal("}"));
  parts.push_back(x_.cat({x_.literal(","), after_comma_, next}));
  return x_.cat(space_, x_.alt(std::move(parts)));
}

/// One more member and all that follows; none where there can be no more.
inline ExprId JsonRules::members(const ObjectShape& shape, const Numbers32& state) {
  const std::uint64_t room = shape.count.max == no_max ? no_max : shape.count.max - state[2];
  if (room == 0) return ExprId::none;
  const auto finishes = [&](const Numbers32& after) {  // whether the object can still be complete
    const Left then = left(shape, after);
    if (room != no_max && then.required > room - 1) return false;
    return then.possible == no_max || after[2] + then.possible >= shape.count.min;
  };
  const ExprId colon = x_.cat({space_, x_.literal(":"), after_colon_});
  const bool compact = options_.whitespace != Whitespace::any;
  std::vector<constraint::Branch> branches;
  for (std::size_t i = 0; i < shape.named.size(); ++i) {
    if (is_there(state, i)) continue;
    const Numbers32 after = with_member(shape, state, i);
    if (finishes(after)) {
      const ExprId value = x_.cat(call(shape.named[i].need), call(after));
      for (std::string& text : strings_.names_of(shape.named[i].name)) {
        if (compact) text += options_.whitespace == Whitespace::spaced ? ": " : ":";
        branches.push_back({std::move(text), compact ? value : x_.cat(colon, value)});
      }
    }
    if (in_order() && shape.named[i].required) break;  // the next ones come after it
  }
  std::vector<ExprId> parts = {x_.table(std::move(branches))};
  const auto add_other = [&](const OtherMembers& other, std::uint32_t met) {
    Numbers32 after = counted(shape, state);
    after[3] |= met;
    // Others come after all named ones.
    if (in_order()) after[4] = static_cast<std::uint32_t>(shape.named.size());
    if (!finishes(after)) return;
    parts.push_back(x_.cat({strings_.quoted_names(other.names), colon, call(other.need), call(after)}));
  };
  bool named_left = false;
  for (std::size_t i = 0; i < shape.named.size(); ++i)
    named_left = named_left || (!is_there(state, i) && shape.named[i].required);
  if (!in_order() || !named_left) {
    for (const OtherMembers& other : shape.others) add_other(other, 0);
    for (const ObligedMembers& each : shape.obliged) {
      if ((each.meets & ~state[3]) != 0) add_other(each.members, each.meets);
    }
  }
  return x_.alt(std::move(parts));
}

// Arrays

/// The number of items after which all further ones are alike.
inline std::uint32_t JsonRules::places(const ArrayShape& shape) const {
  std::uint64_t out = std::max<std::uint64_t>(shape.first.size(), shape.count.min);
  if (shape.count.max != no_max) out = std::max(out, shape.count.max);
  for (const CountedItems& each : shape.counted) out = std::max(out, each.from);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(out, 0xFFFF'FFFFU));
}

inline void JsonRules::check_array(std::size_t index) {
  const ArrayShape& shape = arrays_[index];
  const auto place = [&] {
    return document_.place(shape.counted.empty() ? shape.unique_at : shape.counted[0].value.schema);
  };
  if (!shape.counted.empty()) {
    std::uint64_t states = places(shape) + 1;
    for (const CountedItems& each : shape.counted)
      states *= (each.count.max == no_max ? each.count.min : each.count.max) + 1;
    if (states > 20'000) refuse("contains", place(), "with counts of items that are too large together");
  }
  if (!shape.unique) return;
  std::vector<std::string> all;
  for (std::uint64_t i = 0; i <= shape.first.size(); ++i) {
    const auto need = cases_.intern(i < shape.first.size() ? shape.first[i] : shape.others);
    if (!need) continue;
    const auto values = shapes_.listed(*need);
    if (!values || !shape.first.empty() || values->size() > 512)
      refuse("uniqueItems", place(), "of items whose values are not listed (enum, const) in 'items'");
    all.insert(all.end(), values->begin(), values->end());
  }
  listed_[index] = all;
  ArrayShape& kept = arrays_[index];
  kept.count.max = std::min<std::uint64_t>(kept.count.max, all.size());
  if (!kept.counted.empty()) refuse("uniqueItems", place(), "beside 'contains'");
}

inline ExprId JsonRules::array_start(std::size_t index) {
  const ArrayShape& shape = arrays_[index];
  if (shape.count.empty()) return ExprId::none;
  Numbers32 state = {static_cast<std::uint32_t>(Kind::array), static_cast<std::uint32_t>(index), 0};
  state.resize(3 + shape.counted.size());
  if (shape.unique) state.resize(state.size() + (listed_[index].size() + 31) / 32);
  if (!shape.counted.empty() && !can_end(state)) return ExprId::none;
  std::vector<ExprId> parts;
  if (array_may_end(shape, state)) parts.push_back(x_.cat(space_, x_.literal("]")));
  state[0] |= first_flag;
  if (shape.count.max > 0) parts.push_back(x_.cat(space_, call(state)));
  return x_.cat(x_.literal("["), x_.alt(std::move(parts)));
}

inline bool JsonRules::array_may_end(const ArrayShape& shape, const Numbers32& state) const {
  for (std::size_t i = 0; i < shape.counted.size(); ++i) {
    if (!shape.counted[i].count.contains(state[3 + i])) return false;
  }
  return state[2] >= shape.count.min;
}

/// The needs of one more item, and the state after it.
inline std::vector<JsonRules::Alternative> JsonRules::next_items(const Numbers32& state) {
  const ArrayShape& shape = arrays_[state[1]];
  std::vector<Alternative> out;
  if (shape.count.max != no_max && state[2] >= shape.count.max) return out;
  const Literals base = state[2] < shape.first.size() ? shape.first[state[2]] : shape.others;
  for (std::size_t counts = 0; counts < std::size_t{1} << shape.counted.size(); ++counts) {
    Literals literals = base;
    Numbers32 after = state;
    after[0] = static_cast<std::uint32_t>(Kind::array);
    after[2] = std::min(state[2] + 1, places(shape));
    bool possible = true;
    for (std::size_t i = 0; i < shape.counted.size(); ++i) {
      const CountedItems& each = shape.counted[i];
      const bool counted = (counts >> i & 1) != 0;
      const bool bounded = each.count.max != no_max;
      const bool needless = state[2] < each.from || (!bounded && state[3 + i] >= each.count.min);
      if (counted && (needless || (bounded && state[3 + i] >= each.count.max))) possible = false;
      if (counted) {
        literals.push_back(each.value);
        ++after[3 + i];
      } else if (bounded && state[2] >= each.from) {
        literals.push_back(negated(each.value));
      }
    }
    const auto need = possible ? cases_.intern(std::move(literals)) : std::nullopt;
    if (need && shapes_.lives(*need)) out.push_back({*need, std::move(after)});
  }
  return out;
}

/// Whether an array of counted items can still become complete.
inline bool JsonRules::can_end(const Numbers32& from) {
  const ArrayShape& shape = arrays_[from[1]];
  Numbers32 key = from;
  key[0] = static_cast<std::uint32_t>(Kind::array);
  const auto known = can_end_.find(key);
  if (known != can_end_.end()) return known->second;
  std::vector<Numbers32> open = {key};
  std::map<Numbers32, bool> seen = {{key, true}};
  bool found = false;
  for (std::size_t i = 0; i < open.size() && !found; ++i) {
    found = array_may_end(shape, open[i]);
    if (found) break;
    for (Alternative& each : next_items(open[i])) {
      if (seen.emplace(each.after, true).second) open.push_back(std::move(each.after));
    }
  }
  can_end_.emplace(std::move(key), found);
  return found;
}

inline ExprId JsonRules::array_body(const Numbers32& state) {
  const ArrayShape& shape = arrays_[state[1]];
  const ExprId next = shape.unique ? unique_items(state) : items(state);
  if ((state[0] & first_flag) != 0) return next;
  std::vector<ExprId> parts;
  if (array_may_end(shape, state)) parts.push_back(x_.literal("]"));
  parts.push_back(x_.cat({x_.literal(","), after_comma_, next}));
  return x_.cat(space_, x_.alt(std::move(parts)));
}

inline ExprId JsonRules::items(const Numbers32& state) {
  std::vector<ExprId> parts;
  const bool counted = !arrays_[state[1]].counted.empty();
  for (const Alternative& each : next_items(state)) {
    if (counted && !can_end(each.after)) continue;
    parts.push_back(x_.cat(call(each.need), call(each.after)));
  }
  return x_.alt(std::move(parts));
}

/// One of the listed values that were not used.
inline ExprId JsonRules::unique_items(const Numbers32& state) {
  const ArrayShape& shape = arrays_[state[1]];
  const auto& values = listed_[state[1]];
  if (state[2] >= shape.count.max) return ExprId::none;
  std::vector<constraint::Branch> branches;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if ((state[3 + i / 32] >> (i % 32) & 1) != 0) continue;
    Numbers32 after = state;
    after[0] = static_cast<std::uint32_t>(Kind::array);
    after[2] = std::min(state[2] + 1, places(shape));
    after[3 + i / 32] |= 1U << (i % 32);
    branches.push_back({values[i], call(std::move(after))});
  }
  return x_.table(std::move(branches));
}

}  // namespace mica::schema
