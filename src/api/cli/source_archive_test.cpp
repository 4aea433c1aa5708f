#include "cli/source_archive.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>

namespace trainyard::cli {
namespace {

std::string unzipped(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  std::string out;
  std::array<char, 4096> chunk;
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = uInt(chunk.size());
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(chunk.data(), chunk.size() - stream.avail_out);
  }
  EXPECT_EQ(status, Z_STREAM_END);
  inflateEnd(&stream);
  return out;
}

TEST(SourceArchive, WritesAUstarHeaderBeforeEachFile) {
  std::string packed;
  const auto archive = SourceArchive::open([&](std::string_view bytes) -> Result<void> {
    packed += bytes;
    return {};
  });
  ASSERT_TRUE(archive->add({"bin/go.sh", 0755, 5, 1'763'631'900}));
  ASSERT_TRUE(archive->write("exi"));
  ASSERT_TRUE(archive->write("t\n"));
  ASSERT_TRUE(archive->add({"empty", 0644, 0, 0}));
  ASSERT_TRUE(archive->finish());
  const std::string tar = unzipped(packed);
  ASSERT_EQ(tar.size(), 5 * 512u) << "a header and a block, a header, two empty blocks";
  EXPECT_EQ(tar.substr(0, 10), std::string("bin/go.sh\0", 10));
  EXPECT_EQ(tar.substr(100, 8), std::string("0000755\0", 8));
  EXPECT_EQ(tar.substr(124, 12), std::string("00000000005\0", 12));
  EXPECT_EQ(tar.substr(257, 8), std::string("ustar\00000", 8));
  EXPECT_EQ(tar.substr(512, 6), std::string("exit\n\0", 6));
  EXPECT_EQ(tar.substr(1024, 6), std::string("empty\0", 6));
  unsigned sum = 0;
  for (size_t i = 0; i < 512; ++i)
    sum += static_cast<unsigned char>(i >= 148 && i < 156 ? ' ' : tar[i]);
  EXPECT_EQ(std::stoul(tar.substr(148, 6), nullptr, 8), sum);
}

TEST(SourceArchive, WritesAPaxHeaderForALongName) {
  std::string packed;
  const auto archive = SourceArchive::open([&](std::string_view bytes) -> Result<void> {
    packed += bytes;
    return {};
  });
  const std::string name = std::string(90, 'd') + "/" + std::string(120, 'f');
  ASSERT_TRUE(archive->add({name, 0644, 0, 0}));
  ASSERT_TRUE(archive->finish());
  const std::string tar = unzipped(packed);
  EXPECT_EQ(tar[156], 'x');
  EXPECT_EQ(tar.substr(512, 222), "221 path=" + name + "\n" + std::string(1, '\0'));
}

TEST(SourceArchive, ReturnsErrorsOfTheSink) {
  const auto archive = SourceArchive::open(
      [](std::string_view) -> Result<void> { return unavailable("the link is cut"); });
  const auto added = archive->add({"a", 0644, 0, 0});  // zlib decides when it writes
  const auto done = added ? archive->finish() : added;
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "the link is cut");
  EXPECT_EQ(archive->add({"", 0644, 0, 0}).error().kind, Kind::invalid);
}

}  // namespace
}  // namespace trainyard::cli
