// Decodes valid and damaged rows of csv, libsvm and records, in pieces of any size, and tests the
// estimates of memory.
#include <gtest/gtest.h>

#include <cmath>

#include "base/bytes/record_io.hpp"
#include "boosting/rows/table_decoder.hpp"
#include "channels/tensor_record.hpp"

namespace trainyard::boosting {
namespace {

std::string shown(float value) {
  if (std::isnan(value)) return "-";
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// Formats a table as "1:0=5,1=6|0*2:1=7|": label, "*" weight, and features by column.
std::string shown(const Table& table) {
  std::string text;
  for (size_t row = 0; row < table.rows(); ++row) {
    text += shown(table.labels[row]);
    if (!table.weights.empty()) text += "*" + shown(table.weights[row]);
    text += ":";
    if (table.is_sparse) {
      for (uint64_t at = table.starts[row]; at < table.starts[row + 1]; ++at)
        text += std::to_string(table.numbers[at]) + "=" + shown(table.values[at]) + ",";
    } else {
      for (uint64_t at = 0; at < table.columns; ++at)
        text += shown(table.values[row * table.columns + at]) + ",";
    }
    text += "|";
  }
  return text;
}

std::string rows_of(std::string_view bytes, const DecoderOptions& options, size_t step = 1 << 20,
                    Table* result = nullptr) {
  Table table;
  TableDecoder decoder(options, table);
  for (size_t at = 0; at < bytes.size(); at += step)
    if (const auto done = decoder.push(bytes.substr(at, step)); !done) return done.error().message;
  if (const auto done = decoder.finish(); !done) return done.error().message;
  if (result) *result = table;
  return shown(table);
}

DecoderOptions of(TableFormat format) {
  DecoderOptions options;
  options.format = format;
  return options;
}
const DecoderOptions kCsv = of(TableFormat::csv), kLibsvm = of(TableFormat::libsvm),
                     kRecords = of(TableFormat::records);

std::string framed(const std::string& message) {
  const auto head = record_head(message.size());
  return std::string(head.data(), head.size()) + message +
         std::string(record_padding(message.size()), '\0');
}

TEST(TableFormat, AcceptsSageMakersContentTypes) {
  const std::pair<const char*, TableFormat> known[] = {
      {"", TableFormat::libsvm},
      {"libsvm", TableFormat::libsvm},
      {"text/x-libsvm", TableFormat::libsvm},
      {"text/libsvm ;charset=utf8", TableFormat::libsvm},
      {"csv", TableFormat::csv},
      {"TEXT/CSV", TableFormat::csv},
      {"text/csv; label_size=1; charset=utf8", TableFormat::csv},
      {"application/x-recordio-protobuf", TableFormat::records},
      {"recordio-protobuf", TableFormat::records}};
  for (const auto& [text, format] : known) {
    const auto found = parse_table_format(text);
    ASSERT_TRUE(found) << text;
    EXPECT_EQ(*found, format) << text;
  }
  EXPECT_EQ(parse_table_format("text/csv;label_size=0").error().message,
            "text/csv;label_size=0 is not an accepted csv ContentType. Optional parameter "
            "label_size must be equal to 1");
  EXPECT_EQ(parse_table_format("image/png").error().message,
            "image/png is not an accepted ContentType: csv, libsvm, parquet, recordio-protobuf, "
            "text/csv, text/libsvm, text/x-libsvm, application/x-parquet, "
            "application/x-recordio-protobuf.");
  EXPECT_EQ(parse_table_format("application/x-parquet").error().message,
            "parquet is not supported by this server: convert the data to csv or "
            "recordio-protobuf");
}

TEST(TableDecoder, ReadsRowsInPiecesOfAnySize) {
  DecoderOptions weighted = kCsv, request = kCsv, plain_libsvm = kLibsvm;
  weighted.has_weights = true;
  request.has_labels = plain_libsvm.has_labels = false;
  const std::tuple<std::string, DecoderOptions, const char*> known[] = {
      {"1,5,6\r\n\n0, +7e0 ,-8\n", kCsv, "1:5,6,|0:7,-8,|"},
      {"1,,6\n0,nan,1", kCsv, "1:-,6,|0:-,1,|"},
      {"1\t5\t6\n0\t7\t8\n", kCsv, "1:5,6,|0:7,8,|"},
      {"1;5\n", kCsv, "1:5,|"},
      {"1|5\n", kCsv, "1:5,|"},
      {"1 5\n", kCsv, "1:5,|"},
      {"1,0.5,6\n0,2,7\n", weighted, "1*0.5:6,|0*2:7,|"},
      {"5,6\n7,8\n", request, "0:5,6,|0:7,8,|"},
      {"1 0:5 3:6\n\n# a comment\n0 1:7 # another\n", kLibsvm, "1:0=5,3=6,|0:1=7,|"},
      {"1:2 3:6 0:5\n0 1:7\n", kLibsvm, "1*2:0=5,3=6,|0*1:1=7,|"},
      {"1 0:5\n0:3\t1:7\n", kLibsvm, "1*1:0=5,|0*3:1=7,|"},
      {"-1.5\n", kLibsvm, "-1.5:|"},
      {"0:5 3:6\n1 2:7\n", plain_libsvm, "0:0=5,3=6,|0:2=7,|"},
      {framed(channels::encode_record({{5, 6}, 1.0})) +
           framed(channels::encode_record({{7, 8}, 0.0})),
       kRecords, "1:0=5,1=6,|0:0=7,1=8,|"},
      {"", kCsv, ""}};
  for (const auto& [bytes, options, rows] : known)
    for (size_t step = 1; step <= bytes.size() + 1; ++step)
      ASSERT_EQ(rows_of(bytes, options, step), rows) << bytes << " " << step;
}

TEST(TableDecoder, GroupsAreConsecutiveRowsOfOneQid) {
  Table table;
  rows_of("1 qid:4 0:1\n0 qid:4 0:2\n1 qid:5 0:3\n", kLibsvm, 1 << 20, &table);
  EXPECT_EQ(table.group_rows, (std::vector<uint32_t>{2, 1}));
  EXPECT_EQ(rows_of("1 qid:4 0:1\n1 0:2\n", kLibsvm),
            "line 2: either all rows of a channel have a qid, or none");
}

TEST(TableDecoder, DividesRowsAmongRanksAndKeepsGroupsTogether) {
  DecoderOptions first = kCsv;
  first.ranks = 2;
  DecoderOptions second = first;
  second.rank = 1;
  const std::string csv = "1,5\n2,6\n3,7\n";
  EXPECT_EQ(rows_of(csv, first), "1:5,|3:7,|");
  EXPECT_EQ(rows_of(csv, second), "2:6,|");
  first.format = second.format = TableFormat::libsvm;
  const std::string groups = "1 qid:1\n2 qid:1\n3 qid:2\n4 qid:3\n";
  EXPECT_EQ(rows_of(groups, first), "1:|2:|4:|");
  EXPECT_EQ(rows_of(groups, second), "3:|");
}

struct WrongRows {
  DecoderOptions options;
  std::string bytes;
  const char* error;
};

TEST(TableDecoder, NamesInvalidRows) {
  DecoderOptions weighted = kCsv, classes = kCsv, logistic = kLibsvm, gamma = kCsv;
  weighted.has_weights = true;
  classes.labels = label_rule("multi:softprob", 3);
  logistic.labels = label_rule("binary:logistic", 0);
  gamma.labels = label_rule("reg:gamma", 0);
  const std::string record = framed(channels::encode_record({{1, 2}, 1.0}));
  const WrongRows wrong[] = {
      {kCsv, "1,2,3\n1,2\n", "line 2: the row has 2 columns, but those before have 3"},
      {kCsv, "1,2\n1,2,3\n", "line 2: the row has 3 columns, but those before have 2"},
      {kCsv, "1\n",
       "line 1: the row has 1 columns, but a label and at least one feature are "
       "needed"},
      {weighted, "1,2\n",
       "line 1: the row has 2 columns, but a label, a weight and at least one "
       "feature are needed"},
      {weighted, "1,-2,3\n", "line 1: the weight -2 is not a finite number of at least 0"},
      {kCsv, "1,2\n3,abc\n", "line 2: column 2: 'abc' is not a number"},
      {kCsv, "1,inf\n", "line 1: column 2: 'inf' is not a number"},
      {kCsv, "1,1e999\n", "line 1: column 2: '1e999' is not a number"},
      {kCsv, "y,x\n1,2\n", "line 1: column 1: 'y' is not a number"},
      {kCsv, "1,2\nnan,3\n", "line 2: the label is NaN"},
      {kCsv, ",3\n", "line 1: column 1: '' is not a number"},
      {classes, "0,1\n3,1\n",
       "line 2: the label 3 is out of range: label must be in [0, num_class): num_class is 3"},
      {classes, "1.5,1\n",
       "line 1: the label 1.5 is out of range: label must be in [0, num_class)"},
      {logistic, "2 0:1\n",
       "line 1: the label 2 is out of range: label must be in [0,1] for logistic regression"},
      {gamma, "0,1\n",
       "line 1: the label 0 is out of range: GammaRegression: label must be "
       "positive"},
      {kLibsvm, "1,2,3\n", "line 1: '1,2,3' does not follow LIBSVM label format"},
      {kLibsvm, "1 2\n", "line 1: '2' is not column:value"},
      {kLibsvm, "1 -1:2\n", "line 1: '-1:2' is not column:value"},
      {kLibsvm, "1 10000000:2\n", "line 1: '10000000:2' is not column:value"},
      {kLibsvm, "1 99999999999999999999:2\n", "line 1: '99999999999999999999:2' is not "},
      {kLibsvm, "1 1:x\n", "line 1: column 1: 'x' is not a finite number"},
      {kLibsvm, "1 1:2 1:3\n", "line 1: the row has two values of column 1"},
      {kLibsvm, "1 qid:x\n", "line 1: 'qid:x' is not qid:number"},
      {kRecords, record.substr(0, record.size() - 4),
       "after record 0: the bytes end within a record"},
      {kRecords, framed(""), "record 1: a record has no features named 'values'"},
      {kRecords, framed(channels::encode_record({{1, 2}, {}})),
       "record 1: a record has no label named 'values'"},
  };
  for (const WrongRows& each : wrong) {
    const std::string error = rows_of(each.bytes, each.options);
    EXPECT_EQ(error.find(each.error), 0u) << error << "\n" << each.error;
  }
}

TEST(TableDecoder, ReportsTooLittleMemory) {
  DecoderOptions options = kCsv;
  options.memory = 100'000;
  std::string csv;
  for (int row = 0; row < 5000; ++row) csv += "1,2,3,4,5\n";
  const std::string error = rows_of(csv, options);
  EXPECT_NE(error.find("needs about"), std::string::npos) << error;
  EXPECT_NE(error.find("more than the 97.7 KiB of this host"), std::string::npos) << error;
  options.memory = 100 << 20;
  EXPECT_EQ(rows_of(csv, options).find("needs about"), std::string::npos);
}

TEST(Table, MemoryGrowsWithRowsAndBins) {
  Table small, large;
  small.columns = large.columns = 10;
  small.values.resize(1000);
  small.labels.resize(100);
  large.values.resize(100'000);
  large.labels.resize(10'000);
  EXPECT_GT(training_bytes(large, {}), 20 * training_bytes(small, {.max_bin = 2}));
  EXPECT_GT(training_bytes(large, {.max_bin = 1024}), training_bytes(large, {.max_bin = 16}));
  EXPECT_GE(training_bytes(large, {.is_exact = true}), large.values.size() * 16);
}

TEST(Table, AppendsRowsOfAnotherTable) {
  Table left, right;
  rows_of("1 0:5\n", kLibsvm, 1 << 20, &left);
  rows_of("0:3 1:7\n2 4:1\n", kLibsvm, 1 << 20, &right);
  append(left, right);
  EXPECT_EQ(shown(left), "1*1:0=5,|0*3:1=7,|2*1:4=1,|");
  EXPECT_EQ(left.columns, 5u);
}

}  // namespace
}  // namespace trainyard::boosting
