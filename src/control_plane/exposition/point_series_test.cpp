#include "exposition/point_series.hpp"

#include <gtest/gtest.h>

namespace trainyard::exposition {
namespace {

std::string metric_label(const std::string& metric) {
  const PointSeries series = series_of(metric, "");
  EXPECT_EQ(series.labels.size(), 1U);
  return series.labels[0].second;
}

TEST(PointSeries, KeepsLongNamesThatDifferAtTheirEndDifferent) {
  const std::string longest(kLabelBytesMax, 'x');
  EXPECT_EQ(metric_label(longest), longest);
  const std::string one = metric_label(longest + "1"), two = metric_label(longest + "2");
  EXPECT_EQ(one.size(), kLabelBytesMax);
  EXPECT_EQ(one.substr(0, 240), std::string(239, 'x') + "~");
  EXPECT_EQ(one.find_first_not_of("0123456789abcdef", 240), std::string::npos) << one;
  EXPECT_NE(one, two);
  EXPECT_EQ(one, metric_label(longest + "1"));
}

TEST(PointSeries, CutsNamesBetweenCharacters) {
  std::string text;
  while (text.size() <= kLabelBytesMax) text += "é";
  const std::string cut = metric_label(text);
  EXPECT_EQ(cut[238], '~') << "239 bytes are not a whole number of characters of 2 bytes";
  EXPECT_EQ(cut.size(), kLabelBytesMax - 1);
}

}  // namespace
}  // namespace trainyard::exposition
