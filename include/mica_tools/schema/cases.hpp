// SPDX-License-Identifier: Apache-2.0
//
// From a need to its cases. Literals are replaced by what they say until only keywords of values are left;
// where there are alternatives, the case is copied for each, those with fewest first, and an alternative that
// contradicts the case is dropped at once (the method is that of an analytic tableau).
#pragma once

#include "mica_tools/schema/equal.hpp"
#include "mica_tools/schema/keywords.hpp"
#include "mica_tools/schema/strings.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mica::schema {

/// Needs by number, their cases, and whether a value meets a schema. One thread at a time.
class Cases {
 public:
  Cases(Document& document, Strings& strings, const SchemaOptions& options)
      : document_(document), options_(options), keywords_(document, strings, options), strings_(strings) {
    needs_.push_back({});
    ids_.emplace(Literals(), 0);
  }

  /// The number of a set of literals; nothing where it is certain that no value meets it.
  [[nodiscard]] std::optional<NeedId> intern(Literals literals);
  [[nodiscard]] const Literals& literals(NeedId id) const noexcept { return needs_[id]; }
  [[nodiscard]] std::size_t size() const noexcept { return needs_.size(); }
  /// The ways to meet it. Raises ErrorCode::limit where there are too many, and what Keywords raises.
  [[nodiscard]] std::vector<Case> cases(NeedId id);
  /// Whether a value meets a literal.
  [[nodiscard]] bool meets(const Json& value, Literal literal, int depth = 0);
  /// The literals of a member of an object; nothing where it cannot be there.
  [[nodiscard]] std::optional<Literals> member(const ObjectNeed& object, const std::string& name);
  /// The same of a name that no keyword lists, where name is null; matches(pattern): whether it has the
  /// pattern. Without what `members` and `names` say.
  template <class Matches>
  [[nodiscard]] Literals member(const ObjectNeed& object, const std::string* name, Matches&& matches);
  /// Names that keywords of the object list, in their order.
  [[nodiscard]] std::vector<std::string> names(const ObjectNeed& object) const;
  [[nodiscard]] Document& document() noexcept { return document_; }
  [[nodiscard]] const SchemaOptions& options() const noexcept { return options_; }
  [[nodiscard]] SchemaId child(SchemaId id, const Json& json, std::string_view keyword) {
    return document_.child(id, json, keyword);
  }

 private:
  using Kind = Edit::Kind;
  /// A case that is not complete.
  struct Open {
    Case at;
    std::vector<ScopedLiteral> todo, done;
    std::vector<std::shared_ptr<const Split>> splits;
    std::uint32_t scopes = 0;  // that were given out
  };

  [[nodiscard]] bool apply(Open& open, const Edit& edit);
  [[nodiscard]] bool apply(Open& open, const Edits& edits) {
    return std::all_of(edits.begin(), edits.end(), [&](const Edit& each) { return apply(open, each); });
  }
  [[nodiscard]] bool replace(Open& open, const ScopedLiteral& literal);
  [[nodiscard]] bool settle(Open& open);
  [[nodiscard]] bool choose(Open& open, std::size_t& split, std::vector<std::size_t>& alternatives);
  [[nodiscard]] bool known_to_meet(const Json& value, Literal literal);
  [[nodiscard]] bool contradicts(const Open& open, const Edits& edits);
  [[nodiscard]] bool contradicts(const Open& open, const Edit& edit);
  [[nodiscard]] bool implies(const Open& open, const Edit& edit);
  [[nodiscard]] bool implies(const Open& open, const Split& split);
  [[nodiscard]] bool lacks_member(const Case& at);
  template <class F>
  [[nodiscard]] bool any_schema_of(const Case& at, const std::string& name, F&& f);
  [[nodiscard]] bool disjoint(SchemaId a, SchemaId b) {
    MICA_CHECK(++looks_ < max_looks, limit,
               "schema: its alternatives (anyOf, oneOf, not, if, dependencies) are "
               "combined in too many ways");
    const auto [at, added] = disjoint_.emplace(std::uint64_t{std::min(a, b)} << 32 | std::max(a, b), false);
    if (added) at->second = keywords_.disjoint(a, b);
    return at->second;
  }
  [[nodiscard]] bool restrict_values(Case& at, const std::vector<const Json*>& values);
  [[nodiscard]] bool exclude(Open& open, const Json& value);
  void finish(Open open, std::vector<Open>& todo, std::vector<Case>& out);
  [[nodiscard]] bool split_obligation(const Open& open, std::vector<Open>& todo);
  [[nodiscard]] bool meets_edit(const Json& value, const Edit& edit, int depth);
  [[nodiscard]] bool meets_object(const Json& value, const MemberGroup& group, int depth);
  [[nodiscard]] bool meets_array(const Json& value, const ItemGroup& group, int depth);
  [[nodiscard]] bool is_true(SchemaId id) const {
    const Json& json = document_.json(id);
    return json.is_boolean() ? json.get<bool>() : json.empty();
  }
  [[nodiscard]] bool is_false(SchemaId id) const {
    const Json& json = document_.json(id);
    return json.is_boolean() && !json.get<bool>();
  }

  Document& document_;
  const SchemaOptions& options_;
  Keywords keywords_;
  Strings& strings_;
  std::vector<Literals> needs_;
  std::map<Literals, NeedId> ids_;
  static constexpr std::size_t max_looks = 5'000'000;  // of disjoint(), in all cases: about half a second
  std::size_t looks_ = 0;
  std::unordered_map<SchemaId, Meaning> meanings_;                                    // for meets()
  std::unordered_map<const Json*, std::vector<std::pair<std::uint64_t, bool>>> met_;  // by literal
  std::unordered_map<std::uint64_t, bool> disjoint_;  // what was found, by both schemas
};

[[nodiscard]] inline bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Code points of UTF-8 text.
[[nodiscard]] inline std::uint64_t length_of(std::string_view text) noexcept {
  return static_cast<std::uint64_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<std::uint8_t>(c) & 0xC0) != 0x80; }));
}

inline std::optional<NeedId> Cases::intern(Literals literals) {
  std::erase_if(literals, [&](Literal l) { return l.meets ? is_true(l.schema) : is_false(l.schema); });
  std::sort(literals.begin(), literals.end());
  literals.erase(std::unique(literals.begin(), literals.end()), literals.end());
  for (std::size_t i = 0; i < literals.size(); ++i) {
    if (literals[i].meets ? is_false(literals[i].schema) : is_true(literals[i].schema)) return std::nullopt;
    if (i > 0 && literals[i].schema == literals[i - 1].schema) return std::nullopt;  // both signs
  }
  const auto [at, added] = ids_.emplace(literals, static_cast<NeedId>(needs_.size()));
  if (!added) return at->second;
  MICA_CHECK(needs_.size() < options_.max_needs, limit, "schema: values must meet more than ",
             options_.max_needs, " different sets of schemas: references and combinations are too many");
  needs_.push_back(std::move(literals));
  return at->second;
}

// One edit

inline bool Cases::restrict_values(Case& at, const std::vector<const Json*>& values) {
  std::vector<const Json*> kept;
  Types types = 0;
  for (const Json* value : values) {
    const auto same = [&](const Json* other) { return equal(*other, *value); };
    if (at.values && std::none_of(at.values->begin(), at.values->end(), same)) continue;
    kept.push_back(value);
    types |= type_of(*value);
  }
  at.values = std::move(kept);
  return (at.types &= types) != 0;
}

inline bool Cases::exclude(Open& open, const Json& value) {
  Case& at = open.at;
  const Types type = type_of(value);
  if ((type & (null_type | boolean_types)) != 0) {
    at.types &= static_cast<Types>(~type);
  } else if (type == string_type) {
    at.string.excluded.push_back(value.get<std::string>());
  } else if ((type & number_types) != 0) {
    if (const auto number = decimal_of(value)) at.number.excluded.push_back(*number);
  } else if (value.empty()) {
    Counts& count = type == array_type ? at.array.count : at.object.count;
    count.min = std::max<std::uint64_t>(count.min, 1);
  } else if ((at.types & type) != 0) {
    open.todo.push_back({{document_.schema_of(value), false}, 0});
  }
  return at.types != 0;
}

inline bool Cases::apply(Open& open, const Edit& edit) {
  Case& at = open.at;
  const auto narrow = [](Counts& counts, const Counts& by) {
    counts.min = std::max(counts.min, by.min);
    counts.max = std::min(counts.max, by.max);
  };
  switch (edit.kind) {
    case Kind::literal:
      open.todo.push_back(edit.literal);
      return true;
    case Kind::types:
      return (at.types &= edit.types) != 0;
    case Kind::require:
      if (!has(at.object.required, edit.text)) at.object.required.push_back(edit.text);
      if (has(at.object.forbidden, edit.text)) at.types &= static_cast<Types>(~object_type);
      return at.types != 0;
    case Kind::forbid:
      if (!has(at.object.forbidden, edit.text)) at.object.forbidden.push_back(edit.text);
      if (has(at.object.required, edit.text)) at.types &= static_cast<Types>(~object_type);
      return at.types != 0;
    case Kind::member:
      at.object.members.emplace_back(edit.text, edit.literal.literal);
      return true;
    case Kind::name:
      at.object.names.push_back(edit.literal.literal);
      return true;
    case Kind::obligation:
      at.object.obligations.push_back(edit.obligation);
      return true;
    case Kind::item:
      at.array.items.emplace_back(edit.number, edit.literal.literal);
      return true;
    case Kind::contained:
      at.array.contained.push_back({edit.literal.literal, edit.counts, edit.number});
      return true;
    case Kind::counts_members:
      narrow(at.object.count, edit.counts);
      return true;
    case Kind::counts_items:
      narrow(at.array.count, edit.counts);
      return true;
    case Kind::counts_characters:
      narrow(at.string.length, edit.counts);
      return true;
    case Kind::pattern:
      at.string.patterns.push_back({edit.text, edit.flag});
      return true;
    case Kind::format:
      at.string.formats.push_back({edit.text, edit.flag});
      return true;
    case Kind::at_least:
      at.number.range.at_least(edit.value, edit.flag);
      return true;
    case Kind::at_most:
      at.number.range.at_most(edit.value, edit.flag);
      return true;
    case Kind::multiple:
      (edit.flag ? at.number.multiples : at.number.not_multiples).push_back(*schema::multiple_of(edit.value));
      return true;
    case Kind::exclude:
      return exclude(open, *edit.json);
  }
  return true;
}

/// Puts the keywords of a literal in its place; false where that contradicts the case.
inline bool Cases::replace(Open& open, const ScopedLiteral& scoped) {
  const auto [id, meets] = scoped.literal;
  for (ScopedLiteral& known : open.done) {
    if (known.literal.schema != id) continue;
    if (known.literal.meets != meets) return false;
    if ((scoped.scopes & ~known.scopes) == 0) return true;
  }
  open.done.push_back(scoped);
  if (!meets) {
    Split split = keywords_.fails(id);
    if (split.empty()) return false;
    if (split.size() == 1) return apply(open, split[0]);
    open.splits.push_back(std::make_shared<const Split>(std::move(split)));
    return true;
  }
  const std::uint32_t scope = (open.scopes + 1) & 0x7FFF'FFFFU;
  Meaning meaning = keywords_.meets(id, scoped.scopes, scope);
  if (meaning.nothing) return false;
  if (meaning.unevaluated_members || meaning.unevaluated_items) open.scopes |= scope;
  if (!apply(open, meaning.edits)) return false;
  Case& at = open.at;
  if (meaning.values != nullptr) {
    std::vector<const Json*> values;
    for (const Json& value : *meaning.values) values.push_back(&value);
    if (!restrict_values(at, values)) return false;
  }
  if (meaning.value != nullptr && !restrict_values(at, {meaning.value})) return false;
  if (meaning.members) at.object.groups.push_back(*meaning.members);
  if (meaning.items) at.array.groups.push_back(*meaning.items);
  if (meaning.unevaluated_members) at.object.unevaluated.push_back(*meaning.unevaluated_members);
  if (meaning.unevaluated_items) at.array.unevaluated.push_back(*meaning.unevaluated_items);
  if (meaning.unique) {
    at.array.unique = true;
    at.array.unique_at = id;
  }
  for (Split& split : meaning.splits) {
    if (split.empty()) return false;
    if (split.size() == 1) {
      if (!apply(open, split[0])) return false;
    } else {
      open.splits.push_back(std::make_shared<const Split>(std::move(split)));
    }
  }
  return true;
}

/// The schemas that a member must meet, as far as they are known; enough of them to see a contradiction.
template <class F>
bool Cases::any_schema_of(const Case& at, const std::string& name, F&& f) {
  for (const MemberGroup& group : at.object.groups) {
    const Json* const value =
        group.properties == nullptr ? nullptr : document_.member(*group.properties, name);
    if (value != nullptr && f(child(group.schema, *value, "properties"))) return true;
  }
  return std::any_of(at.object.members.begin(), at.object.members.end(), [&](const auto& member) {
    return member.first == name && member.second.meets && f(member.second.schema);
  });
}

/// As meets(), of a value of the document.
inline bool Cases::known_to_meet(const Json& value, Literal literal) {
  const std::uint64_t key = std::uint64_t{literal.schema} * 2 + literal.meets;
  auto& known = met_[&value];
  const auto at =
      std::find_if(known.begin(), known.end(), [&](const auto& each) { return each.first == key; });
  if (at != known.end()) return at->second;
  const bool found = meets(value, literal);
  known.emplace_back(key, found);
  return found;
}

/// Whether the edit cannot be applied, as far as a look at it tells.
inline bool Cases::contradicts(const Open& open, const Edit& edit) {
  const Case& at = open.at;
  switch (edit.kind) {
    case Kind::types:
      return (at.types & edit.types) == 0;
    case Kind::literal: {
      const auto [id, meets] = edit.literal.literal;
      for (const ScopedLiteral& known : open.done) {
        if (known.literal.schema == id) return known.literal.meets != meets;
        if (meets && known.literal.meets && disjoint(known.literal.schema, id)) return true;
      }
      if (meets) return is_false(id) || (keywords_.types_of(id) & at.types) == 0;
      return is_true(id);
    }
    case Kind::require:
      return at.types == object_type && has(at.object.forbidden, edit.text);
    case Kind::forbid:
      return at.types == object_type && has(at.object.required, edit.text);
    default:
      return false;
  }
}
inline bool Cases::contradicts(const Open& open, const Edits& edits) {
  return std::any_of(edits.begin(), edits.end(), [&](const Edit& each) { return contradicts(open, each); });
}

/// Whether the case says it already, as far as a look at it tells.
inline bool Cases::implies(const Open& open, const Edit& edit) {
  const Case& at = open.at;
  switch (edit.kind) {
    case Kind::types:
      return (at.types & ~edit.types) == 0;
    case Kind::literal: {
      const auto [id, meets] = edit.literal.literal;
      for (const ScopedLiteral& known : open.done) {
        if (known.literal.schema == id)
          return known.literal.meets == meets && (edit.literal.scopes & ~known.scopes) == 0;
        if (!meets && known.literal.meets && disjoint(known.literal.schema, id)) return true;
      }
      return !meets && (keywords_.types_of(id) & at.types) == 0;
    }
    case Kind::require:
      return has(at.object.required, edit.text);
    case Kind::forbid:
      return has(at.object.forbidden, edit.text);
    case Kind::member: {
      const SchemaId id = edit.literal.literal.schema;
      return !edit.literal.literal.meets &&
             any_schema_of(at, edit.text, [&](SchemaId known) { return disjoint(known, id); });
    }
    default:
      return false;
  }
}
inline bool Cases::implies(const Open& open, const Split& split) {
  return std::any_of(split.begin(), split.end(), [&](const Edits& edits) {
    return std::all_of(edits.begin(), edits.end(), [&](const Edit& each) { return implies(open, each); });
  });
}

/// Whether a required member has schemas that no value meets together.
inline bool Cases::lacks_member(const Case& at) {
  return std::any_of(at.object.required.begin(), at.object.required.end(), [&](const std::string& name) {
    return any_schema_of(at, name, [&](SchemaId a) {
      return is_false(a) || any_schema_of(at, name, [&](SchemaId b) { return a < b && disjoint(a, b); });
    });
  });
}

/// Replaces all literals, and applies splits that have one alternative left; false for a contradiction.
inline bool Cases::settle(Open& open) {
  for (;;) {
    while (!open.todo.empty()) {
      const ScopedLiteral next = open.todo.back();
      open.todo.pop_back();
      if (!replace(open, next)) return false;
    }
    if ((open.at.types & object_type) != 0 && lacks_member(open.at)) {
      open.at.types &= static_cast<Types>(~object_type);
      if (open.at.types == 0) return false;
    }
    std::erase_if(open.splits, [&](const auto& split) { return implies(open, *split); });
    bool applied = false;
    for (std::size_t i = 0; i < open.splits.size() && !applied; ++i) {
      const auto split = open.splits[i];
      const Edits* left = nullptr;
      std::size_t n = 0;
      for (const Edits& edits : *split) {
        if (contradicts(open, edits)) continue;
        left = &edits;
        if (++n > 1) break;
      }
      if (n == 0) return false;
      if (n > 1) continue;
      open.splits.erase(open.splits.begin() + static_cast<std::ptrdiff_t>(i));
      if (!apply(open, *left)) return false;
      applied = true;
    }
    if (!applied) return true;
  }
}

/// The split with the fewest alternatives; false where none is left.
inline bool Cases::choose(Open& open, std::size_t& split, std::vector<std::size_t>& alternatives) {
  std::size_t best = 0;
  std::vector<std::size_t> possible;
  for (std::size_t i = 0; i < open.splits.size(); ++i) {
    possible.clear();
    const Split& each = *open.splits[i];
    for (std::size_t k = 0; k < each.size(); ++k) {
      if (!contradicts(open, each[k])) possible.push_back(k);
    }
    if (best != 0 && possible.size() >= best) continue;
    best = possible.size();
    split = i;
    alternatives = possible;
  }
  return best != 0;
}

inline std::vector<Case> Cases::cases(NeedId id) {
  std::vector<Case> out;
  std::vector<Open> todo(1);
  for (const Literal literal : needs_[id]) todo[0].todo.push_back({literal, 0});
  std::size_t steps = 0;
  while (!todo.empty()) {
    MICA_CHECK(++steps <= options_.max_cases, limit, "schema: at ",
               needs_[id].empty() ? std::string("#") : document_.place(needs_[id][0].schema),
               ": a value can meet it in more than ", options_.max_cases,
               " ways: alternatives (anyOf, oneOf, not, if, dependencies) are combined too often");
    Open open = std::move(todo.back());
    todo.pop_back();
    if (!settle(open)) continue;
    std::size_t split = 0;
    std::vector<std::size_t> alternatives;
    if (!choose(open, split, alternatives)) {
      finish(std::move(open), todo, out);
      continue;
    }
    const auto chosen = open.splits[split];
    open.splits.erase(open.splits.begin() + static_cast<std::ptrdiff_t>(split));
    for (std::size_t i = alternatives.size(); i > 0; --i) {  // the first is done first
      Open next = open;
      if (apply(next, (*chosen)[alternatives[i - 1]])) todo.push_back(std::move(next));
    }
  }
  return out;
}

/// A case without splits: values are checked, obligations are given to the members that can meet them.
inline void Cases::finish(Open open, std::vector<Open>& todo, std::vector<Case>& out) {
  Case& at = open.at;
  if (at.values) {
    std::erase_if(*at.values, [&](const Json* value) {
      if ((type_of(*value) & at.types) == 0) return true;
      return !std::all_of(open.done.begin(), open.done.end(),
                          [&](const ScopedLiteral& each) { return known_to_meet(*value, each.literal); });
    });
    if (!at.values->empty()) out.push_back(std::move(at));
    return;
  }
  if ((at.types & object_type) != 0 && split_obligation(open, todo)) return;
  out.push_back(std::move(at));
}

/// Copies the case for each member that can meet its next obligation, and for others; false where none is
/// left.
inline bool Cases::split_obligation(const Open& open, std::vector<Open>& todo) {
  const auto& all = open.at.object.obligations;
  const auto next = std::find_if(all.begin(), all.end(), [](const Obligation& o) { return !o.by_other; });
  if (next == all.end()) return false;
  const Obligation obligation = *next;
  const auto place = next - all.begin();
  Open without = open;
  without.at.object.obligations.erase(without.at.object.obligations.begin() + place);
  for (const std::string& name : names(open.at.object)) {
    if (has(open.at.object.forbidden, name)) continue;
    if (obligation.names != nullptr && obligation.names->contains(name)) continue;
    if (!obligation.pattern.empty() && !strings_.matches(obligation.pattern, name)) continue;
    bool excluded = false;
    if (obligation.patterns != nullptr) {
      for (const auto& [pattern, value] : obligation.patterns->items())
        excluded = excluded || strings_.matches(pattern, name);
    }
    if (excluded || (obligation.is_name && !meets(Json(name), obligation.value))) continue;
    Open with = without;
    bool possible = apply(with, edit::types(object_type)) && apply(with, edit::require(name));
    if (possible && !obligation.is_name) possible = apply(with, edit::member(name, obligation.value));
    if (possible) todo.push_back(std::move(with));
  }
  Open other = open;
  other.at.types &= object_type;
  other.at.object.obligations[static_cast<std::size_t>(place)].by_other = true;
  todo.push_back(std::move(other));
  if (open.at.types != object_type) {  // values of other types are not concerned
    without.at.types &= static_cast<Types>(~object_type);
    todo.push_back(std::move(without));
  }
  return true;
}

// Members

inline std::vector<std::string> Cases::names(const ObjectNeed& object) const {
  std::vector<std::string> out;
  std::map<std::string, bool> seen;
  const auto add = [&](const std::string& name) {
    if (seen.emplace(name, true).second) out.push_back(name);
  };
  for (const MemberGroup& group : object.groups) {
    if (group.properties == nullptr) continue;
    for (auto at = group.properties->begin(); at != group.properties->end(); ++at) add(at.key());
  }
  for (const auto& [name, literal] : object.members) add(name);
  for (const std::string& name : object.required) add(name);
  for (const std::string& name : object.forbidden) add(name);
  return out;
}

inline std::optional<Literals> Cases::member(const ObjectNeed& object, const std::string& name) {
  if (has(object.forbidden, name)) return std::nullopt;
  Literals out =
      member(object, &name, [&](const std::string& pattern) { return strings_.matches(pattern, name); });
  for (const auto& [member, literal] : object.members) {
    if (member == name) out.push_back(literal);
  }
  for (const Literal literal : object.names) {
    if (!meets(Json(name), literal)) return std::nullopt;
  }
  return out;
}

template <class Matches>
Literals Cases::member(const ObjectNeed& object, const std::string* name, Matches&& matches) {
  Literals out;
  std::uint32_t evaluated = 0;  // scopes in which a keyword has the name
  for (const MemberGroup& group : object.groups) {
    const Json* const value =
        name == nullptr || group.properties == nullptr ? nullptr : document_.member(*group.properties, *name);
    bool covered = value != nullptr;
    if (covered) out.push_back({child(group.schema, *value, "properties")});
    if (group.patterns != nullptr) {
      for (auto at = group.patterns->begin(); at != group.patterns->end(); ++at) {
        if (!matches(at.key())) continue;
        out.push_back({child(group.schema, *at, "patternProperties")});
        covered = true;
      }
    }
    if (!covered && group.others) out.push_back(*group.others);
    if (covered || group.others) evaluated |= group.scopes;
  }
  add_unevaluated(object.unevaluated, evaluated, out);
  return out;
}

// Values

/// Whether a list has the value; quickly where the value is the list's own.
[[nodiscard]] inline bool is_among(const Json& list, const Json& value) {
  if (list.empty()) return false;
  const std::less_equal<const Json*> before;
  if (before(&list.front(), &value) && before(&value, &list.back())) return true;
  return std::any_of(list.begin(), list.end(), [&](const Json& other) { return equal(other, value); });
}

inline bool Cases::meets(const Json& value, Literal literal, int depth) {
  const SchemaId id = literal.schema;
  if (is_true(id) || is_false(id)) return is_true(id) == literal.meets;
  MICA_CHECK(depth < 200, limit, "schema: at ", document_.place(id),
             ": references go in a circle, or too deep");
  if (keywords_.has_unevaluated(id))
    refuse("unevaluatedProperties", document_.place(id), "beside enum, const or propertyNames");
  auto known = meanings_.find(id);
  if (known == meanings_.end()) known = meanings_.emplace(id, keywords_.meets(id, 0, 1)).first;
  const Meaning& meaning = known->second;
  const auto good = [&] {
    if (meaning.value != nullptr && !equal(value, *meaning.value)) return false;
    if (meaning.values != nullptr && !is_among(*meaning.values, value)) return false;
    const auto all = [&](const Edits& edits) {
      return std::all_of(edits.begin(), edits.end(),
                         [&](const Edit& e) { return meets_edit(value, e, depth + 1); });
    };
    if (!all(meaning.edits)) return false;
    for (const Split& split : meaning.splits) {
      if (std::none_of(split.begin(), split.end(), all)) return false;
    }
    if (meaning.members && value.is_object() && !meets_object(value, *meaning.members, depth + 1))
      return false;
    if (meaning.items && value.is_array() && !meets_array(value, *meaning.items, depth + 1)) return false;
    if (!meaning.unique || !value.is_array()) return true;
    for (std::size_t i = 0; i < value.size(); ++i) {
      for (std::size_t k = i + 1; k < value.size(); ++k) {
        if (equal(value[i], value[k])) return false;
      }
    }
    return true;
  };
  return good() == literal.meets;
}

inline bool Cases::meets_edit(const Json& value, const Edit& edit, int depth) {
  const auto number = [&] { return decimal_of(value); };
  switch (edit.kind) {
    case Kind::literal:
      return meets(value, edit.literal.literal, depth);
    case Kind::types:
      return (type_of(value) & edit.types) != 0;
    case Kind::require:
      return !value.is_object() || value.contains(edit.text);
    case Kind::forbid:
      return !value.is_object() || !value.contains(edit.text);
    case Kind::name: {
      if (!value.is_object()) return true;
      for (const auto& [name, member] : value.items()) {
        if (!meets(Json(name), edit.literal.literal, depth)) return false;
      }
      return true;
    }
    case Kind::contained: {
      if (!value.is_array()) return true;
      std::uint64_t n = 0;
      for (const Json& item : value) n += meets(item, edit.literal.literal, depth);
      return edit.counts.contains(n);
    }
    case Kind::counts_members:
      return !value.is_object() || edit.counts.contains(value.size());
    case Kind::counts_items:
      return !value.is_array() || edit.counts.contains(value.size());
    case Kind::counts_characters:
      return !value.is_string() || edit.counts.contains(length_of(value.get_ref<const std::string&>()));
    case Kind::pattern:
      return !value.is_string() ||
             strings_.matches(edit.text, value.get_ref<const std::string&>()) == edit.flag;
    case Kind::format: {
      StringNeed need;
      need.formats.push_back({edit.text, edit.flag});
      return !value.is_string() || strings_.meets(need, value.get<std::string>(), 0);
    }
    case Kind::at_least:
    case Kind::at_most: {
      if (!value.is_number()) return true;
      NumberRange range;
      edit.kind == Kind::at_least ? range.at_least(edit.value, edit.flag)
                                  : range.at_most(edit.value, edit.flag);
      return range.contains(*number());
    }
    case Kind::multiple:
      return !value.is_number() || is_multiple(*number(), *schema::multiple_of(edit.value)) == edit.flag;
    default:
      return true;  // not among what a value meets
  }
}

inline bool Cases::meets_object(const Json& value, const MemberGroup& group, int depth) {
  ObjectNeed need;
  need.groups.push_back(group);
  for (const auto& [name, item] : value.items()) {
    const auto literals = member(need, name);
    if (!literals) return false;
    for (const Literal literal : *literals) {
      if (!meets(item, literal, depth)) return false;
    }
  }
  return true;
}

inline bool Cases::meets_array(const Json& value, const ItemGroup& group, int depth) {
  const std::size_t first = group.first == nullptr ? 0 : group.first->size();
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (i < first && !meets(value[i], {child(group.schema, (*group.first)[i], "prefixItems")}, depth))
      return false;
    if (i >= first && group.others && !meets(value[i], *group.others, depth)) return false;
  }
  return true;
}

}  // namespace mica::schema
