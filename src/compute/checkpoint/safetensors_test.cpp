// Encodes and decodes safetensors files, and rejects damaged ones.
#include "checkpoint/safetensors.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/bytes/little_endian.hpp"
#include "base/text.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::checkpoint {
namespace {

std::string file_of(std::string_view header, size_t data_bytes) {
  std::string bytes;
  append_little_endian(bytes, header.size(), 8);
  return bytes + std::string(header) + std::string(data_bytes, 'x');
}

std::string fault_of(std::string_view bytes) {
  const auto decoded = decode(bytes);
  return decoded ? "decoded" : decoded.error().message;
}

TEST(Safetensors, HasGoldenBytes) {
  const float values[2] = {1.0f, -2.0f};
  const Contents contents{
      {{"w", {Type::f32, {2}, {reinterpret_cast<const char*>(values), sizeof values}}}}, {}};
  EXPECT_EQ(to_hex(encode(contents)),
            "3800000000000000"
            "7b2277223a7b22646174615f6f666673657473223a5b302c385d2c226474797065223a22463332222c22"
            "7368617065223a5b325d7d7d2020"
            "0000803f000000c0");
}

TEST(Safetensors, EveryTypeAndShapeRoundTrips) {
  const std::string data(64, 'y');
  Contents contents;
  contents.metadata = {{"format", "pt"}, {"empty", ""}};
  for (int type = 0; type <= int(Type::boolean); ++type) {
    const size_t bytes = bytes_of(Type(type));
    contents.tensors["matrix " + std::to_string(type)] = {
        Type(type), {2, 3}, std::string_view(data).substr(0, 6 * bytes)};
    contents.tensors["number " + std::to_string(type)] = {
        Type(type), {}, std::string_view(data).substr(0, bytes)};
    contents.tensors["nothing " + std::to_string(type)] = {Type(type), {4, 0}, {}};
  }
  const std::string encoded = encode(contents);
  const auto decoded = decode(encoded);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->metadata, contents.metadata);
  ASSERT_EQ(decoded->tensors.size(), contents.tensors.size());
  for (const auto& [name, tensor] : contents.tensors) {
    const TensorView& read = decoded->tensors.at(name);
    EXPECT_EQ(read.type, tensor.type) << name;
    EXPECT_EQ(read.shape, tensor.shape) << name;
    EXPECT_EQ(read.bytes, tensor.bytes) << name;
    EXPECT_EQ((read.bytes.data() - encoded.data()) % ptrdiff_t(bytes_of(read.type)), 0) << name;
  }
}

TEST(Safetensors, AllocatesNothingForAHostileHeaderLength) {
  EXPECT_EQ(fault_of("1234567"), "truncated header: the file has 7 bytes");
  std::string huge;
  append_little_endian(huge, ~uint64_t{0}, 8);
  EXPECT_NE(fault_of(huge + "{}").find("invalid header length 18446744073709551615"),
            std::string::npos);
  std::string long_header;
  append_little_endian(long_header, kHeaderBytesMax + 1, 8);
  EXPECT_NE(fault_of(long_header + std::string(kHeaderBytesMax + 1, ' ')).find("invalid header"),
            std::string::npos);
}

TEST(Safetensors, ShapesThatOverflowAreRejected) {
  const std::string entry =
      R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})";
  EXPECT_EQ(fault_of(file_of(entry, 0)),
            "tensor a: data_offsets cover 0 bytes, but dtype and shape need 2^64 or more");
}

TEST(Safetensors, RejectsBytesThatDoNotBelongToExactlyOneTensor) {
  const auto header = [](std::string_view a, std::string_view b) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(a) +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + std::string(b) + "}}";
  };
  EXPECT_EQ(fault_of(file_of(header("[0,4]", "[4,8]"), 8)), "decoded");
  EXPECT_EQ(fault_of(file_of(header("[0,4]", "[2,6]"), 6)), "two tensors overlap at byte 2");
  EXPECT_EQ(fault_of(file_of(header("[0,4]", "[5,9]"), 9)), "no tensor has byte 4 of the data");
  EXPECT_EQ(fault_of(file_of(header("[0,4]", "[4,8]"), 9)), "1 bytes after the last tensor");
  EXPECT_EQ(fault_of(file_of(header("[0,4]", "[4,8]"), 7)),
            "tensor b: invalid data_offsets [4,8]: expected [begin, end] within the file's 7 bytes "
            "of data");
  // A name twice: the second hides the first, whose bytes then belong to no tensor.
  EXPECT_NE(fault_of(file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                             R"("a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})",
                             8)),
            "decoded");
}

TEST(Safetensors, NamesInvalidMembers) {
  const auto fault = [](std::string_view entry) {
    return fault_of(file_of(R"({"a":)" + std::string(entry) + "}", 4));
  };
  EXPECT_EQ(fault("3"), "tensor a: the entry must be a JSON object");
  EXPECT_NE(fault(R"({"dtype":"F33","shape":[1],"data_offsets":[0,4]})").find("F33"),
            std::string::npos);
  EXPECT_NE(fault(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})").find("negative"),
            std::string::npos);
  EXPECT_NE(fault(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})").find("data_offsets"),
            std::string::npos);
  EXPECT_NE(fault(R"({"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]})")
                .find("at most 8"),
            std::string::npos);
  EXPECT_EQ(fault_of(file_of("[]", 0)), "the header must be a JSON object");
  EXPECT_NE(fault_of(file_of(R"({"__metadata__":{"a":1}})", 0)).find("must be a string"),
            std::string::npos);
}

TEST(Safetensors, AFileRoundTrips) {
  const os::TemporaryDirectory folder;
  const std::string path = folder.path() + "/a.safetensors";
  const std::string data = "12345678";
  ASSERT_TRUE(save({{{"a", {Type::f64, {1}, data}}}, {}}, path));
  auto loaded = load(path, 1 << 20);
  ASSERT_TRUE(loaded) << loaded.error().message;
  const LoadedFile moved = std::move(*loaded);
  EXPECT_EQ(moved.contents.tensors.at("a").bytes, data);
  EXPECT_FALSE(load(path, 16));  // larger than allowed
  ASSERT_TRUE(os::write_file(path, "short"));
  EXPECT_FALSE(load(path, 1 << 20));
}

}  // namespace
}  // namespace trainyard::checkpoint
