#include "observe/segment.hpp"

#include <gtest/gtest.h>

#include "base/bytes/crc.hpp"
#include "base/text.hpp"
#include "observe/bytes.hpp"

namespace trainyard::observe {
namespace {

// Another program, which was written from docs/formats/logs.md, made these bytes.
constexpr std::string_view kHeader =
    "54594c4f47534547010000000700000000000000001000000000000001000000020000000a000000722f676a6f622f"
    "616c676f2d"
    "31be6525d8";
constexpr std::string_view kEvent = "130000004759abb90100aca8a09a01000005aca8a09a0100006869";
constexpr std::string_view kCommit = "090000005dab3c1a020300000000000000";
constexpr std::string_view kIndexEntry =
    "0010000000000000681000000000000001000000000000000200000000000000030000000000000004000000000000"
    "000345ca48"
    "00000000";

TEST(Segment, EncodesToGoldenBytes) {
  EXPECT_EQ(Crc32::of("123456789"), 0xcbf43926u);
  EXPECT_EQ(to_hex(encode_segment_header({7, 4096, {"r", "/g", "job/algo-1"}})), kHeader);
  std::string event, commit, entry;
  encode_event(event, {1'763'632'000'000, 1'763'632'000'005, "hi"});
  EXPECT_EQ(to_hex(event), kEvent);
  EXPECT_EQ(event.size(), event_record_bytes(2));
  encode_commit(commit, 3);
  EXPECT_EQ(to_hex(commit), kCommit);
  EXPECT_EQ(commit.size(), commit_record_bytes());
  encode_index_entry(
      entry, {.begin = 4096, .end = 4200, .first = 1, .last = 2, .ingested = 3, .last_batch = 4});
  EXPECT_EQ(to_hex(entry), kIndexEntry);
}

TEST(Segment, DecodesGoldenBytes) {
  const std::string bytes = *from_hex(kHeader) + *from_hex(kEvent) + *from_hex(kCommit);
  const auto header = decode_segment_header(bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->header.base, 4096u);
  EXPECT_EQ(header->header.key, (StreamKey{"r", "/g", "job/algo-1"}));
  RecordReader reader(std::string_view(bytes).substr(header->bytes));
  const auto event = reader.next();
  ASSERT_TRUE(event && *event && (*event)->event);
  EXPECT_EQ((*event)->event->message, "hi");
  const auto commit = reader.next();
  ASSERT_TRUE(commit && *commit);
  EXPECT_EQ((*commit)->last_batch, 3u);
  EXPECT_FALSE(*reader.next());
  EXPECT_EQ(decode_index_entry(*from_hex(kIndexEntry))->last_batch, 4u);
}

TEST(Segment, DetectsEveryChangedBit) {
  const std::string event = *from_hex(kEvent);
  for (size_t bit = 0; bit < event.size() * 8; ++bit) {
    std::string spoilt = event;
    spoilt[bit / 8] = char(spoilt[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(RecordReader(spoilt).next()) << bit;
  }
}

}  // namespace
}  // namespace trainyard::observe
