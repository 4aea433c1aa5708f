#include "cli/tensorboard/event_file.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "base/bytes/crc.hpp"
#include "base/bytes/little_endian.hpp"

namespace trainyard::cli::tensorboard {
namespace {

constexpr Instant kAt = Instant{Duration{1'500}};

uint32_t masked(std::string_view bytes) {
  const uint32_t sum = Crc32c::of(bytes);
  return (sum >> 15 | sum << 17) + 0xa282ead8u;
}

// Returns the content of a record, after checking its frame.
std::string content_of(const std::string& record) {
  EXPECT_GE(record.size(), 16u);
  const size_t length = size_t(little_endian(record.substr(0, 8)));
  EXPECT_EQ(record.size(), length + 16);
  EXPECT_EQ(little_endian(record.substr(8, 4)), masked(record.substr(0, 8)));
  const std::string content = record.substr(12, length);
  EXPECT_EQ(little_endian(record.substr(12 + length, 4)), masked(content));
  return content;
}

std::string bytes_of_real(double value) {
  std::string bytes;
  append_little_endian(bytes, std::bit_cast<uint64_t>(value), 8);
  return bytes;
}

// RFC 3720's vector for CRC32C, masked as TensorFlow does.
TEST(EventFile, UsesCrc32c) { EXPECT_EQ(Crc32c::of("123456789"), 0xe3069283u); }

TEST(EventFile, StartsWithTheVersion) {
  EXPECT_EQ(content_of(start_record(kAt)), "\x09" + bytes_of_real(1.5) +
                                               "\x1a\x0d"
                                               "brain.Event:2");
}

TEST(EventFile, WritesTimeStepTagAndValueOfScalars) {
  std::string value;
  append_little_endian(value, std::bit_cast<uint32_t>(0.25f), 4);
  const std::string summary_value = "\x0a\x04loss\x15" + value;
  EXPECT_EQ(content_of(scalar_record(kAt, 300, "loss", 0.25)),
            "\x09" + bytes_of_real(1.5) + "\x10\xac\x02" + "\x2a" + char(summary_value.size() + 2) +
                "\x0a" + char(summary_value.size()) + summary_value);
}

TEST(EventFile, WritesHyperparametersAsNumbersOrTexts) {
  const std::string content =
      content_of(hyperparameters_record(kAt, "mnist-1", {{"lr", "0.5"}, {"optimizer", "adam"}}));
  EXPECT_NE(content.find("_hparams_/session_start_info"), content.npos);
  EXPECT_NE(content.find("\x0a\x02lr\x12\x09\x11" + bytes_of_real(0.5)), content.npos);
  EXPECT_NE(content.find("\x0a\x09optimizer\x12\x06\x1a\x04"
                         "adam"),
            content.npos);
  EXPECT_NE(content.find("\x22\x07mnist-1\x29" + bytes_of_real(1.5)), content.npos);
}

TEST(EventFile, WritesLongTextsWhole) {
  const std::string name(300, 'x');
  EXPECT_NE(content_of(scalar_record(kAt, 1, name, 1)).find("\x0a\xac\x02" + name),
            std::string::npos);
}

TEST(EventFile, WritesTheResultAtTheEnd) {
  EXPECT_NE(content_of(end_record(kAt, true)).find("\x08\x01\x11"), std::string::npos);
  EXPECT_NE(content_of(end_record(kAt, false)).find("\x08\x02\x11"), std::string::npos);
}

}  // namespace
}  // namespace trainyard::cli::tensorboard
