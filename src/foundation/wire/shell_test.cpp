#include "wire/shell.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"

namespace trainyard::wire {
namespace {

// docs/formats/shell.md has these bytes.
const std::pair<ShellFrame, const char*> kGolden[] = {
    {ShellInput{"ls\n"},
     "04000000"
     "01"
     "6c730a"},
    {ShellInputEnds{},
     "01000000"
     "02"},
    {ShellResize{80, 24},
     "09000000"
     "03"
     "50000000"
     "18000000"},
    {ShellOutput{"ok"},
     "03000000"
     "04"
     "6f6b"},
    {ShellEnded{137, "gone"},
     "09000000"
     "05"
     "89000000"
     "676f6e65"},
    {ShellCredit{4096},
     "05000000"
     "06"
     "00100000"},
};

TEST(Shell, GoldenBytes) {
  for (const auto& [frame, hex] : kGolden) {
    EXPECT_EQ(to_hex(encode_shell(frame)), hex);
    ShellDecoder decoder;
    decoder.feed(*from_hex(hex));
    const auto again = decoder.next();
    ASSERT_TRUE(again && *again) << hex;
    EXPECT_EQ(encode_shell(**again), encode_shell(frame));
  }
}

TEST(Shell, DecodesFramesThatArriveInPieces) {
  std::string all;
  for (const auto& [frame, hex] : kGolden) all += encode_shell(frame);
  ShellDecoder decoder;
  size_t frames = 0;
  for (const char byte : all) {
    decoder.feed({&byte, 1});
    const auto next = decoder.next();
    ASSERT_TRUE(next);
    frames += next->has_value();
  }
  EXPECT_EQ(frames, std::size(kGolden));
}

TEST(Shell, DecodesANegativeExitCode) {
  const auto frame = decode_shell_payload(encode_shell_payload(ShellEnded{-1, ""}));
  EXPECT_EQ(std::get<ShellEnded>(*frame).exit_code, -1);
}

TEST(Shell, RejectsInvalidFramesAsCorrupt) {
  for (const char* hex : {"", "00", "07", "0261", "0350000000", "030000000018000000",
                          "035000000011270000", "05000000", "06ffffffff", "060000"}) {
    const auto frame = decode_shell_payload(*from_hex(hex));
    ASSERT_FALSE(frame) << hex;
    EXPECT_EQ(frame.error().kind, Kind::corrupt);
  }
  EXPECT_FALSE(decode_shell_payload(std::string(kShellFrameBytesMax + 1, '\1')));
  ShellDecoder decoder;
  decoder.feed(std::string("\xff\xff\xff\x7f", 4));
  EXPECT_FALSE(decoder.next());
}

}  // namespace
}  // namespace trainyard::wire
