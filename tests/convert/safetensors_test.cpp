// SPDX-License-Identifier: Apache-2.0

#include "convert/hf_folder.hpp"
#include "mica_tools/convert/checkpoint.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace mica::test::safetensors_test {
namespace {

std::string file_of(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t n = header.size();
  return std::string(reinterpret_cast<const char*>(&n), 8) + header + std::string(data_bytes, 'x');
}

/// What opening a file says, and the code of it.
std::pair<ErrorCode, std::string> refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  write_text(folder.path("w.safetensors"), bytes);
  try {
    (void)convert::Safetensors::open(folder.path("w.safetensors"));
  } catch (const Error& error) {
    return {error.code(), error.message()};
  }
  return {ErrorCode::failed, "opened"};
}

bool refuses(const std::string& header, std::size_t data_bytes, const std::string& text,
             ErrorCode code = ErrorCode::file) {
  const auto answer = refusal(file_of(header, data_bytes));
  const std::string& message = answer.second;
  CAPTURE(message);
  CHECK(answer.first == code);
  return message.find(text) != message.npos;
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"("w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

TEST_CASE("a safetensors file gives names, shapes, types and bytes") {
  const TemporaryFolder folder;
  write_safetensors(folder.path("w.safetensors"), {{"a", stored<float>("F32", {2, 3}, {1, 2, 3, 4, 5, 6})},
                                                   {"b", stored<std::uint16_t>("BF16", {}, {0x3F80})},
                                                   {"c", stored<float>("F32", {0, 4}, {})}});
  const auto file = convert::Safetensors::open(folder.path("w.safetensors"));
  REQUIRE(file.tensors().size() == 3);
  CHECK(file.tensors()[0].name == "a");
  CHECK(file.tensors()[0].shape_text() == "[2, 3]");
  CHECK(file.bytes(file.tensors()[0]).size() == 24);
  float values[6];
  convert::to_floats(convert::Dtype::F32, file.bytes(file.tensors()[0]).data(), 6, 1, values);
  CHECK(values[5] == 6);
  convert::to_floats(convert::Dtype::BF16, file.bytes(file.tensors()[1]).data(), 1, 1, values);
  CHECK(values[0] == 1);
  CHECK(file.tensors()[2].bytes == 0);
}

TEST_CASE("eight-bit floats have the values of their definition") {
  const auto value = [](convert::Dtype dtype, int bits) {
    const auto byte = static_cast<std::byte>(bits);
    float out = 0;
    convert::to_floats(dtype, &byte, 1, 1, &out);
    return out;
  };
  CHECK(value(convert::Dtype::F8_E4M3, 0x00) == 0);
  CHECK(value(convert::Dtype::F8_E4M3, 0x01) == 0x1p-9F);
  CHECK(value(convert::Dtype::F8_E4M3, 0x38) == 1);
  CHECK(value(convert::Dtype::F8_E4M3, 0x7E) == 448);
  CHECK(value(convert::Dtype::F8_E4M3, 0xFE) == -448);
  CHECK(std::isnan(value(convert::Dtype::F8_E4M3, 0x7F)));
  CHECK(value(convert::Dtype::F8_E5M2, 0x01) == 0x1p-16F);
  CHECK(value(convert::Dtype::F8_E5M2, 0x3C) == 1);
  CHECK(value(convert::Dtype::F8_E5M2, 0x7B) == 57344);
  CHECK(value(convert::Dtype::F8_E5M2, 0x7C) == std::numeric_limits<float>::infinity());
  CHECK(value(convert::Dtype::F8_E5M2, 0xFC) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(value(convert::Dtype::F8_E5M2, 0x7D)));
}

TEST_CASE("a safetensors header that lies is refused by what it lies about") {
  CHECK(refuses("{" + entry("F32", "[2]", "[0,7]") + "}", 8, "does not take the 7 bytes"));
  CHECK(refuses("{" + entry("F32", "[2]", "[0,8]") + "}", 7, "past the end"));
  CHECK(refuses("{" + entry("F32", "[2]", "[8,0]") + "}", 8, "backwards"));
  CHECK(refuses("{" + entry("F32", "[9223372036854775807,9]", "[0,8]") + "}", 8, "does not take"));
  CHECK(refuses("{" + entry("F32", "[2]", "[18446744073709551608,18446744073709551616]") + "}", 8, ""));
  CHECK(refuses("{" + entry("F32", "[-2]", "[0,8]") + "}", 8, "a negative number"));
  CHECK(refuses("{" + entry("F32", "[2.0]", "[0,8]") + "}", 8, "a fraction"));
  CHECK(refuses("{" + entry("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]") + "}", 8, "more than 8 dimensions"));
  CHECK(refuses("{" + entry("F32", "[[2]]", "[0,8]") + "}", 8, "an array"));
  CHECK(refuses("{" + entry("F32", "[2]", "[0,8,8]") + "}", 8, "more than 2 data_offsets"));
  CHECK(refuses("{" + entry("F32", "[2]", "[0]") + "}", 8, "two data_offsets"));
  CHECK(refuses("{" + entry("F7", "[2]", "[0,8]") + "}", 8, "'F7'", ErrorCode::unsupported));
  CHECK(refuses(R"({"w":{"dtype":"F32","shape":[2]}})", 8, "needed are"));
  CHECK(refuses(R"({"w":{"dtype":"F32","size":[2]}})", 8, "key 'size'"));
  CHECK(refuses(R"({"w":[]})", 8, "an array"));
  CHECK(refuses(R"({"w":null})", 8, "null"));
  CHECK(refuses(R"({"w":5})", 8, "a number"));
  CHECK(refuses(R"({"w":{"dtype":5}})", 8, "a number"));
  CHECK(refuses(R"({"w":{"dtype":{}}})", 8, "an object"));
  CHECK(refuses(R"({"__metadata__":{"format":5}})", 0, "a number"));
  CHECK(refuses(R"({"__metadata__":{"format":{}}})", 0, "an object"));
  CHECK(refuses("[]", 0, "an array"));
  CHECK(refuses(R"("text")", 0, "a string"));
  CHECK(refuses("{", 0, "not JSON"));
  CHECK(refuses("", 0, "the header is empty"));
  CHECK(refuses("{" + entry("F32", "[2]", "[0,8]") + "," + entry("F32", "[2]", "[8,16]") + "}", 16, "twice"));
}

TEST_CASE("tensors that share bytes are refused by both names") {
  const std::string other = R"("v":{"dtype":"U8","shape":[4],"data_offsets":[6,10]})";
  CHECK(refuses("{" + entry("F32", "[2]", "[0,8]") + "," + other + "}", 10, "'w' and 'v' overlap"));
}

TEST_CASE("a safetensors file that is cut is refused wherever the cut is") {
  const std::string whole = file_of("{" + entry("F32", "[2]", "[0,8]") + "}", 8);
  for (std::size_t n = 0; n < whole.size(); ++n) {
    CAPTURE(n);
    CHECK(refusal(whole.substr(0, n)).first == ErrorCode::file);
  }
  CHECK(refusal(whole).second == "opened");
}

TEST_CASE("a header longer than the format allows is a limit, one longer than the file is damage") {
  const auto with_length = [](std::uint64_t n) {
    return std::string(reinterpret_cast<const char*>(&n), 8) + "{}";
  };
  CHECK(refusal(with_length(UINT64_MAX)).first == ErrorCode::limit);
  CHECK(refusal(with_length(100'000'001)).first == ErrorCode::limit);
  CHECK(refusal(with_length(3)).first == ErrorCode::file);
}

TEST_CASE("a header that nests without end is refused at the first surplus bracket") {
  CHECK(refuses(R"({"w":{"shape":)" + std::string(100'000, '['), 0, "an array"));
}

TEST_CASE("an index brings its files together and misses what is not there") {
  const TemporaryFolder folder;
  write_safetensors(folder.path("m-1.safetensors"), {{"a", numbered("F32", {2})}});
  write_safetensors(folder.path("m-2.safetensors"), {{"b", numbered("F32", {3})}});
  const auto index = [&](const nlohmann::json& map) {
    write_text(folder.path("model.safetensors.index.json"), nlohmann::json{{"weight_map", map}}.dump());
  };
  const auto message = [&] {
    try {
      (void)convert::Checkpoint::open(folder.path(""));
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::file);
      return error.message();
    }
    return std::string("opened");
  };
  index({{"a", "m-1.safetensors"}, {"b", "m-2.safetensors"}});
  const auto both = convert::Checkpoint::open(folder.path(""));
  CHECK(both.files() == 2);
  REQUIRE(both.find("b") != nullptr);
  CHECK(both.find("b")->tensor->shape_text() == "[3]");
  CHECK(both.find("c") == nullptr);
  index({{"a", "m-1.safetensors"}, {"b", "m-3.safetensors"}});
  CHECK(message().find("m-3.safetensors: no such file") != std::string::npos);
  index({{"a", "m-1.safetensors"}, {"b", "m-2.safetensors"}, {"c", "m-2.safetensors"}});
  CHECK(message().find("tensor 'c' is not in m-2.safetensors") != std::string::npos);
  index({{"a", "../m-1.safetensors"}});
  CHECK(message().find("leaves the folder") != std::string::npos);
  index({{"a", 1}});
  CHECK(message().find("no file name") != std::string::npos);
  index(nlohmann::json::object());
  CHECK(message().find("weight_map") != std::string::npos);
}

TEST_CASE("without an index all safetensors files count, and a tensor in two of them is refused") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS((void)convert::Checkpoint::open(folder.path("")),
                       doctest::Contains("no safetensors file"), Error);
  write_text(folder.path("pytorch_model.bin"), "weights");
  CHECK_THROWS_WITH_AS((void)convert::Checkpoint::open(folder.path("")),
                       doctest::Contains("must be saved as safetensors"), Error);
  write_safetensors(folder.path("x.safetensors"), {{"a", numbered("F32", {2})}});
  write_safetensors(folder.path("y.safetensors"), {{"b", numbered("F32", {2})}});
  CHECK(convert::Checkpoint::open(folder.path("")).entries().size() == 2);
  write_safetensors(folder.path("z.safetensors"), {{"a", numbered("F32", {2})}});
  CHECK_THROWS_WITH_AS((void)convert::Checkpoint::open(folder.path("")), doctest::Contains("is also in"),
                       Error);
}

}  // namespace
}  // namespace mica::test::safetensors_test
