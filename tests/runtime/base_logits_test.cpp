// SPDX-License-Identifier: Apache-2.0

#include "mica_tools/measure/base_logits.hpp"

#include "io/temporary_folder.hpp"
#include "mica/base/rng.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <numeric>

namespace mica::test::base_logits_test {
namespace {

constexpr std::size_t n_vocab = 11;

Windows some_text() {
  std::vector<TokenId> tokens(17);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i % n_vocab);
  return {tokens, 8, std::nullopt};
}

std::vector<float> row_of(std::size_t i) {
  CounterRng rng(i + 1);
  std::vector<float> row(n_vocab);
  for (float& x : row) x = static_cast<float>(rng.uniform() * 8 - 4);
  return row;
}

std::string written(const TemporaryFolder& folder) {
  const Windows text = some_text();
  std::string path = folder.path("base.kld");
  BaseLogitsWriter writer(path, text, text.size(), n_vocab);
  for (std::size_t i = 0; i < text.size() * text.counted(); ++i) writer.write(LogProbabilities(row_of(i)));
  writer.commit();
  return path;
}

void put(std::string& bytes, std::size_t at, auto value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

}  // namespace

TEST_CASE("base logits that were written are read back, with their text") {
  const TemporaryFolder folder;
  BaseLogitsReader reader(written(folder));
  CHECK(reader.n_ctx() == 8);
  CHECK(reader.n_vocab() == n_vocab);
  CHECK(reader.windows() == 2);
  const Windows text = some_text();
  REQUIRE(reader.tokens().size() == 16);
  for (std::size_t i = 0; i < 16; ++i) CHECK(reader.tokens()[i] == text[i / 8][i % 8]);
  for (std::size_t i = 0; i < 6; ++i) {
    const auto logits = row_of(i);
    const LogProbabilities expected(logits);
    const QuantizedRow& row = reader.next();
    for (std::size_t token = 0; token < n_vocab; ++token)
      CHECK(row[token] == doctest::Approx(expected[token]).epsilon(1e-3));
  }
  CHECK(refusal([&] { return reader.next().scale(); }).code() == ErrorCode::file);
}

TEST_CASE("the layout is the common tool's: header, tokens, rows padded to an even number of codes") {
  const TemporaryFolder folder;
  const std::string bytes = contents(written(folder));
  CHECK(bytes.starts_with("_logits_"));
  std::int32_t numbers[3 + 16];
  std::memcpy(numbers, bytes.data() + 8, sizeof numbers);
  CHECK(numbers[0] == 8);
  CHECK(numbers[1] == 11);
  CHECK(numbers[2] == 2);
  CHECK(numbers[3 + 12] == 1);
  CHECK(bytes.size() == 8 + 12 + 16 * 4 + 6 * (8 + 12 * 2));
}

TEST_CASE("nothing appears before the commit") {
  const TemporaryFolder folder;
  const Windows text = some_text();
  {
    BaseLogitsWriter writer(folder.path("base.kld"), text, 1, n_vocab);
    writer.write(LogProbabilities(row_of(0)));
  }
  CHECK(folder.entries() == 0);
}

TEST_CASE("files that are no base logits, contradict themselves or are cut are refused") {
  const TemporaryFolder folder;
  const std::string good = contents(written(folder));
  const auto refused = [&](const std::string& bytes) {
    const std::string path = folder.file("bad.kld", bytes);
    return refusal([&] {
      BaseLogitsReader reader(path);
      for (std::size_t i = 0; i < reader.windows() * Windows::counted(reader.n_ctx()); ++i)
        static_cast<void>(reader.next());
      return 0;
    });
  };
  const auto changed = [&](std::size_t at, auto value) {
    std::string bytes = good;
    put(bytes, at, value);
    return bytes;
  };
  CHECK(mentions(refused(changed(0, 'x')), "no base logits"));
  CHECK(refused(good.substr(0, 10)).code() == ErrorCode::file);
  CHECK(mentions(refused(good.substr(0, good.size() - 1)), "truncated"));
  for (const std::size_t at : {8U, 12U, 16U}) {
    for (const std::int32_t value : {0, -1, std::numeric_limits<std::int32_t>::min()})
      CHECK(refused(changed(at, value)).code() == ErrorCode::file);
    CHECK(mentions(refused(changed(at, std::numeric_limits<std::int32_t>::max())), "truncated"));
  }
  CHECK(mentions(refused(changed(20 + 5 * 4, std::int32_t{11})), "token 5"));
  CHECK(refused(changed(20, std::int32_t{-1})).code() == ErrorCode::file);
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -1.0F, std::numeric_limits<float>::infinity()})
    CHECK(mentions(refused(changed(84, value)), "row"));
  CHECK(mentions(refused(changed(88, std::numeric_limits<float>::quiet_NaN())), "row at byte 84"));
}

TEST_CASE("numbers that multiply to more than a machine word are refused before anything is allocated") {
  const TemporaryFolder folder;
  std::string bytes = contents(written(folder));
  for (const std::size_t at : {8U, 12U, 16U}) put(bytes, at, std::numeric_limits<std::int32_t>::max());
  const std::string path = folder.file("bad.kld", bytes);
  CHECK(refusal([&] { return BaseLogitsReader(path).n_ctx(); }).code() == ErrorCode::file);
}

}  // namespace mica::test::base_logits_test
