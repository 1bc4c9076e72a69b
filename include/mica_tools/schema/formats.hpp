// SPDX-License-Identifier: Apache-2.0
//
// The formats that are enforced, as regular expressions of whole texts. Sources: RFC 3339 (dates and times,
// durations), RFC 5321 (e-mail), RFC 1123 (host names), RFC 2673 and 4291 (addresses), RFC 4122 (UUID), RFC
// 3986 (URI), RFC 6901 (JSON pointer), RFC 6570 (URI template), OpenAPI 3.1's registry for the others.
#pragma once

#include <string>
#include <string_view>

namespace mica::schema {

namespace detail {

/// Days of each month, with leap years of the Gregorian calendar.
[[nodiscard]] inline std::string date_pattern() {
  const std::string leap =
      "(?:(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26]))|(?:(?:[02468][048]|[13579][26])00))";
  return "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|"
         "02-(?:0[1-9]|1[0-9]|2[0-8]))|" +
         leap + "-02-29)";
}
/// Leap seconds are at the end of a day of UTC, so that the time zone decides: only "Z" has them here.
[[nodiscard]] inline std::string time_pattern() {
  return "(?:(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]+)?(?:[zZ]|[+-](?:[01][0-9]|2[0-3]):[0-5]["
         "0-9])|"
         "23:59:60(?:\\.[0-9]+)?[zZ])";
}
/// RFC 1123: labels of letters and digits, with hyphens within; 63 at most in each, 253 in all. Limit: labels
/// with "--" at their third place are for encodings of other scripts, which no expression can check; they are
/// refused.
[[nodiscard]] inline std::string host_pattern() {
  const std::string end = "[a-zA-Z0-9]", any = "[a-zA-Z0-9-]";
  const std::string tail = "(?:" + any + "{0,58}" + end + ")";
  const std::string label = "(?:" + end + "(?:" + any + "?" + end + ")?|" + end + any + "(?:" + end + any +
                            tail + "|-" + end + tail + "?|" + end + end + "))";
  return "(?=.{1,253}$)" + label + "(?:\\." + label + ")*";
}
[[nodiscard]] inline std::string ipv4_pattern() {
  const std::string byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return byte + "(?:\\." + byte + "){3}";
}
[[nodiscard]] inline std::string ipv6_pattern() {
  const std::string h = "[0-9a-fA-F]{1,4}", last = "(?:" + h + ":" + h + "|" + ipv4_pattern() + ")";
  std::string out = "(?:(?:" + h + ":){6}" + last + "|::(?:" + h + ":){5}" + last;
  for (int before = 0; before <= 6; ++before) {
    std::string head =
        before == 0 ? "(?:" + h + ")?" : "(?:(?:" + h + ":){0," + std::to_string(before) + "}" + h + ")?";
    const int after = 4 - before;  // groups before the last two
    out += "|" + head + "::";
    if (after > 0) out += "(?:" + h + ":){" + std::to_string(after) + "}" + last;
    if (after == 0) out += last;
    if (after == -1) out += h;
  }
  return out + ")";
}
[[nodiscard]] inline std::string uri_pattern(bool relative) {
  const std::string unreserved = "a-zA-Z0-9._~\\-", sub = "!$&'()*+,;=", hex = "%[0-9a-fA-F]{2}";
  const std::string pchar = "(?:[" + unreserved + sub + ":@]|" + hex + ")";
  const std::string userinfo = "(?:(?:[" + unreserved + sub + ":]|" + hex + ")*@)?";
  const std::string host = "(?:\\[(?:" + ipv6_pattern() + "|v[0-9a-fA-F]+\\.[" + unreserved + sub +
                           ":]+)\\]|(?:[" + unreserved + sub + "]|" + hex + ")*)";
  const std::string authority = userinfo + host + "(?::[0-9]*)?";
  const std::string segments = "(?:/" + pchar + "*)*";
  const std::string tail = "(?:\\?(?:" + pchar + "|[/?])*)?(?:#(?:" + pchar + "|[/?])*)?";
  const std::string absolute = "/(?:" + pchar + "+" + segments + ")?";
  const std::string uri = "[a-zA-Z][a-zA-Z0-9+.-]*:(?://" + authority + segments + "|" + absolute + "|" +
                          pchar + "+" + segments + "|)" + tail;
  if (!relative) return uri;
  const std::string no_colon = "(?:[" + unreserved + sub + "@]|" + hex + ")+";
  return "(?:" + uri + "|(?://" + authority + segments + "|" + absolute + "|" + no_colon + segments + "|)" +
         tail + ")";
}
[[nodiscard]] inline std::string email_pattern() {
  const std::string atom = "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]+";
  const std::string label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
  return "(?:" + atom + "(?:\\." + atom + ")*|\"(?:[ !#-\\[\\]-~]|\\\\[ -~])*\")@(?:" + label + "(?:\\." +
         label + ")*|\\[(?:" + ipv4_pattern() + "|IPv6:" + ipv6_pattern() + ")\\])";
}
[[nodiscard]] inline std::string duration_pattern() {
  const std::string time = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)";
  const std::string days = "[0-9]+D", months = "[0-9]+M(?:" + days + ")?",
                    years = "[0-9]+Y(?:" + months + ")?";
  return "P(?:(?:" + years + "|" + months + "|" + days + ")(?:" + time + ")?|" + time + "|[0-9]+W)";
}

}  // namespace detail

/// The regular expression of a format's texts; empty for a format that is not known.
[[nodiscard]] inline std::string format_pattern(std::string_view name) {
  if (name == "date") return detail::date_pattern();
  if (name == "time") return detail::time_pattern();
  if (name == "date-time") return detail::date_pattern() + "[tT]" + detail::time_pattern();
  if (name == "duration") return detail::duration_pattern();
  if (name == "email") return detail::email_pattern();
  if (name == "hostname") return detail::host_pattern();
  if (name == "ipv4") return detail::ipv4_pattern();
  if (name == "ipv6") return detail::ipv6_pattern();
  if (name == "uuid") return "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}";
  if (name == "uri") return detail::uri_pattern(false);
  if (name == "uri-reference") return detail::uri_pattern(true);
  if (name == "json-pointer") return "(?:/(?:[^/~]|~[01])*)*";
  if (name == "relative-json-pointer") return "(?:0|[1-9][0-9]*)(?:#|(?:/(?:[^/~]|~[01])*)*)";
  return {};
}

/// A format of JSON Schema that has no expression here.
[[nodiscard]] inline bool is_unsupported_format(std::string_view name) {
  for (const std::string_view known :
       {"regex", "iri", "iri-reference", "idn-email", "idn-hostname", "uri-template"}) {
    if (name == known) return true;
  }
  return false;
}

}  // namespace mica::schema
