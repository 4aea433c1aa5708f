#include "train/table.hpp"

#include <gtest/gtest.h>

namespace trainyard::train {
namespace {

TEST(Csv, ParsesRowsOfFeaturesAndALabel) {
  const auto table = parse_csv("1,2.5,0\r\n\n-3, 4e1 ,7\n");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->columns, 2u);
  EXPECT_EQ(table->features, (std::vector<float>{1, 2.5, -3, 40}));
  EXPECT_EQ(table->labels, (std::vector<int32_t>{0, 7}));
  EXPECT_EQ(table->row(1)[1], 40);
}

TEST(Csv, AnEmptyTextHasNoRows) {
  EXPECT_EQ(parse_csv("")->rows(), 0u);
  EXPECT_EQ(parse_csv("\n\n")->rows(), 0u);
}

TEST(Csv, ErrorsNameLineAndColumn) {
  const struct {
    const char* text;
    const char* why;
  } rows[] = {
      {"pixel,label\n1,2\n", "line 1, column 1: 'pixel'"},
      {"1,2,3\n1,2\n", "line 2: 2 columns, but earlier lines have 3"},
      {"1,2,3\n1,,3\n", "line 2, column 2: ''"},
      {"1,2,3.5\n", "integer"},
      {"1,2,-1\n", "integer"},
      {"1,2,1e30\n", "integer"},
      {"nan,2,1\n", "not a number"},
      {"inf,2,1\n", "not a number"},
      {"1e99,2,1\n", "not a number"},
      {"5\n", "no features"},
      {"1;2;3\n", "not a number"},
  };
  for (const auto& row : rows) {
    const auto table = parse_csv(row.text);
    ASSERT_FALSE(table) << row.text;
    EXPECT_EQ(table.error().kind, Kind::invalid);
    EXPECT_NE(table.error().message.find(row.why), std::string::npos) << table.error().message;
  }
  EXPECT_FALSE(parse_csv(std::string(3 * (kCsvColumnsMax + 1), ',') + "1\n"));
}

}  // namespace
}  // namespace trainyard::train
