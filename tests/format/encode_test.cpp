// SPDX-License-Identifier: Apache-2.0
//
// Encoding: what comes back of rows of every kind, what importance does, and the errors of another encoder
// beside ours.

#include "mica_tools/encode/encode.hpp"

#include "doc_table.hpp"
#include "mica/base/rng.hpp"
#include "shared.hpp"

#include <doctest/doctest.h>

#include <cctype>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#endif

namespace mica::encode_test {
namespace {

constexpr std::size_t width = 256;  // whole blocks of every format

std::vector<float> gaussian_rows(std::size_t rows, float deviation, std::uint64_t seed) {
  CounterRng rng(seed);
  std::vector<float> out(rows * width);
  for (float& x : out) {
    const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
    x = deviation * static_cast<float>(radius * std::cos(2 * std::numbers::pi * rng.uniform()));
  }
  return out;
}

/// What a reader of the encoded rows sees.
template <class F>
std::vector<float> there_and_back(std::span<const float> rows, std::span<const float> importance = {}) {
  std::vector<float> out(rows.size());
  std::vector<typename F::Block> blocks(width / F::block_size);
  for (std::size_t row = 0; row < rows.size(); row += width) {
    format::encode_rows<F>(rows.subspan(row, width), width, importance,
                           reinterpret_cast<std::byte*>(blocks.data()));
    for (std::size_t b = 0; b < blocks.size(); ++b)
      F::decode(blocks[b], out.data() + row + b * F::block_size);
  }
  return out;
}

/// Root of sum w (x - y)^2 / sum w, with the weights of a row; without any they are 1.
double rms(std::span<const float> x, std::span<const float> y, std::span<const float> weights = {}) {
  double squares = 0, sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double w = weights.empty() ? 1 : static_cast<double>(weights[i % weights.size()]);
    const double miss = static_cast<double>(x[i]) - static_cast<double>(y[i]);
    squares += w * miss * miss;
    sum += w;
  }
  return std::sqrt(squares / sum);
}

double rms(std::span<const float> x) { return rms(x, std::vector<float>(x.size(), 0.0f)); }

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

/// Calls f(Type<F>{}) for every format that can be written.
template <class Function>
void for_each_format(Function&& f) {
  format::Encodable::for_each([&](auto type) {
    CAPTURE(decltype(type)::type::name);
    f(type);
  });
}

struct Bound {
  std::string_view format;
  double error;  // of gaussian rows, relative to their deviation
};

// Four percent above what optimal scales for the rows of this test give.
constexpr Bound bounds[] = {
    {"F32", 0},         {"F16", 2.2e-4},    {"BF16", 1.8e-3},   {"Q8_0", 0.0056}, {"Q6_K", 0.0172},
    {"Q5_K", 0.0358},   {"Q5_1", 0.0350},   {"Q5_0", 0.0420},   {"Q4_K", 0.0724}, {"Q4_1", 0.0720},
    {"Q4_0", 0.0845},   {"IQ4_NL", 0.0766}, {"IQ4_XS", 0.0770}, {"NF4", 0.0785},  {"MXFP4", 0.1165},
    {"Q3_K", 0.1495},   {"Q2_K", 0.270},    {"Q2_0", 0.365},    {"TQ1_0", 0.455}, {"TQ2_0", 0.455},
    {"Q1_0", 0.625},    {"IQ3_S", 0.134},   {"IQ3_XXS", 0.183}, {"IQ2_S", 0.251}, {"IQ2_XS", 0.299},
    {"IQ2_XXS", 0.346}, {"IQ1_M", 0.455},   {"IQ1_S", 0.49},
};

double bound_of(std::string_view format) {
  for (const Bound& b : bounds) {
    if (b.format == format) return b.error;
  }
  FAIL("no bound for " << format);
  return 0;
}

}  // namespace

TEST_CASE("gaussian rows come back within the bound of their format, whatever their size") {
  for (const float deviation : {0.03f, 1.0f, 30.0f}) {
    const auto rows = gaussian_rows(24, deviation, 1);
    for_each_format([&](auto type) {
      using F = typename decltype(type)::type;
      const double error = rms(rows, there_and_back<F>(rows)) / static_cast<double>(deviation);
      CHECK(error <= bound_of(F::name));
      CHECK(error >= bound_of(F::name) / 1.2);
    });
  }
}

TEST_CASE("rows of zeros come back as zeros") {
  const std::vector<float> zeros(width, 0.0f), importance = gaussian_rows(1, 1, 2);
  for_each_format([&](auto type) {
    using F = typename decltype(type)::type;
    CHECK(there_and_back<F>(zeros) == zeros);
    CHECK(there_and_back<F>(zeros, importance) == zeros);
  });
}

TEST_CASE("constant rows keep their value") {
  for (const float value : {0.25f, -0.7f, 1e-3f, -300.0f}) {
    const std::vector<float> row(width, value);
    for_each_format([&](auto type) {
      using F = typename decltype(type)::type;
      const double allowed = F::name == std::string_view("MXFP4") ? 0.15 : 0.01;
      CHECK(rms(row, there_and_back<F>(row)) <= allowed * std::fabs(static_cast<double>(value)));
    });
  }
}

TEST_CASE("tiny, huge and mixed rows come back finite and no worse than zeros") {
  std::vector<std::vector<float>> rows;
  for (const float deviation : {1e-40f, 1e-30f, 1e-9f, 1e-7f, 1e-5f, 1e5f, 1e20f, 5e37f}) {
    rows.push_back(gaussian_rows(2, deviation, 3));
  }
  auto mixed = gaussian_rows(1, 1e-6f, 4);
  mixed[17] = 1e6f;
  mixed[200] = -3e38f;
  rows.push_back(mixed);
  rows.push_back(std::vector<float>(width, 0.0f));
  rows.back()[255] = std::numeric_limits<float>::denorm_min();
  for (const auto& row : rows) {
    for_each_format([&](auto type) {
      using F = typename decltype(type)::type;
      const auto back = there_and_back<F>(row);
      CAPTURE(row[0]);
      CHECK(all_finite(back));
      CHECK(rms(row, back) <= rms(row) * 1.00001);
    });
  }
}

TEST_CASE("values that are not finite do no harm to their neighbours' blocks") {
  auto row = gaussian_rows(1, 1, 5);
  row[3] = std::numeric_limits<float>::quiet_NaN();
  row[40] = std::numeric_limits<float>::infinity();
  row[41] = -std::numeric_limits<float>::infinity();
  const std::vector<float> nothing(width, std::numeric_limits<float>::quiet_NaN());
  for_each_format([&](auto type) {
    using F = typename decltype(type)::type;
    if constexpr (F::block_size > 1) {
      CHECK(all_finite(there_and_back<F>(row)));
      CHECK(all_finite(there_and_back<F>(nothing)));
    }
  });
}

TEST_CASE("encoding what was decoded adds little to the error or nothing") {
  const auto rows = gaussian_rows(24, 0.02f, 6);
  for_each_format([&](auto type) {
    using F = typename decltype(type)::type;
    const auto once = there_and_back<F>(rows), twice = there_and_back<F>(once);
    CHECK(rms(once, twice) <= 0.3 * rms(rows, once));
    CHECK(rms(rows, twice) <= 1.04 * rms(rows, once));
  });
}

TEST_CASE("what a format can hold comes back exactly") {
  CounterRng rng(7);
  std::vector<float> ternary(width), signs(width), line(width), codes(width);
  for (std::size_t i = 0; i < width; ++i) {
    const auto bits = rng.next();
    ternary[i] = 0.375f * static_cast<float>(static_cast<int>(bits % 3) - 1);
    signs[i] = bits % 2 == 0 ? 0.0625f : -0.0625f;
    line[i] = 0.5f + 0.125f * static_cast<float>(i % 32 < 2 ? 15 * (i % 2) : bits % 16);
    codes[i] = 0.25f * static_cast<float>(static_cast<int>(i % 32 == 0 ? 0 : bits % 16) - 8);
  }
  CHECK(there_and_back<format::TQ1_0>(ternary) == ternary);
  CHECK(there_and_back<format::TQ2_0>(ternary) == ternary);
  CHECK(there_and_back<format::Q2_0>(ternary) == ternary);
  CHECK(there_and_back<format::Q1_0>(signs) == signs);
  CHECK(there_and_back<format::Q4_1>(line) == line);
  CHECK(there_and_back<format::Q4_0>(codes) == codes);
}

TEST_CASE("a block above zero costs what its mirror image below zero costs") {
  auto above = gaussian_rows(8, 0.03f, 8);
  for (float& x : above) x += 0.25f;
  auto below = above;
  for (float& x : below) x = -x;
  const auto check = [&](auto type) {
    using F = typename decltype(type)::type;
    CAPTURE(F::name);
    const double error = rms(above, there_and_back<F>(above));
    CHECK(error == doctest::Approx(rms(below, there_and_back<F>(below))).epsilon(0.01));
    CHECK(error <= 1.25 * 0.03 * bound_of(F::name));
  };
  TypeList<format::Q2_K, format::Q4_K, format::Q5_K, format::Q4_1, format::Q5_1>::for_each(check);
}

TEST_CASE("importance moves the error to where it matters less") {
  const auto rows = gaussian_rows(24, 0.03f, 9);
  auto importance = gaussian_rows(1, 1.2f, 10);
  for (float& w : importance) w = std::exp(w);
  for_each_format([&](auto type) {
    using F = typename decltype(type)::type;
    const auto plain = there_and_back<F>(rows), weighted = there_and_back<F>(rows, importance);
    if (F::block_size == 1 || F::name == std::string_view("Q8_0")) {
      CHECK(plain == weighted);  // rounded
    } else {
      CHECK(rms(rows, weighted, importance) < rms(rows, plain, importance));
      CHECK(rms(rows, weighted) <= 1.1 * rms(rows, plain));
    }
  });
}

TEST_CASE("importance of any kind leaves a row readable, and none of it counts as even") {
  const auto row = gaussian_rows(1, 0.03f, 11);
  const std::vector<float> none(width, 0.0f), even(width, 3.0f);
  std::vector<float> wild = gaussian_rows(1, 1, 12);
  wild[0] = std::numeric_limits<float>::quiet_NaN();
  wild[1] = std::numeric_limits<float>::infinity();
  wild[2] = 1e38f;
  wild[3] = 1e-38f;
  for_each_format([&](auto type) {
    using F = typename decltype(type)::type;
    CHECK(there_and_back<F>(row, none) == there_and_back<F>(row));
    CHECK(rms(row, there_and_back<F>(row, even)) <= 1.001 * rms(row, there_and_back<F>(row)));
    CHECK(rms(row, there_and_back<F>(row, wild)) <= 2 * 0.03 * bound_of(F::name));
  });
}

TEST_CASE("rows by a format's number are the rows by its type, at any address") {
  const auto rows = gaussian_rows(3, 0.5f, 13), importance = gaussian_rows(1, 1, 14);
  for_each_format([&](auto type) {
    using F = typename decltype(type)::type;
    CHECK(format::known_codecs.writes(F::id));
    const std::size_t bytes = format::info(F::id).row_bytes(width);
    REQUIRE(bytes == width / F::block_size * sizeof(typename F::Block));
    std::vector<std::byte> out(3 * bytes + 1, std::byte{0x5A});
    format::encode_rows(F::id, rows, width, importance, std::span(out).subspan(1));
    CHECK(out[0] == std::byte{0x5A});
    std::vector<typename F::Block> blocks(width / F::block_size);
    for (std::size_t row = 0; row < 3; ++row) {
      format::encode_rows<F>(std::span(rows).subspan(row * width, width), width, importance,
                             reinterpret_cast<std::byte*>(blocks.data()));
      CHECK(std::memcmp(blocks.data(), out.data() + 1 + row * bytes, bytes) == 0);
    }
  });
}

TEST_CASE("rows that cannot be written are refused with the numbers that do not fit") {
  const std::vector<float> rows(512, 1.0f), importance(32, 1.0f);
  std::vector<std::byte> out(1024);
  const auto refused = [&](format::Id id, std::size_t row, std::size_t weights, std::size_t bytes,
                           const char* text) {
    CAPTURE(text);
    std::string message;
    try {
      format::encode_rows(id, rows, row, std::span(importance).first(weights), std::span(out).first(bytes));
    } catch (const Error& error) {
      message = error.message();
    }
    CHECK(message.find(text) != message.npos);
  };
  CHECK_FALSE(format::known_codecs.writes(format::NVFP4::id));
  refused(format::NVFP4::id, 256, 0, 288, "cannot write NVFP4; formats that can be written: Q4_K");
  refused(format::Q4_K::id, 128, 0, 288, "a row of 128 values is not whole blocks of Q4_K, which have 256");
  refused(format::Q4_0::id, 0, 0, 288, "a row of 0 values");
  refused(format::Q4_0::id, 96, 0, 288, "512 values are not whole rows of 96");
  refused(format::Q4_0::id, 64, 32, 288, "importance has 32 numbers for rows of 64");
  refused(format::Q4_0::id, 64, 0, 289, "capacity for 289 bytes, but the rows take 288");
}

namespace {

template <class T>
std::vector<T> read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  REQUIRE_MESSAGE(!bytes.empty(), path.string());
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(static_cast<void*>(out.data()), bytes.data(), out.size() * sizeof(T));
  return out;
}

template <class F>
std::string file_name(const std::string& suffix) {
  std::string name(F::name);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name + suffix;
}

}  // namespace

TEST_CASE("Q8_0 gives the bytes of the conformance kit") {
  const auto folder = test::shared_dir("Q8_0 gives the bytes of the conformance kit", "conformance/quant");
  if (!folder) return;
  const auto source = read<float>(*folder / "src.f32");
  const auto theirs = read<std::byte>(*folder / "q8_0.q");
  std::vector<std::byte> ours(theirs.size());
  format::encode_rows(format::Q8_0::id, source, width, {}, ours);
  CHECK(ours == theirs);
}

#if __has_include(<nlohmann/json.hpp>)

namespace {

/// The kit's rows and what the other encoder makes of them.
struct Reference {
  std::vector<float> rows, importance;
  nlohmann::json types;

  explicit Reference(const std::filesystem::path& kit)
      : rows(read<float>(kit / "quant/src.f32")), importance(read<float>(kit / "quant/imatrix.f32")) {
    std::ifstream in(kit / "dequant/index.json");
    types = nlohmann::json::parse(in)["types"];
  }

  [[nodiscard]] const nlohmann::json* find(const std::string& type) const {
    for (const auto& entry : types) {
      if (entry["type"] == type && entry.contains("with_imatrix")) return &entry;
    }
    return nullptr;
  }
};

/// One figure of both encoders, as a cell of the table.
std::string cell(double ours, double theirs) {
  char text[64];
  std::snprintf(text, sizeof text, " %.3g / %.3g = %.3f |", ours, theirs, ours / theirs);
  return text;
}

/// A line of the table, checked: errors of gaussian, heavy-tailed, and shifted rows or rows with outliers.
template <class F>
std::string compare(const Reference& kit, const nlohmann::json& figures, std::span<const float> importance) {
  const auto back = there_and_back<F>(kit.rows, importance);
  const std::span<const float> x(kit.rows), y(back);
  const auto part = [&](std::size_t first, std::size_t last, std::span<const float> weights = {}) {
    const std::size_t at = first * width, n = (last - first) * width;
    return rms(x.subspan(at, n), y.subspan(at, n), weights);
  };
  const auto gauss = x.first(56 * width);
  const double size = rms(gauss, std::vector<float>(gauss.size(), 0.0f), kit.importance);
  const std::pair<const char*, double> measured[] = {
      {"rmse_gauss", part(0, 56)},
      {"rmse_heavy_tail", part(56, 72)},
      {"rmse_shifted_outlier", part(72, 88)},
      {"rel_weighted_rmse_gauss", part(0, 56, kit.importance) / size},
  };
  std::string line = "| " + std::string(F::name) + (importance.empty() ? " | no |" : " | yes |");
  for (const auto& figure : measured) {
    const double ours = figure.second, theirs = figures[figure.first];
    CAPTURE(figure.first);
    CHECK(ours <= 1.03 * theirs);
    line += cell(ours, theirs);
  }
  CHECK(all_finite(back));
  return line + "\n";
}

}  // namespace

TEST_CASE("rows of the conformance kit lose no more than by its own encoder, with importance or without") {
  const auto folder =
      test::shared_dir("rows of the conformance kit lose no more than by its own encoder", "conformance");
  if (!folder) return;
  const Reference kit(*folder);
  std::string table =
      "| Format | Importance | Gaussian | Heavy tails | Shifted, outliers | Gaussian, weighted |\n"
      "|---|---|---|---|---|---|\n";
  std::size_t lines = 0;
  for_each_format([&](auto type) {
    using F = typename decltype(type)::type;
    const auto* const entry = kit.find(file_name<F>(""));
    if (entry == nullptr) return;
    // ggml writes some formats with importance alone.
    if (entry->contains("plain")) table += compare<F>(kit, (*entry)["plain"], {});
    table += compare<F>(kit, (*entry)["with_imatrix"], kit.importance);
    ++lines;
  });
  CHECK(lines == 24);
  test::publish_table("encoders.md", "encoders", table);
}

#else

TEST_CASE("rows of the conformance kit lose no more than by its own encoder, with importance or without") {
  test::skipped("rows of the conformance kit lose no more than by its own encoder",
                "nlohmann-json, which reads the kit's index, is not installed");
}

#endif

}  // namespace mica::encode_test
