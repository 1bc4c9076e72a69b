// SPDX-License-Identifier: Apache-2.0
//
// Any text as a JSON Schema: refused by an error, or a language whose texts can be gone through. The first
// byte has the options, eight more are the choices of the walk.

#include "fuzz/grammar_walk.hpp"
#include "fuzz/input.hpp"
#include "mica_tools/schema/explain.hpp"
#include "mica_tools/schema/schema.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::fuzz::schema_fuzz {

MICA_FUZZ_TARGET(schema) {
  Input input(data, size);
  const std::uint8_t options = input.byte();
  const auto choices = input.text(8);
  const schema::SchemaOptions how{.whitespace = static_cast<schema::Whitespace>(options % 3),
                                  .order = static_cast<schema::MemberOrder>(options / 4 % 2),
                                  .formats = static_cast<schema::Formats>(options / 8 % 2),
                                  .unlisted_members = options / 16 % 2 == 0,
                                  .max_bytes = 1 << 16,
                                  .max_cases = 200,
                                  .max_needs = 2000,
                                  .max_expression_bytes = std::size_t{4} << 20};
  accepted([&] { walk(schema::parse_schema(input.rest(), how), choices); });
  return 0;
}

}  // namespace mica::fuzz::schema_fuzz
