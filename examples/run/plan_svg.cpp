// SPDX-License-Identifier: Apache-2.0
#include "budgeted.hpp"
#include "json_text.hpp"
#include "mica/budget/size.hpp"
#include "mica/plan/solve.hpp"
#include "plan_text.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace mica::program {
namespace {

constexpr double width = 720, height = 420, left = 80, right = 24, top = 48, bottom = 56;
constexpr std::size_t usual_first_tokens = 512;
constexpr std::string_view colors[] = {"#1b6ca8", "#3a9d5d", "#c2571a"};

struct Point {
  std::size_t tokens;
  std::uint64_t bytes;
};

/// Coordinates: tokens on a logarithmic scale, bytes on a linear one.
struct Axes {
  double first_tokens = 1;
  double max_tokens = 1;
  double max_bytes = 1;

  [[nodiscard]] double x(double tokens) const {
    const double part =
        std::log2(tokens / first_tokens) / std::max(std::log2(max_tokens / first_tokens), 1.0);
    return left + part * (width - left - right);
  }
  [[nodiscard]] double y(double bytes) const {
    return height - bottom - bytes / max_bytes * (height - top - bottom);
  }
};

std::string number(double x) { return fixed(x, 1); }

std::string text(double x, double y, std::string_view anchor, std::string_view words) {
  std::string safe;
  for (const char c : words)
    safe += c == '<' ? std::string("&lt;") : c == '&' ? std::string("&amp;") : std::string(1, c);
  return join("<text x=\"", number(x), "\" y=\"", number(y), "\" text-anchor=\"", anchor, "\">", safe,
              "</text>\n");
}

std::string line(double x1, double y1, double x2, double y2, std::string_view style) {
  return join("<line x1=\"", number(x1), "\" y1=\"", number(y1), "\" x2=\"", number(x2), "\" y2=\"",
              number(y2), "\" ", style, "/>\n");
}

/// The first context of the drawing: at least three doublings before the last, if it has as many.
std::size_t first_of(std::size_t max) {
  std::size_t first = usual_first_tokens;
  while (first > 1 && first * 8 > max) first /= 2;
  return first;
}

/// Peaks at contexts that double, and at the last one.
std::vector<Point> peaks(const gguf::Document& document, plan::Question question, kv::Element element,
                         std::size_t first, std::size_t max, std::uint64_t budget) {
  std::vector<Point> points;
  question.choice.cache_type_k = question.choice.cache_type_v = element;
  for (std::size_t n = first;; n = std::min(2 * n, max)) {
    question.model.n_ctx = n;
    const plan::Plan plan = plan_within(document, question, budget);
    question.tokenizer_bytes = plan.accounts[budget::Account::tokenizer];
    points.push_back({n, plan.peak_bytes});
    if (n == max) return points;
  }
}

/// Horizontal lines at round numbers of GiB or MiB, and ticks at powers of two of tokens.
std::string grid(const Axes& axes) {
  std::string svg;
  double step = 1 << 20;
  while (axes.max_bytes / step > 8) step *= 2;
  for (double bytes = 0; bytes <= axes.max_bytes; bytes += step) {
    svg += line(left, axes.y(bytes), width - right, axes.y(bytes), "stroke=\"#ddd\"");
    svg += text(left - 8, axes.y(bytes) + 4, "end", budget::size_text(static_cast<std::uint64_t>(bytes)));
  }
  const double factor = axes.max_tokens / axes.first_tokens > 64 ? 4 : 2;
  for (double tokens = axes.first_tokens; tokens <= axes.max_tokens; tokens *= factor) {
    svg += line(axes.x(tokens), height - bottom, axes.x(tokens), height - bottom + 5, "stroke=\"#888\"");
    svg += text(axes.x(tokens), height - bottom + 20, "middle", join(static_cast<std::size_t>(tokens)));
  }
  return svg + text((left + width - right) / 2, height - 12, "middle", "tokens of context");
}

}  // namespace

std::string plan_svg(const gguf::Document& document, const plan::Question& question, std::uint64_t budget) {
  plan::Question whole = question;
  whole.model.n_ctx = 0;
  const plan::Plan longest = plan_run(document, whole);
  const std::size_t max = std::max(longest.n_ctx, question.model.n_ctx);
  const std::size_t first = first_of(max);
  std::vector<std::vector<Point>> lines;
  for (const kv::Element element : plan::solution_elements)
    lines.push_back(peaks(document, question, element, first, max, budget));
  Axes axes{static_cast<double>(first), static_cast<double>(std::max(max, 2 * first)), 1};
  for (const auto& points : lines)
    axes.max_bytes = std::max(axes.max_bytes, 1.08 * static_cast<double>(points.back().bytes));
  const auto weights = static_cast<double>(longest.accounts[budget::Account::weights]);
  const bool shown = static_cast<double>(budget) <= axes.max_bytes;

  std::string svg =
      join("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", number(width), " ", number(height),
           "\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" "
           "fill=\"#fff\"/>\n");
  svg += text(left, 24, "start",
              join(escaped(longest.config.name, 60), ": planned peak of memory, keys and values in"));
  svg +=
      join("<rect x=\"", number(left), "\" y=\"", number(axes.y(weights)), "\" width=\"",
           number(width - left - right), "\" height=\"", number(axes.y(0) - axes.y(weights)),
           "\" fill=\"#eef1f5\"/>\n", text(left + 8, axes.y(weights) + 16, "start", "weights"), grid(axes));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::string points;
    for (const Point& p : lines[i])
      points += join(points.empty() ? "" : " ", number(axes.x(static_cast<double>(p.tokens))), ",",
                     number(axes.y(static_cast<double>(p.bytes))));
    svg += join("<polyline points=\"", points, "\" fill=\"none\" stroke-width=\"2\" stroke=\"", colors[i],
                "\"/>\n<g fill=\"", colors[i], "\">",
                text(width - right - 140 + 50 * static_cast<double>(i), 42, "start",
                     kv::name(plan::solution_elements[i])),
                "</g>\n");
  }
  if (shown)
    svg += line(left, axes.y(static_cast<double>(budget)), width - right, axes.y(static_cast<double>(budget)),
                "stroke=\"#b00\" stroke-dasharray=\"6 4\"") +
           text(left + 8, axes.y(static_cast<double>(budget)) - 5, "start",
                join("budget ", budget::size_text(budget)));
  return svg + "</svg>\n";
}

}  // namespace mica::program
