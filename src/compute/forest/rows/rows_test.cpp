// Decodes valid and damaged rows of csv and protobuf records, in pieces of any size.
#include <gtest/gtest.h>

#include "base/bytes/little_endian.hpp"
#include "forest/rows/row_decoder.hpp"

namespace trainyard::forest {
namespace {

constexpr RowFormat kCsvPlain = {RowFormat::Type::csv, false};
constexpr RowFormat kCsvLabel = {RowFormat::Type::csv, true};
constexpr RowFormat kRecord = {RowFormat::Type::record, true};

// Formats rows as "1,2|3,4=1|", with "=" before a label; returns the error if there is one.
std::string rows_of(std::string_view bytes, RowFormat format, size_t dimensions,
                    size_t step = 1 << 20) {
  RowDecoder decoder(format, dimensions);
  std::string text;
  const RowCallback take = [&](std::span<const float> features, std::optional<double> label) {
    for (const float value : features) text += std::to_string(int(value)) + ",";
    text.pop_back();
    text += (label ? "=" + std::to_string(int(*label)) : "") + "|";
    return ok();
  };
  for (size_t at = 0; at < bytes.size(); at += step)
    if (const auto done = decoder.push(bytes.substr(at, step), take); !done)
      return done.error().message;
  const auto done = decoder.finish(take);
  return done ? text : done.error().message;
}

std::string framed(const std::string& message) {
  const auto head = record_head(message.size());
  return std::string(head.data(), head.size()) + message +
         std::string(record_padding(message.size()), '\0');
}

TEST(ContentType, AcceptsSageMakersTypes) {
  const std::tuple<const char*, RowFormat::Type, bool> known[] = {
      {"", RowFormat::Type::record, true},
      {"application/x-recordio-protobuf", RowFormat::Type::record, true},
      {"text/csv", RowFormat::Type::csv, true},
      {"text/csv;label_size=0", RowFormat::Type::csv, false},
      {"text/csv; charset=utf-8; label_size=1", RowFormat::Type::csv, true},
  };
  for (const auto& [text, type, has_label] : known) {
    const auto format = parse_content_type(text);
    ASSERT_TRUE(format) << text;
    EXPECT_EQ(format->type, type);
    EXPECT_EQ(format->has_label, has_label);
  }
  EXPECT_EQ(parse_content_type("text/csv;label_size=2").error().message,
            "'label_size=2' is not one of ['label_size=0', 'label_size=1']");
  EXPECT_EQ(parse_content_type("text/libsvm").error().message,
            "'text/libsvm' is not one of ['text/csv', 'application/x-recordio-protobuf']");
}

TEST(CsvRows, AreDecodedInPiecesOfAnySize) {
  const std::string text = "1,2\r\n\n 3 , +4e0\n5,-6";
  for (size_t step = 1; step <= text.size(); ++step)
    EXPECT_EQ(rows_of(text, kCsvPlain, 2, step), "1,2|3,4|5,-6|") << step;
  EXPECT_EQ(rows_of("1,2,3\n0,4,5\n", kCsvLabel, 2), "2,3=1|4,5=0|");
  EXPECT_EQ(rows_of("", kCsvPlain, 2), "");
}

TEST(CsvRows, ErrorsNameLineAndColumn) {
  const std::tuple<const char*, RowFormat, const char*> wrong[] = {
      {"1,2\n3\n", kCsvPlain,
       "line 2: the row has 1 columns, but feature_dim 2 with label_size=0 needs 2"},
      {"1,2,3", kCsvPlain,
       "line 1: the row has 3 columns, but feature_dim 2 with label_size=0 needs 2"},
      {"1,2", kCsvLabel,
       "line 1: the row has 2 columns, but feature_dim 2 with label_size=1 needs 3"},
      {"1,nan\n", kCsvPlain, "line 1: column 2: 'nan' is not a finite number"},
      {"1,2\n1,inf\n", kCsvPlain, "line 2: column 2: 'inf' is not a finite number"},
      {"1,1e99\n", kCsvPlain, "line 1: column 2: '1e99' is not a finite number"},
      {"a,b\n1,2\n", kCsvPlain, "line 1: column 1: 'a' is not a finite number"},
      {"1,\n", kCsvPlain, "line 1: column 2: '' is not a finite number"},
      {"1,2x", kCsvPlain, "line 1: column 2: '2x' is not a finite number"},
  };
  for (const auto& [text, format, message] : wrong)
    for (const size_t step : {size_t{1}, size_t{100}})
      EXPECT_EQ(rows_of(text, format, 2, step), message);
  const std::string endless(kRowBytesMax + 1, '1');
  EXPECT_EQ(rows_of(endless, kCsvPlain, 2, 1 << 16), "line 1 is longer than 4.0 MiB");
}

TEST(RecordRows, AreDecodedInPiecesOfAnySize) {
  const std::string bytes = framed(encode_record({{1, 2}, 1.0})) +
                            framed(encode_record({{3, 4}, std::nullopt})) +
                            framed(encode_record({{5, 6}, 0.0}));
  for (size_t step = 1; step <= bytes.size(); step += 3)
    EXPECT_EQ(rows_of(bytes, kRecord, 2, step), "1,2=1|3,4|5,6=0|");
}

TEST(RecordRows, ErrorsNameTheRecord) {
  const std::string one = framed(encode_record({{1, 2}, 1.0}));
  EXPECT_EQ(rows_of(one + one.substr(0, one.size() - 5), kRecord, 2),
            "after record 1: the bytes end within a record");
  EXPECT_EQ(rows_of(one + "not a record", kRecord, 2),
            "record 2: a record does not begin with RecordIO's magic");
  EXPECT_EQ(rows_of(one, kRecord, 3), "record 1: a record has 2 features, but feature_dim is 3");
  EXPECT_EQ(rows_of(framed(encode_record({{1, std::numeric_limits<float>::quiet_NaN()}, {}})),
                    kRecord, 2),
            "record 1: feature 1 of a record is not a finite number");
  EXPECT_EQ(rows_of(framed(""), kRecord, 2), "record 1: a record has no features named 'values'");
  std::string cut = encode_record({{1, 2}, {}});
  cut.resize(cut.size() - 3);
  EXPECT_EQ(rows_of(framed(cut), kRecord, 2),
            "record 1: a protobuf field is longer than its message");
}

std::string field(uint64_t number, const std::string& text) {
  return std::string(1, char(number << 3 | 2)) + char(text.size()) + text;
}
// Returns a record whose features are a tensor in field `number` of Value.
std::string record_with(uint64_t number, const std::string& tensor) {
  return field(1, field(1, "values") + field(2, field(number, tensor)));
}

TEST(TensorRecord, DecodesTensorsOfEveryType) {
  std::string doubles;
  append_little_endian(doubles, std::bit_cast<uint64_t>(7.0), 8);
  append_little_endian(doubles, std::bit_cast<uint64_t>(-8.0), 8);
  std::string single;  // values that are not packed
  for (const float value : {9.0f, 10.0f}) {
    single += char(1 << 3 | 5);
    append_little_endian(single, std::bit_cast<uint32_t>(value), 4);
  }
  const std::string minus_one = std::string(9, '\xff') + '\x01';
  const std::tuple<std::string, std::vector<float>> known[] = {
      {record_with(3, field(1, doubles)), {7, -8}},
      {record_with(7, field(1, '\x05' + minus_one)), {5, -1}},
      {record_with(2, single), {9, 10}},
      // sparse: the key 1 of 2
      {record_with(7, field(1, "\x05") + field(2, "\x01") + field(3, "\x02")), {0, 5}},
      // other fields are skipped
      {field(3, "uid") + record_with(3, field(1, doubles)) + field(5, "x"), {7, -8}},
  };
  for (const auto& [message, features] : known) {
    TensorRecord record;
    const auto decoded = decode_record(message, 2, record);
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(record.features, features);
  }
}

TEST(TensorRecord, RejectsInvalidTensors) {
  const std::tuple<std::string, const char*> wrong[] = {
      {record_with(7, field(1, "\x05") + field(2, "\x02")),
       "a sparse record has the key 2, but feature_dim is 2"},
      {record_with(7, field(1, "\x05") + field(2, std::string("\x00\x01", 2))),
       "a sparse record has 2 keys and 1 values"},
      {record_with(7, field(1, "\x05") + field(2, "\x01") + field(3, "\x03")),
       "a record has 3 features, but feature_dim is 2"},
      {record_with(9, "abc"), "the value has no tensor of numbers"},
      {record_with(2, field(1, "abc")), "a protobuf message ends within a number"},
      {record_with(2, std::string("\x08\x01", 2)),
       "the values of a tensor have a different type from the tensor"},
      {std::string(11, '\xff'), "a number of a protobuf message is too long"},
      {std::string(1, '\x02'), "a protobuf field has the number 0"},
      {std::string(1, '\x0b'), "a protobuf field has an unknown type"},
  };
  for (const auto& [message, text] : wrong) {
    TensorRecord record;
    const auto decoded = decode_record(message, 2, record);
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().message, text);
  }
}

}  // namespace
}  // namespace trainyard::forest
