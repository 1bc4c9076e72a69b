// SPDX-License-Identifier: Apache-2.0
//
// Strings of the formats that JSON Schema names, by the RFC of each.

#include "mica_tools/schema/formats.hpp"

#include "check_schema.hpp"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

namespace mica::test::formats_test {
namespace {

struct Format {
  const char* name;
  std::vector<std::string> good, bad;
};

const std::vector<Format> formats = {
    {"date", {"2024-02-29", "1999-12-31", "2000-02-29"}, {"1900-02-29", "2024-04-31", "2024-13-01", ""}},
    {"time",
     {"23:59:59Z", "00:00:00.25z", "08:30:06+01:30", "23:59:60Z"},
     {"24:00:00Z", "08:30:06", "08:60:06Z", "22:59:60Z", "08:30:06+24:00"}},
    {"date-time", {"1985-04-12T23:20:50.52Z", "1996-12-19t16:39:57-08:00"}, {"1985-04-12 23:20:50Z", "1T1"}},
    {"duration",
     {"P4DT12H30M5S", "P1Y2M3D", "PT0S", "P2W", "P1M", "PT1H"},
     {"P", "PT", "4D", "P1D2H", "P1W2D"}},
    {"email", {"joe.bloggs@example.com", "\"a b\"@x", "a@[127.0.0.1]"}, {"2962", ".a@x", "a..b@x", "a@"}},
    {"hostname", {"www.example.com", "a-b.c1", "x"}, {"-a", "a-", "a_b", "a..b", "ab--c", ""}},
    {"ipv4", {"192.168.0.1", "0.0.0.0"}, {"256.1.1.1", "1.2.3", "01.2.3.4"}},
    {"ipv6", {"::", "1::", "1:2:3:4:5:6:7:8", "::1.2.3.4"}, {"12345::", "1:2:3:4:5:6:7:8:9", "1::2::3", ":"}},
    {"uuid", {"2EB8AA08-aa98-11ea-b4aa-73b441d16380"}, {"2eb8aa08-aa98-11ea-b4aa73b441d16380"}},
    {"uri",
     {"http://a.b/c?d#e", "urn:x", "mailto:a@b", "http://[::1]:80/%20"},
     {"/a", "a", "http://a b", ":a"}},
    {"uri-reference", {"http://a.b/c", "/a/b", "#c", "a/b:c", "//x", ""}, {"\\\\a", "a b", "1:b", "%zz"}},
    {"json-pointer", {"", "/a/b", "/~0~1", "/"}, {"a", "/~2", "/~"}},
    {"relative-json-pointer", {"0", "1/a", "12#", "0/~1"}, {"", "01", "-1", "/a", "1a", "0##"}}};

}  // namespace

TEST_CASE("a format has the strings of its RFC, and not the others") {
  for (const Format& format : formats) {
    const std::string of = std::string(R"("format":")") + format.name + '"';
    const auto quoted = [](const Texts& texts) {
      Texts out;
      for (const std::string& text : texts) out.push_back(schema::Json(text).dump());
      return out;
    };
    const Texts good = quoted(format.good), bad = quoted(format.bad);
    check(R"({"type":"string",)" + of + "}", good, bad);
    check(R"({"type":"string","not":{)" + of + "}}", bad, good);
    check(R"({"enum":)" + (schema::Json(format.good).dump() + "," + of) + "}", good, {});
    check(R"({"enum":)" + schema::Json(format.bad).dump() + R"(,"not":{)" + of + "}}", bad, {});
    check("{" + of + "}", {"1", "null"}, bad);
    check("{" + of + "}", bad, {}, {.formats = schema::Formats::annotation});
  }
}

TEST_CASE("formats without an expression are refused, and unknown ones mean nothing") {
  for (const char* const name :
       {"regex", "iri", "iri-reference", "idn-email", "idn-hostname", "uri-template"}) {
    const std::string of = std::string(R"({"format":")") + name + "\"}";
    CHECK(contains(refusal(of), "schema: 'format' at #: '" + std::string(name) + "' is not enforced"));
    CHECK(refusal(of, {.formats = schema::Formats::annotation}).empty());
  }
  check(R"({"format":"color"})", {R"("red")", "1"}, {});
  check(R"({"format":7})", {R"("red")", "7"}, {});
}

}  // namespace mica::test::formats_test
