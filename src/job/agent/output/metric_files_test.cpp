#include "agent/output/metric_files.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmath>

#include "os/files.hpp"
#include "os/temporary_directory.hpp"
#include "wire/codec.hpp"

namespace trainyard::agent {
namespace {

const Instant kNow = from_milliseconds(1'763'631'900'000);

TEST(MetricLine, IsANameAValueAndATime) {
  struct Row {
    const char* line;
    const char* name;  // nullptr: no metric
    double value = 0;
    Duration before = 0ms;  // now
  };
  const std::vector<Row> rows = {
      {R"({"MetricName": "loss", "Value": 0.25, "Timestamp": 1763631899.5, "IterationNumber": 7})",
       "loss", 0.25, 500ms},
      {R"({"MetricName": "loss", "Value": 3, "Timestamp": 1763631899, "Step": 7})", "loss", 3, 1s},
      {R"({"MetricName": "loss", "Value": -1e-3})", "loss", -1e-3},
      {R"({"MetricName": "loss", "Value": 1, "Timestamp": 5})", "loss", 1},
      {R"({"MetricName": "loss", "Value": 1, "Timestamp": 1e300})", "loss", 1},
      {R"({"MetricName": "loss", "Value": 1, "Timestamp": "noon"})", "loss", 1},
      {R"({"MetricName": "loss", "Value": "1"})", nullptr},
      {R"({"MetricName": "loss", "Value": NaN})", nullptr},  // Python's form
      {R"({"MetricName": "loss"})", nullptr},
      {R"({"MetricName": "", "Value": 1})", nullptr},
      {R"({"Value": 1})", nullptr},
      {R"({"MetricName": "loss", "Val)", nullptr},
      {"[]", nullptr},
      {"", nullptr},
  };
  for (const auto& row : rows) {
    const auto point = parse_metric_line(row.line, kNow);
    ASSERT_EQ(point.has_value(), row.name != nullptr) << row.line;
    if (!point) continue;
    EXPECT_EQ(point->name, row.name) << row.line;
    EXPECT_EQ(point->value, row.value) << row.line;
    EXPECT_EQ(point->at, kNow - row.before) << row.line;
    EXPECT_FALSE(point->of_host);
  }
  EXPECT_FALSE(parse_metric_line(
      R"({"MetricName": ")" + std::string(kMetricNameBytesMax + 1, 'x') + R"(", "Value": 1})",
      kNow));
  EXPECT_FALSE(parse_metric_line(
      R"({"MetricName": "loss", "Value": 1})" + std::string(kMetricLineBytesMax, ' '), kNow));
}

class MetricFilesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(os::make_directories(place())); }
  std::string place() const { return directory_.path() + "/" + kMetricFilesDirectory; }
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(os::write_file(place() + "/" + name, text));
  }
  static std::string line(const std::string& name, int value) {
    return "{\"MetricName\": \"" + name + "\", \"Value\": " + std::to_string(value) + "}";
  }
  static std::vector<double> values(const std::vector<wire::MetricPoint>& points) {
    std::vector<double> values;
    for (const auto& point : points) values.push_back(point.value);
    return values;
  }
  std::vector<wire::MetricPoint> read_rest() {
    std::vector<wire::MetricPoint> all;
    files_.read_rest(base_, kNow, [&](std::vector<wire::MetricPoint> points) {
      EXPECT_LE(points.size(), kMetricPointsPerPassMax);
      all.insert(all.end(), points.begin(), points.end());
      return true;
    });
    return all;
  }
  os::TemporaryDirectory directory_;
  const Tree base_ = *Tree::open(directory_.path());
  MetricFiles files_;
  using Values = std::vector<double>;
};

TEST_F(MetricFilesTest, ReadsLinesAsFilesGrow) {
  EXPECT_TRUE(files_.read_new(base_, kNow).empty());
  std::string text = line("loss", 1) + "\n" + line("loss", 2).substr(0, 9);
  write("7.json", text);
  EXPECT_EQ(values(files_.read_new(base_, kNow)), Values{1});
  EXPECT_TRUE(files_.read_new(base_, kNow).empty()) << "the second is being written";
  text += line("loss", 2).substr(9) + "\nnoise\n" + line("loss", 3);
  write("7.json", text);
  write("8.json", line("other", 9) + "\n");
  EXPECT_EQ(values(files_.read_new(base_, kNow)), (Values{2, 9}));
  EXPECT_EQ(values(read_rest()), Values{3}) << "the last line needs no end";
  EXPECT_TRUE(read_rest().empty());
  write("8.json", "");
  EXPECT_TRUE(files_.read_new(base_, kNow).empty());
  write("8.json", line("other", 4) + "\n" + line("other", 5) + "\n");
  EXPECT_EQ(values(files_.read_new(base_, kNow)), (Values{4, 5}))
      << "a file that is shorter was written anew";
}

TEST_F(MetricFilesTest, OtherFilesAreIgnored) {
  ASSERT_TRUE(os::make_directories(place() + "/folder.json"));
  write("folder.json/1.json", line("deep", 1) + "\n");
  write("notes.txt", line("text", 1) + "\n");
  ASSERT_TRUE(os::write_file(directory_.path() + "/secret", line("secret", 1) + "\n"));
  ASSERT_EQ(::symlink("../../../secret", (place() + "/link.json").c_str()), 0);
  EXPECT_TRUE(files_.read_new(base_, kNow).empty());
  ASSERT_TRUE(os::remove_all(place()));
  EXPECT_TRUE(read_rest().empty());
}

TEST_F(MetricFilesTest, SkipsLinksFifosAndDevices) {
  ASSERT_TRUE(os::make_directories(directory_.path() + "/machine"));
  ASSERT_TRUE(os::write_file(directory_.path() + "/machine/1.json", line("secret", 1) + "\n"));
  ASSERT_EQ(::mkfifo((place() + "/fifo.json").c_str(), 0666), 0);
  ASSERT_EQ(::mknod((place() + "/zero.json").c_str(), S_IFCHR | 0666, makedev(1, 5)), 0);
  EXPECT_TRUE(read_rest().empty());
  ASSERT_TRUE(os::remove_all(place()));
  ASSERT_EQ(::symlink("../../machine", place().c_str()), 0);
  EXPECT_TRUE(read_rest().empty()) << "the directory is a link";
  ASSERT_TRUE(os::remove_all(directory_.path() + "/output"));
  ASSERT_TRUE(os::make_directories(directory_.path() + "/elsewhere/metrics/sagemaker"));
  ASSERT_TRUE(os::write_file(directory_.path() + "/elsewhere/metrics/sagemaker/1.json",
                             line("secret", 1) + "\n"));
  ASSERT_EQ(::symlink("elsewhere", (directory_.path() + "/output").c_str()), 0);
  EXPECT_TRUE(read_rest().empty()) << "a directory above it is a link";
}

TEST_F(MetricFilesTest, ReadsLongFilesToTheEnd) {
  std::string text;
  size_t lines = 0;
  for (; text.size() < 3 * kMetricBytesPerPassMax; lines++) text += line("loss", 1) + "\n";
  text += std::string(2 * kMetricBytesPerPassMax, 'x') + "\n" + line("loss", 2);
  write("1.json", text);
  EXPECT_LT(files_.read_new(base_, kNow).size(), lines);
  const auto rest = read_rest();
  ASSERT_FALSE(rest.empty());
  EXPECT_EQ(rest.back().value, 2) << "what is too long to be a line is passed over";
}

TEST_F(MetricFilesTest, SparseFilesDoNotDelayTheEnd) {
  write("1.json", line("loss", 1) + "\n");
  ASSERT_EQ(::truncate((place() + "/1.json").c_str(), off_t{1} << 43), 0) << "8 TiB of nothing";
  EXPECT_EQ(values(read_rest()), Values{1});
}

// Points of one pass are one batch: an unlimited one would not fit a frame, or the memory.
TEST_F(MetricFilesTest, LimitsThePointsOfAPass) {
  constexpr size_t kFiles = 5, kLines = 4'500;
  const std::string name(kMetricNameBytesMax, 'n');
  std::string text;
  for (size_t i = 0; i < kLines; ++i) text += line(name, 1) + "\n";
  for (size_t i = 0; i < kFiles; ++i) write(std::to_string(i) + ".json", text);
  size_t found = 0, passes = 0;
  for (; found < kFiles * kLines && passes < 10; ++passes) {
    auto points = files_.read_new(base_, kNow);
    ASSERT_LE(points.size(), kMetricPointsPerPassMax);
    found += points.size();
    EXPECT_LE(wire::encode(wire::MetricBatch{0, std::move(points)}).size(), wire::kFrameBytesMax);
  }
  EXPECT_EQ(found, kFiles * kLines) << "the rest is read in the next passes";
  EXPECT_TRUE(files_.read_new(base_, kNow).empty());
}

TEST_F(MetricFilesTest, ReadsAFileWithManyNamesPassByPass) {
  constexpr size_t kNames = 20, kLines = 2'000;
  std::string text;
  for (size_t i = 0; i < kLines; ++i) text += line("loss", 1) + "\n";
  write("0.json", text);
  for (size_t i = 1; i < kNames; ++i)
    ASSERT_EQ(::link((place() + "/0.json").c_str(),
                     (place() + "/" + std::to_string(i) + ".json").c_str()),
              0);
  EXPECT_EQ(read_rest().size(), kNames * kLines);
}

TEST_F(MetricFilesTest, ReadRestEndsWhenTheConsumerReturnsFalse) {
  std::string text;
  for (size_t i = 0; i < 3 * kMetricPointsPerPassMax; ++i)
    text += "{\"MetricName\":\"a\",\"Value\":1}\n";
  write("1.json", text);
  int passes = 0;
  files_.read_rest(base_, kNow,
                   [&](const std::vector<wire::MetricPoint>&) { return ++passes < 2; });
  EXPECT_EQ(passes, 2);
}

}  // namespace
}  // namespace trainyard::agent
