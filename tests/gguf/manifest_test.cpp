// SPDX-License-Identifier: Apache-2.0
//
// manifest.json as an enemy writes it, with a checksum that stands: refused with key and number, before anything is opened or allocated.

#include "io/temporary_folder.hpp"
#include "mica/gguf/manifest_parser.hpp"
#include "mica/gguf/reader.hpp"
#include "mica/gguf/writer.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace mica::test {
namespace {

namespace fs = std::filesystem;

/// Two files, a tensor in parts and one as a whole.
gguf::Manifest sample() {
  gguf::Manifest manifest;
  manifest.fingerprint = 0xABCD;
  manifest.files = {{"metadata.gguf", 0}, {"layer-000.bin", 8192}};
  gguf::TensorInfo a;
  a.name = "blk.0.a";
  a.dims = {256, 16, 2, 1};
  a.n_dims = 3;
  a.source = 1;
  a.format = format::info(format::Id::Q4_0);
  a.bytes = 256 / 32 * 18 * 32;
  a.packed = true;
  a.parts = 2;
  a.stride = 4096;
  a.checksums = {1, 2};
  gguf::TensorInfo b = a;
  b.name = "blk.0.b";
  b.dims = {10, 1, 1, 1};
  b.n_dims = 1;
  b.format = format::info(format::Id::F32);
  b.bytes = 40;
  b.offset = 2560;
  b.packed = false;
  b.parts = 1;
  b.stride = 0;
  b.checksums = {3};
  manifest.tensors = {a, b};
  return manifest;
}

/// The text with a part replaced, and the checksum that fits.
std::string edited(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  text.replace(at, from.size(), to);
  const std::size_t end = text.rfind("\"checksum\":");
  text.resize(end);
  return text + gguf::detail::manifest_end(text);
}

Error refused(const std::string& text) {
  return refusal([&] { return gguf::parse_manifest(text, "DIR/manifest.json"); });
}

/// A folder with the sample's files.
struct Folder {
  TemporaryFolder folder;
  gguf::Manifest manifest = sample();

  Folder() {
    gguf::Writer writer;
    writer.set("general.architecture", "none");
    const auto bytes = writer.bytes();
    folder.file("metadata.gguf", bytes);
    folder.file("layer-000.bin", std::string(8192, '\0'));
    manifest.files[0].bytes = bytes.size();
    manifest.metadata_checksum = io::checksum(bytes);
    write(manifest.text());
  }
  void write(const std::string& text) const { folder.file("manifest.json", text); }
  [[nodiscard]] gguf::Document open() const { return gguf::open(folder.path("")); }
};

}  // namespace

TEST_CASE("a manifest is read as it was written") {
  const gguf::Manifest manifest = sample();
  const gguf::Manifest read = gguf::parse_manifest(manifest.text(), "m");
  CHECK(read.text() == manifest.text());
  CHECK(read.fingerprint == 0xABCD);
  CHECK(read.files == manifest.files);
  CHECK(read.tensors[0].parts == 2);
  CHECK(read.tensors[0].packed);
  CHECK(read.tensors[0].checksums == std::vector<std::uint64_t>{1, 2});
  CHECK_FALSE(read.tensors[1].packed);
  CHECK(gguf::Manifest::name_fits("blk.0.attn_q.weight"));
  CHECK_FALSE(gguf::Manifest::name_fits("a\"b"));
  CHECK_FALSE(gguf::Manifest::name_fits("a\nb"));
}

TEST_CASE("a manifest that was cut or changed in any byte is refused") {
  const std::string text = sample().text();
  for (std::size_t at = 0; at < text.size(); ++at) {
    CAPTURE(at);
    CHECK(refused(text.substr(0, at)).code() == ErrorCode::file);
    for (const char bit : {'\x01', '\x20'}) {
      std::string other = text;
      other[at] = static_cast<char>(other[at] ^ bit);
      CHECK(refused(other).code() == ErrorCode::file);
    }
  }
  CHECK(refused(text + " ").code() == ErrorCode::file);
  CHECK(refused(text + text).code() == ErrorCode::file);
}

TEST_CASE("a manifest of an enemy is refused with what was found and what is needed") {
  const std::string text = sample().text();
  struct Case {
    std::string from, to;
    std::vector<std::string> said;
    ErrorCode code = ErrorCode::file;
  };
  const std::vector<Case> cases = {
      {"\"mica_packed\":1", "\"mica_packed\":2", {"version 2", "version 1 is read"}, ErrorCode::unsupported},
      {"\"mica_packed\":1", "\"mica_packed\":-1", {"mica_packed", "whole number"}},
      {"\"mica_packed\":1", "\"mica_packed\":99999999999999999999", {"below 2^64"}},
      {"rows16", "rows32", {"layout 'rows32' is not known"}, ErrorCode::unsupported},
      {"layer-000.bin", "../layer-000.bin", {"'../layer-000.bin' is no name of a file beside it"}},
      {"layer-000.bin", "/etc/passwd", {"no name of a file"}},
      {"layer-000.bin", "..", {"no name of a file"}},
      {"layer-000.bin", ".hidden", {"no name of a file"}},
      {"layer-000.bin", "", {"no name of a file"}},
      {"layer-000.bin", std::string(65, 'a'), {"no name of a file"}},
      {"layer-000.bin", "metadata.gguf", {"stands there twice"}},
      {"\"file\":\"layer-000.bin\"", "\"file\":\"head.bin\"", {"'head.bin' is not among the files"}},
      {"[256,16,2]", "[]", {"1 to 4 dimensions"}},
      {"[256,16,2]", "[256,16,2,1,1]", {"1 to 4 dimensions"}},
      {"[256,16,2]", "[256,16,3]", {"takes 6912 bytes, not 4608"}},
      {"[256,16,2]", "[255,16,2]", {"takes no bytes"}},
      {"[256,16,2]", "[18446744073709551615,16,2]", {"takes no bytes"}},
      {"[256,16,2]", "[9223372036854775808,16,2]", {"takes no bytes"}},
      {"Q4_0", "Q4_X", {"format 'Q4_X' is not known"}, ErrorCode::unsupported},
      {"\"offset\":0", "\"offset\":8192", {"do not lie in the 8192 bytes of layer-000.bin"}},
      {"\"offset\":0", "\"offset\":18446744073709551615", {"do not lie in"}},
      {"\"parts\":2", "\"parts\":0", {"not 0 parts"}},
      {"\"parts\":2", "\"parts\":5", {"32 rows, which are not 5 parts"}},
      {"\"parts\":2", "\"parts\":4294967297", {"parts"}},
      {"\"parts\":2", "\"parts\":4", {"do not lie in"}},
      {"\"parts\":2,\"stride\":4096", "\"parts\":1,\"stride\":4096", {"do not lie in"}},
      {"\"stride\":4096", "\"stride\":100", {"100 apart, do not lie"}},
      {"\"stride\":4096", "\"stride\":18446744073709551615", {"do not lie in"}},
      {"\"checksums\":[\"0000000000000001\",", "\"checksums\":[", {"2 parts and 1 checksums"}},
      {"0000000000000003", "000000000000000", {"sixteen hexadecimal digits"}},
      {"0000000000000003", "000000000000000x", {"sixteen hexadecimal digits"}},
      {"\"bytes\":40", "\"octets\":40", {"key 'bytes' is needed"}},
      {"\"bytes\":40", "\"bytes\":4e1", {"takes 40 bytes, not 4"}},
      {"blk.0.b", "blk\\u0030", {"printable ASCII"}},
      {"blk.0.b", "blk\n", {"printable ASCII"}},
      {"\"files\":[", "\"files\":{", {"'[' is needed"}},
      {"\"tensors\":[", "\"tensors\":[[", {"'{' is needed"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.to);
    const Error error = refused(edited(text, c.from, c.to));
    CHECK(error.code() == c.code);
    CHECK(mentions(error, "DIR/manifest.json"));
    for (const std::string& part : c.said) CHECK(mentions(error, part));
  }
  CHECK(refused(std::string((std::size_t{64} << 20) + 1, ' ')).code() == ErrorCode::limit);
}

TEST_CASE("a packed folder is opened with its files, and refused without one") {
  const Folder good;
  const gguf::Document document = good.open();
  CHECK(document.packed());
  CHECK(document.tensors().size() == 2);
  CHECK(document.metadata().get<std::string_view>("general.architecture") == "none");
  std::vector<std::byte> bytes(40);
  document.read(document.tensor("blk.0.b"), bytes);
  const Error packed = refusal([&] {
    std::vector<std::byte> all(4608);
    return document.read(document.tensor("blk.0.a"), all), 0;
  });
  CHECK(mentions(packed, "blk.0.a", "read_plain"));
}

TEST_CASE("what only the files can tell is compared with the manifest") {
  {
    const Folder f;
    fs::remove(f.folder.path("layer-000.bin"));
    CHECK(mentions(refusal([&] { return f.open(); }), "layer-000.bin", "no such file"));
  }
  {
    const Folder f;
    fs::resize_file(f.folder.path("layer-000.bin"), 8191);
    CHECK(mentions(refusal([&] { return f.open(); }), "layer-000.bin: 8191 bytes; the manifest has 8192"));
  }
  {
    const Folder f;
    fs::remove(f.folder.path("layer-000.bin"));
    fs::create_directory(f.folder.path("layer-000.bin"));
    CHECK(mentions(refusal([&] { return f.open(); }), "layer-000.bin", "is a folder"));
  }
  {
    const Folder f;
    std::string text = contents(f.folder.path("metadata.gguf"));
    text[30] = static_cast<char>(text[30] ^ 1);
    f.folder.file("metadata.gguf", text);
    CHECK(mentions(refusal([&] { return f.open(); }), "metadata.gguf", "its checksum"));
  }
  {
    Folder f;
    f.manifest.tensors[1].offset = 2000;
    f.write(f.manifest.text());
    CHECK(mentions(refusal([&] { return f.open(); }), "'blk.0.a' and 'blk.0.b' overlap at byte 2000"));
    f.manifest.tensors[1].offset = 4096 + 100;  // in the second part
    f.write(f.manifest.text());
    CHECK(mentions(refusal([&] { return f.open(); }), "overlap at byte 4196"));
  }
  {
    Folder f;
    f.manifest.tensors[1].name = "blk.0.a";
    f.write(f.manifest.text());
    CHECK(mentions(refusal([&] { return f.open(); }), "'blk.0.a' appears twice"));
  }
  {
    Folder f;
    std::swap(f.manifest.files[0], f.manifest.files[1]);
    f.manifest.tensors.clear();
    f.write(f.manifest.text());
    CHECK(mentions(refusal([&] { return f.open(); }), "the first of its files must be metadata.gguf"));
    f.manifest.files.clear();
    f.write(f.manifest.text());
    CHECK(mentions(refusal([&] { return f.open(); }), "the first of its files must be"));
  }
  {
    const Folder f;
    fs::remove(f.folder.path("manifest.json"));
    CHECK(mentions(refusal([&] { return f.open(); }), "is a folder, a file is needed"));
    f.folder.file("progress.json", sample().text());
    CHECK(mentions(refusal([&] { return f.open(); }), "packing was not finished; run mica pack"));
  }
}

}  // namespace mica::test
