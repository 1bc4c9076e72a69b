// SPDX-License-Identifier: Apache-2.0
//
// From the cases of a need to shapes: what an object or an array of a case consists of, with the needs of its
// members and items by number. A need, a member or an item that no value can meet is found here and left out,
// so that a text never comes to a point from which it cannot be finished.
#pragma once

#include "mica_tools/schema/cases.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::schema {

/// A member that keywords name.
struct NamedMember {
  std::string name;
  NeedId need;
  bool required;
};
/// Members by an expression of their names, as they stand between quotes.
struct OtherMembers {
  ExprId names;
  NeedId need;
};
/// Members that meet some of the obligations of an object.
struct ObligedMembers {
  OtherMembers members;
  std::uint32_t meets;  // one bit for each obligation
};
/// An object.
struct ObjectShape {
  std::vector<NamedMember> named;    // in the order of the schema
  std::vector<OtherMembers> others;  // names that are not among them
  std::vector<ObligedMembers> obliged;
  std::uint32_t obligations = 0;  // that must be met, as bits
  Counts count;
  SchemaId at = 0;  // one of its schemas, for errors

  /// The smallest number of members that meet all obligations but those of `met`; nothing where they cannot.
  [[nodiscard]] std::optional<std::uint64_t> members_to_meet(std::uint32_t met) const {
    std::vector<std::uint32_t> reached = {met & obligations};
    for (std::uint64_t n = 0; n <= 32; ++n) {
      if (std::find(reached.begin(), reached.end(), obligations) != reached.end()) return n;
      std::vector<std::uint32_t> next;
      for (const std::uint32_t from : reached) {
        for (const ObligedMembers& each : obliged) {
          const std::uint32_t to = from | each.meets;
          if (to != from && std::find(next.begin(), next.end(), to) == next.end()) next.push_back(to);
        }
      }
      if (next.empty()) return std::nullopt;
      reached = std::move(next);
    }
    return std::nullopt;
  }
};

/// Items that meet a literal, counted.
struct CountedItems {
  Literal value;
  Counts count;
  std::uint64_t from;
};
/// An array.
struct ArrayShape {
  std::vector<Literals> first;  // needs of the first items
  Literals others;              // of all others
  std::vector<CountedItems> counted;
  Counts count;
  bool unique = false;
  SchemaId unique_at = 0;
};

/// The values of one case, or of several that are not arrays or objects.
struct Shape {
  ExprId scalar = ExprId::none;  // as text
  std::optional<ObjectShape> object;
  std::optional<ArrayShape> array;
  std::vector<const Json*> values;  // arrays and objects that are given
};

/// Shapes of needs. One thread at a time.
class Shapes {
 public:
  static constexpr std::size_t max_patterns = 60;    // of names in one object
  static constexpr std::size_t max_classes = 300;    // combinations of them that names have
  static constexpr std::size_t max_obligations = 5;  // of one object
  static constexpr int max_depth = 1000;             // of needs that need each other

  Shapes(Cases& cases, Strings& strings, Expressions& expressions)
      : cases_(cases), strings_(strings), numbers_(expressions), x_(expressions) {}

  /// The shapes that have values. Raises what Cases::cases() raises.
  [[nodiscard]] const std::vector<Shape>& of(NeedId need);
  /// Whether any value meets the need.
  [[nodiscard]] bool lives(NeedId need) { return state(need, 0) == Life::lives; }
  [[nodiscard]] Cases& cases() noexcept { return cases_; }
  /// Strings that meet the literals, between quotes.
  [[nodiscard]] ExprId strings(const Literals& literals);
  /// All values of a need, if they are listed: constants, booleans, null.
  [[nodiscard]] std::optional<std::vector<std::string>> listed(NeedId need);

 private:
  enum class Life : std::uint8_t { unknown, open, lives, dead };

  [[nodiscard]] const std::vector<Shape>& raw(NeedId need);
  [[nodiscard]] Life state(NeedId need, int depth);
  [[nodiscard]] bool lives(const Shape& shape, int depth);
  [[nodiscard]] bool object_lives(const ObjectShape& object, int depth);
  [[nodiscard]] bool array_lives(const ArrayShape& array, int depth);
  [[nodiscard]] Shape shape_of(const Case& at);
  [[nodiscard]] ExprId scalar_of(const Case& at);
  [[nodiscard]] std::optional<ObjectShape> object_of(const ObjectNeed& need);
  [[nodiscard]] static bool is_closed(const ObjectNeed& need);
  void add_others(const ObjectNeed& need, const std::vector<std::string>& names, ObjectShape& out);
  /// Names that match certain patterns of an object, as bits, and no others of them.
  struct NameClass {
    ExprId names;
    std::uint64_t found;

    /// Whether they match one of the object's patterns.
    [[nodiscard]] bool matches(const std::vector<std::string>& patterns, const std::string& pattern) const {
      return (found >> (std::find(patterns.begin(), patterns.end(), pattern) - patterns.begin()) & 1) != 0;
    }
  };
  void add_class(const ObjectNeed& need, const std::vector<std::string>& patterns, const NameClass& of,
                 ObjectShape& out);
  [[nodiscard]] ExprId obliged_names(const Obligation& obligation, const std::vector<std::string>& patterns,
                                     const NameClass& of, ExprId names, Literals& value);
  [[nodiscard]] std::vector<std::string> patterns_of(const ObjectNeed& need) const;
  [[nodiscard]] std::optional<ArrayShape> array_of(const ArrayNeed& need);
  [[nodiscard]] Literals item_of(const ArrayNeed& need, std::uint64_t i);
  void prune(Shape& shape);

  Cases& cases_;
  Strings& strings_;
  Numbers numbers_;
  Expressions& x_;
  std::vector<std::unique_ptr<std::vector<Shape>>> shapes_;  // by need
  std::vector<Life> life_;
  std::vector<bool> pruned_;
  bool assumed_ = false;  // whether an answer depends on a need that is open
};

inline const std::vector<Shape>& Shapes::raw(NeedId need) {
  if (shapes_.size() <= need) shapes_.resize(cases_.size());
  if (shapes_[need] == nullptr) {
    auto made = std::make_unique<std::vector<Shape>>();
    Shape scalars;
    std::vector<ExprId> parts;
    for (const Case& at : cases_.cases(need)) {
      Shape shape = shape_of(at);
      parts.push_back(shape.scalar);
      scalars.values.insert(scalars.values.end(), shape.values.begin(), shape.values.end());
      if (shape.object || shape.array) {
        shape.scalar = ExprId::none;
        shape.values.clear();
        made->push_back(std::move(shape));
      }
    }
    scalars.scalar = x_.alt(std::move(parts));
    if (scalars.scalar != ExprId::none || !scalars.values.empty()) made->push_back(std::move(scalars));
    if (shapes_.size() <= need) shapes_.resize(cases_.size());
    shapes_[need] = std::move(made);
  }
  return *shapes_[need];
}

inline const std::vector<Shape>& Shapes::of(NeedId need) {
  static_cast<void>(raw(need));
  if (pruned_.size() <= need) pruned_.resize(cases_.size());
  if (!pruned_[need]) {
    for (Shape& shape : *shapes_[need]) prune(shape);
    pruned_[need] = true;
  }
  return *shapes_[need];
}

// Scalars

inline ExprId Shapes::scalar_of(const Case& at) {
  std::vector<ExprId> parts;
  const Spelling& spelling = strings_.spelling();
  if ((at.types & null_type) != 0) parts.push_back(x_.literal(spelling.null));
  if ((at.types & true_type) != 0) parts.push_back(x_.literal(spelling.yes));
  if ((at.types & false_type) != 0) parts.push_back(x_.literal(spelling.no));
  if ((at.types & number_types) != 0) {
    NumberNeed need = at.number;
    need.integers = (at.types & integer_type) != 0;
    need.fractions = (at.types & fraction_type) != 0;
    const ExprId number = numbers_.number(need);
    if (x_.accepts_some(number)) parts.push_back(number);
  }
  if ((at.types & string_type) != 0) {
    if (x_.accepts_some(strings_.string(at.string))) parts.push_back(strings_.value(at.string));
  }
  return x_.alt(std::move(parts));
}

inline Shape Shapes::shape_of(const Case& at) {
  Shape out;
  if (at.values) {
    std::vector<constraint::Branch> texts;
    for (const Json* value : *at.values) {
      if (value->is_structured()) {
        out.values.push_back(value);
      } else {
        for (std::string& text : strings_.texts_of(*value)) texts.push_back({std::move(text)});
      }
    }
    out.scalar = x_.table(std::move(texts));
    return out;
  }
  out.scalar = scalar_of(at);
  if ((at.types & object_type) != 0) out.object = object_of(at.object);
  if ((at.types & array_type) != 0) out.array = array_of(at.array);
  return out;
}

inline ExprId Shapes::strings(const Literals& literals) {
  const auto need = cases_.intern(literals);
  if (!need) return ExprId::none;
  if (cases_.literals(*need).empty()) return strings_.any();
  std::vector<ExprId> parts;
  for (Case& at : cases_.cases(*need)) {
    if ((at.types & string_type) == 0) continue;
    if (!at.values) {
      if (at.string.is_free()) at.string.patterns.push_back({"", true});  // a name has one spelling
      parts.push_back(strings_.string(at.string));
      continue;
    }
    for (const Json* value : *at.values) {
      if (value->is_string())
        parts.push_back(x_.literal(strings_.escaped(value->get_ref<const std::string&>())));
    }
  }
  return x_.alt(std::move(parts));
}

// Objects

inline std::optional<ObjectShape> Shapes::object_of(const ObjectNeed& need) {
  ObjectShape out;
  out.count = need.count;
  if (!need.groups.empty()) out.at = need.groups[0].schema;
  if (need.count.empty()) return std::nullopt;
  const std::vector<std::string> names = cases_.names(need);
  std::map<std::string, bool> required;
  for (const std::string& name : need.required) required.emplace(name, true);
  for (const std::string& name : names) {
    const bool needed = required.contains(name);
    const auto literals = cases_.member(need, name);
    const auto member = literals ? cases_.intern(*literals) : std::nullopt;
    if (!member && needed) return std::nullopt;
    if (member) out.named.push_back({name, *member, needed});
  }
  add_others(need, names, out);
  return out;
}

inline std::vector<std::string> Shapes::patterns_of(const ObjectNeed& need) const {
  std::vector<std::string> out;
  const auto add = [&](const Json* patterns) {
    if (patterns == nullptr) return;
    for (auto at = patterns->begin(); at != patterns->end(); ++at) {
      if (!has(out, at.key())) out.push_back(at.key());
    }
  };
  for (const MemberGroup& group : need.groups) add(group.patterns);
  for (const Obligation& each : need.obligations) {
    add(each.patterns);
    if (!each.pattern.empty() && !has(out, each.pattern)) out.push_back(each.pattern);
  }
  return out;
}

/// Classes of names that no keyword lists, by the patterns that they match.
inline void Shapes::add_others(const ObjectNeed& need, const std::vector<std::string>& names,
                               ObjectShape& out) {
  if (need.obligations.size() > max_obligations)
    refuse("not", cases_.document().place(need.obligations[0].value.schema),
           join("more than ", max_obligations, " members must break a schema"));
  out.obligations = (1U << need.obligations.size()) - 1;
  const std::vector<std::string> patterns = patterns_of(need);
  if (patterns.size() > max_patterns)
    refuse("patternProperties", cases_.document().place(need.groups.empty() ? 0 : need.groups[0].schema),
           join("more than ", max_patterns, " patterns apply to one object"));
  ExprId unnamed = strings(need.names);
  std::vector<constraint::Branch> listed;
  for (const std::string& name : names) listed.push_back({strings_.escaped(name)});
  if (!listed.empty() || strings_.spelling().has_bare_names)
    unnamed = x_.both({unnamed, strings_.any_name(), x_.complement(x_.table(std::move(listed)))});
  // Each pattern in turn is found or not; a combination that no name has is left at once.
  std::vector<NameClass> classes = {{unnamed, 0}};
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const ExprId pattern = strings_.pattern(patterns[i]);
    std::vector<NameClass> next;
    for (const NameClass& each : classes) {
      for (const bool found : {false, true}) {
        const ExprId names_of = x_.both(each.names, found ? pattern : x_.complement(pattern));
        if (x_.accepts_some(names_of)) next.push_back({names_of, each.found | std::uint64_t{found} << i});
      }
    }
    classes = std::move(next);
    MICA_CHECK(classes.size() <= max_classes, limit, "schema: patterns of names have more than ", max_classes,
               " combinations");
  }
  for (const NameClass& each : classes) {
    if (x_.accepts_some(each.names)) add_class(need, patterns, each, out);
  }
}

/// Whether an object lists members, and no keyword is about others: see SchemaOptions::unlisted_members.
inline bool Shapes::is_closed(const ObjectNeed& need) {
  const auto& groups = need.groups;
  const bool lists = std::any_of(groups.begin(), groups.end(),
                                 [](const MemberGroup& each) { return each.properties != nullptr; });
  const bool is_open = std::any_of(groups.begin(), groups.end(), [](const MemberGroup& each) {
    return each.others.has_value() || each.patterns != nullptr;
  });
  return lists && !is_open && need.unevaluated.empty() && need.names.empty() && need.obligations.empty();
}

inline void Shapes::add_class(const ObjectNeed& need, const std::vector<std::string>& patterns,
                              const NameClass& of, ObjectShape& out) {
  if (!cases_.options().unlisted_members && is_closed(need) && need.count.min <= out.named.size()) return;
  const auto member = cases_.intern(cases_.member(
      need, nullptr, [&](const std::string& pattern) { return of.matches(patterns, pattern); }));
  if (!member) return;
  out.others.push_back({of.names, *member});
  for (std::uint32_t met = 1; met < 1U << need.obligations.size(); ++met) {
    ExprId names = of.names;
    Literals value = cases_.literals(*member);
    for (std::size_t i = 0; i < need.obligations.size() && names != ExprId::none; ++i) {
      if ((met >> i & 1) != 0) names = obliged_names(need.obligations[i], patterns, of, names, value);
    }
    const auto obliged = names == ExprId::none ? std::nullopt : cases_.intern(std::move(value));
    if (obliged && x_.accepts_some(names)) out.obliged.push_back({{names, *obliged}, met});
  }
}

/// The names of a class with which a member can meet an obligation; adds what its value must meet then.
inline ExprId Shapes::obliged_names(const Obligation& obligation, const std::vector<std::string>& patterns,
                                    const NameClass& of, ExprId names, Literals& value) {
  if (!obligation.pattern.empty() && !of.matches(patterns, obligation.pattern)) return ExprId::none;
  if (obligation.patterns != nullptr) {
    for (auto at = obligation.patterns->begin(); at != obligation.patterns->end(); ++at) {
      if (of.matches(patterns, at.key())) return ExprId::none;
    }
  }
  std::vector<constraint::Branch> listed;
  if (obligation.names != nullptr) {
    for (auto at = obligation.names->begin(); at != obligation.names->end(); ++at)
      listed.push_back({strings_.escaped(at.key())});
  }
  if (!listed.empty()) names = x_.both(names, x_.complement(x_.table(std::move(listed))));
  if (obligation.is_name) return x_.both(names, strings({obligation.value}));
  value.push_back(obligation.value);
  return names;
}

// Arrays

inline Literals Shapes::item_of(const ArrayNeed& need, std::uint64_t i) {
  Literals out;
  std::uint32_t evaluated = 0;
  for (const ItemGroup& group : need.groups) {
    const bool first = group.first != nullptr && i < group.first->size();
    if (first) out.push_back({cases_.child(group.schema, (*group.first)[i], "prefixItems")});
    if (!first && group.others) out.push_back(*group.others);
    if (first || group.others) evaluated |= group.scopes;
  }
  add_unevaluated(need.unevaluated, evaluated, out);
  for (const auto& [place, literal] : need.items) {
    if (place == i) out.push_back(literal);
  }
  return out;
}

inline std::optional<ArrayShape> Shapes::array_of(const ArrayNeed& need) {
  ArrayShape out;
  out.count = need.count;
  if (!need.unevaluated.empty() && !need.contained.empty())
    refuse("unevaluatedItems", cases_.document().place(need.unevaluated[0].value.schema),
           "beside 'contains'");
  std::uint64_t first = 0;
  for (const ItemGroup& group : need.groups)
    first = std::max<std::uint64_t>(first, group.first == nullptr ? 0 : group.first->size());
  for (const auto& [place, literal] : need.items) first = std::max(first, place + 1);
  for (std::uint64_t i = 0; i < first; ++i) out.first.push_back(item_of(need, i));
  out.others = item_of(need, first);
  for (const Contained& each : need.contained) {
    if (each.count.empty()) return std::nullopt;
    if (each.count.min > 0 || each.count.max != no_max)
      out.counted.push_back({each.value, each.count, each.from});
  }
  out.unique = need.unique && out.count.max > 1;
  out.unique_at = need.unique_at;
  if (out.count.empty()) return std::nullopt;
  return out;
}

// Life

/// Whether a value meets the need; a need that depends on itself alone has none.
inline Shapes::Life Shapes::state(NeedId need, int depth) {
  if (life_.size() <= need) life_.resize(cases_.size(), Life::unknown);
  if (life_[need] == Life::open) {
    assumed_ = true;
    return Life::dead;
  }
  if (life_[need] != Life::unknown) return life_[need];
  MICA_CHECK(depth < max_depth, limit, "schema: at ",
             cases_.document().place(cases_.literals(need)[0].schema), ": required values nest deeper than ",
             max_depth);
  life_[need] = Life::open;
  const bool assumed_before = std::exchange(assumed_, false);
  bool found = false;
  for (std::size_t i = 0; i < raw(need).size() && !found; ++i) found = lives((*shapes_[need])[i], depth + 1);
  // A "no" that rests on a need which is still open may change; at the outermost need it does not.
  life_[need] = found ? Life::lives : assumed_ && depth > 0 ? Life::unknown : Life::dead;
  assumed_ = found ? assumed_before : assumed_before || (assumed_ && depth > 0);
  return found ? Life::lives : Life::dead;
}

inline bool Shapes::lives(const Shape& shape, int depth) {
  if (shape.scalar != ExprId::none || !shape.values.empty()) return true;
  if (shape.object && object_lives(*shape.object, depth)) return true;
  return shape.array && array_lives(*shape.array, depth);
}

inline bool Shapes::object_lives(const ObjectShape& object, int depth) {
  std::uint64_t required = 0, possible = 0;
  for (const NamedMember& member : object.named) {
    required += member.required;
    if (member.required && state(member.need, depth) != Life::lives) return false;
  }
  if (object.obligations != 0) {
    ObjectShape living = object;
    std::erase_if(living.obliged,
                  [&](const ObligedMembers& each) { return state(each.members.need, depth) != Life::lives; });
    const auto members = living.members_to_meet(0);
    if (!members) return false;
    required += *members;
  }
  if (required > object.count.max) return false;
  if (object.count.min <= required) return true;
  for (const OtherMembers& other : object.others) {
    if (state(other.need, depth) == Life::lives) return true;
  }
  for (const NamedMember& member : object.named) possible += state(member.need, depth) == Life::lives;
  return possible >= object.count.min;
}

inline bool Shapes::array_lives(const ArrayShape& array, int depth) {
  const auto need_of = [&](std::uint64_t i, const Literal* more = nullptr) {
    Literals need = i < array.first.size() ? array.first[i] : array.others;
    if (more != nullptr) need.push_back(*more);
    return cases_.intern(std::move(need));
  };
  const auto item_lives = [&](std::uint64_t i, const Literal* more = nullptr) {
    const auto need = need_of(i, more);
    return need && state(*need, depth) == Life::lives;
  };
  std::uint64_t needed = array.count.min;
  for (const CountedItems& each : array.counted)
    needed = std::max(needed, each.count.min == 0 ? 0 : each.from + each.count.min);
  if (needed > array.count.max) return false;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(needed, array.first.size() + 1); ++i) {
    if (!item_lives(i)) return false;
  }
  for (const CountedItems& each : array.counted) {
    std::uint64_t possible = 0;  // first items that can be counted
    for (std::uint64_t i = each.from; i < array.first.size(); ++i) possible += item_lives(i, &each.value);
    if (possible < each.count.min && !item_lives(array.first.size(), &each.value)) return false;
  }
  if (!array.unique || !array.first.empty()) return true;
  const auto others = need_of(0);
  const auto values = others ? listed(*others) : std::nullopt;
  return !values || needed <= values->size();
}

/// Leaves out what has no values.
inline void Shapes::prune(Shape& shape) {
  if (shape.object && !object_lives(*shape.object, 0)) shape.object.reset();
  if (shape.array && !array_lives(*shape.array, 0)) shape.array.reset();
  if (shape.object) {
    const auto required = std::count_if(shape.object->named.begin(), shape.object->named.end(),
                                        [](const NamedMember& member) { return member.required; });
    // JSON can have a name twice, and counts it once. Names that are listed are written once.
    if (shape.object->count.min > std::max<std::uint64_t>(1, static_cast<std::uint64_t>(required)) &&
        !shape.object->others.empty())
      refuse("minProperties", cases_.document().place(shape.object->at),
             "of 2 or more, with names that the schema does not list: they could be equal");
    std::erase_if(shape.object->named, [&](const NamedMember& member) { return !lives(member.need); });
    std::erase_if(shape.object->others, [&](const OtherMembers& other) { return !lives(other.need); });
    std::erase_if(shape.object->obliged,
                  [&](const ObligedMembers& each) { return !lives(each.members.need); });
  }
  if (!shape.array) return;
  ArrayShape& array = *shape.array;
  for (std::uint64_t i = 0; i <= array.first.size(); ++i) {
    const auto need = cases_.intern(i < array.first.size() ? array.first[i] : array.others);
    if (need && lives(*need)) continue;
    array.count.max = std::min(array.count.max, i);
    break;
  }
}

inline std::optional<std::vector<std::string>> Shapes::listed(NeedId need) {
  std::vector<std::string> out;
  for (const Case& at : cases_.cases(need)) {
    if (!at.values) {
      if ((at.types & ~(null_type | boolean_types)) != 0) return std::nullopt;
      const Spelling& spelling = strings_.spelling();
      if ((at.types & null_type) != 0) out.push_back(spelling.null);
      if ((at.types & true_type) != 0) out.push_back(spelling.yes);
      if ((at.types & false_type) != 0) out.push_back(spelling.no);
      continue;
    }
    for (const Json* value : *at.values) {
      if (value->is_structured()) return std::nullopt;
      out.push_back(strings_.texts_of(*value)[0]);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace mica::schema
