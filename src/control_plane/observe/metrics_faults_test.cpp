// Fails each disk operation once, during appends, seals and the conversion of old files.
// Acknowledged points must be stored once, and failed appends must leave nothing.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>

#include "base/bytes/crc.hpp"
#include "observe/database.hpp"
#include "observe/metrics.hpp"
#include "observe/testing/samples.hpp"
#include "observe/testing/test_world.hpp"
#include "sqlite/file_watch.hpp"

namespace trainyard::observe {
namespace {

constexpr int64_t kFaultStart = 1'700'000'000'000;

MetricKey fault_key(int number) { return {"r", "n", "m" + std::to_string(number), {}}; }

std::vector<double> values_of(Metrics& metrics, int number) {
  std::vector<double> values;
  const auto samples = metrics.samples(
      {.key = fault_key(number), .from = from_milliseconds(0), .to = from_milliseconds(INT64_MAX)},
      SIZE_MAX);
  EXPECT_TRUE(samples) << samples.error().message;
  if (samples)
    for (const Sample& sample : *samples) values.push_back(sample.sum);
  return values;
}

// Appends until all operations of an append and of a seal have run, and returns the acknowledged
// values.
std::vector<double> append_under_faults(Metrics& metrics) {
  std::vector<double> acknowledged;
  for (int i = 0; i < 40; ++i) {
    const Instant at = from_milliseconds(kFaultStart + i);
    const auto appended = metrics.append(
        {{fault_key(0), sample_of(at, i)}, {fault_key(i % 3 + 1), sample_of(at, i / 7.0)}});
    if (appended) {
      acknowledged.push_back(i);
    } else {
      EXPECT_FALSE(appended.error().message.empty());
      EXPECT_NE(appended.error().kind, Kind::internal) << appended.error().message;
    }
    EXPECT_EQ(values_of(metrics, 0), acknowledged);
  }
  return acknowledged;
}

void check_all_faults(int error_number) {
  for (uint64_t nth = 1;; ++nth) {
    const TemporaryDirectory directory;
    NthFileFault fault(nth, error_number);
    sqlite::FileWatch watch(&fault);
    const MetricSettings settings{.recent_points_max = 12, .files = watch.name()};
    std::vector<double> acknowledged;
    {
      auto metrics = *open_metrics(directory.path(), settings);
      ASSERT_OK(metrics->append({{fault_key(1), sample_of(from_milliseconds(1), 1)}}));
      fault.arm();
      acknowledged = append_under_faults(*metrics);
      EXPECT_GE(acknowledged.size(), 37U) << "one operation has failed";
    }
    const auto metrics = open_metrics(directory.path());
    ASSERT_OK(metrics);
    EXPECT_EQ(values_of(**metrics, 0), acknowledged) << nth;
    ASSERT_OK((*metrics)->retire(from_milliseconds(kFaultStart)));
    EXPECT_EQ(values_of(**metrics, 0), acknowledged) << nth;
    if (!fault.struck()) return;
    ASSERT_LT(nth, 1000u);
  }
}

TEST(MetricsFaults, FullDiskLosesNoAcknowledgedPoint) { check_all_faults(ENOSPC); }
TEST(MetricsFaults, DiskErrorLosesNoAcknowledgedPoint) { check_all_faults(EIO); }

// The schema of a file of version 1.
constexpr const char* kFormerSchema = R"(
  CREATE TABLE series (
    id INTEGER PRIMARY KEY, region BLOB NOT NULL, name_space BLOB NOT NULL, name BLOB NOT NULL,
    dimensions BLOB NOT NULL, five_minutes_to INTEGER NOT NULL DEFAULT 0, hours_to INTEGER NOT NULL DEFAULT 0,
    UNIQUE (region, name_space, name, dimensions));
  CREATE TABLE points (
    series INTEGER NOT NULL, at INTEGER NOT NULL, sequence INTEGER NOT NULL, unit BLOB NOT NULL,
    count REAL NOT NULL, sum REAL NOT NULL, minimum REAL NOT NULL, maximum REAL NOT NULL,
    PRIMARY KEY (series, at, sequence)) WITHOUT ROWID;
  CREATE TABLE writers (
    name BLOB PRIMARY KEY, batch INTEGER NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE series_groups (
    name BLOB PRIMARY KEY, series INTEGER NOT NULL) WITHOUT ROWID)";

// Writes `count` points of each of two series, and returns the samples of the first one.
std::vector<Sample> write_former_file(const std::string& directory, int count) {
  const auto connection = *sqlite::Connection::open(directory + "/metrics.sqlite");
  EXPECT_TRUE(connection->run("PRAGMA journal_mode=WAL"));
  EXPECT_TRUE(connection->run(kFormerSchema));
  EXPECT_TRUE(
      connection->run("PRAGMA user_version=1; BEGIN; INSERT INTO writers VALUES "
                      "(x'77', 5, 9000000000000)"));
  std::vector<Sample> samples;
  for (int series = 1; series <= 2; ++series) {
    auto row = *connection->prepare(
        "INSERT INTO series (id, region, name_space, name, dimensions) VALUES (?, ?, ?, ?, ?)");
    EXPECT_TRUE(row.bind(int64_t{series})
                    .bind_bytes("r")
                    .bind_bytes("n")
                    .bind_bytes("m" + std::to_string(series))
                    .bind_bytes("[]")
                    .run());
  }
  for (int series = 1; series <= 2; ++series)
    for (int i = 0; i < count; ++i) {
      Sample sample = sample_of(from_milliseconds(kFaultStart + i / 2), i / 3.0);
      if (i % 10 == 0) sample = {sample.at, 5, i / 3.0, -1, 1000, "Seconds"};
      auto row = *connection->prepare("INSERT INTO points VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
      row.bind(int64_t{series}).bind(to_milliseconds(sample.at)).bind(int64_t{i % 2});
      row.bind_bytes(sample.unit).bind(sample.count).bind(sample.sum).bind(sample.minimum);
      EXPECT_TRUE(row.bind(sample.maximum).run());
      if (series == 1) samples.push_back(sample);
    }
  EXPECT_TRUE(connection->run("COMMIT"));
  return samples;
}

void check_converted(Metrics& metrics, const std::vector<Sample>& samples) {
  for (int series = 1; series <= 2; ++series) {
    const auto found = metrics.samples({.key = fault_key(series),
                                        .from = from_milliseconds(0),
                                        .to = from_milliseconds(INT64_MAX)},
                                       SIZE_MAX);
    ASSERT_OK(found);
    ASSERT_TRUE(same_samples(*found, samples));
  }
  EXPECT_EQ(*metrics.last_batch("w"), 5U);
}

TEST(MetricsConversion, ConvertsPointsOfVersionOneToBlocks) {
  const TemporaryDirectory directory;
  const auto samples = write_former_file(directory.path(), 40'000);  // more than one transaction
  for (int opening = 0; opening < 2; ++opening) {
    const auto metrics = *open_metrics(directory.path());
    check_converted(*metrics, samples);
  }
  const auto connection = *sqlite::Connection::open(directory.path() + "/metrics.sqlite");
  EXPECT_EQ(*connection->integer("PRAGMA user_version"), 2);
  EXPECT_EQ(*connection->integer("SELECT count(*) FROM sqlite_master WHERE name = 'points'"), 0);
}

TEST(MetricsConversion, ContinuesAfterAFailure) {
  for (uint64_t nth = 1;; ++nth) {
    const TemporaryDirectory directory;
    const auto samples = write_former_file(directory.path(), 300);
    NthFileFault fault(nth, EIO);
    sqlite::FileWatch watch(&fault);
    fault.arm();
    const auto failed = open_metrics(directory.path(), {.files = watch.name()});
    if (failed) check_converted(**failed, samples);
    if (failed && !fault.struck()) return;
    const auto metrics = open_metrics(directory.path());
    ASSERT_OK(metrics);
    check_converted(**metrics, samples);
    ASSERT_LT(nth, 1000u);
  }
}

TEST(MetricsConversion, ConvertsBlocksBackToVersionOne) {
  const TemporaryDirectory directory;
  const auto samples = write_former_file(directory.path(), 40'000);
  const auto recent = sample_of(from_milliseconds(kFaultStart + 30'000), 7);
  ASSERT_OK((*open_metrics(directory.path()))->append({{fault_key(1), recent}}));
  EXPECT_EQ(*downgrade_metrics(directory.path()), 80'001U);
  EXPECT_EQ(*downgrade_metrics(directory.path()), 0U);
  {
    const auto connection = *sqlite::Connection::open(directory.path() + "/metrics.sqlite");
    EXPECT_EQ(*connection->integer("PRAGMA user_version"), 1);
    EXPECT_EQ(*connection->integer("SELECT count(*) FROM points"), 80'001);
    EXPECT_EQ(*connection->integer("SELECT max(sequence) FROM points"), 1);
    ASSERT_OK(connection->run("DELETE FROM points WHERE sum = 7 AND at = " +
                              std::to_string(kFaultStart + 30'000)));
  }
  check_converted(**open_metrics(directory.path()), samples);
}

TEST(MetricsConversion, ConvertsBackAfterAFailure) {
  for (uint64_t nth = 1;; ++nth) {
    const TemporaryDirectory directory;
    const auto samples = write_former_file(directory.path(), 300);
    ASSERT_OK(open_metrics(directory.path()));
    NthFileFault fault(nth, EIO);
    sqlite::FileWatch watch(&fault);
    fault.arm();
    const auto failed = downgrade_metrics(directory.path(), watch.name());
    if (nth % 2 == 0) check_converted(**open_metrics(directory.path()), samples);
    ASSERT_OK(downgrade_metrics(directory.path()));
    check_converted(**open_metrics(directory.path()), samples);
    if (failed && !fault.struck()) return;
    ASSERT_LT(nth, 1000u);
  }
}

TEST(MetricsConversion, HasNothingToConvertBackWithoutMetrics) {
  const TemporaryDirectory directory;
  EXPECT_EQ(*downgrade_metrics(directory.path()), 0U);
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/metrics.sqlite"));
}

TEST(MetricsConversion, RejectsNewerFiles) {
  const TemporaryDirectory directory;
  ASSERT_TRUE(open_metrics(directory.path()));
  {
    const auto connection = *sqlite::Connection::open(directory.path() + "/metrics.sqlite");
    ASSERT_OK(connection->run("PRAGMA user_version=3"));
  }
  EXPECT_EQ(open_metrics(directory.path()).error().kind, Kind::corrupt);
}

TEST(MetricsCorruption, ReportsACorruptBlockAndThenMovesIt) {
  const TemporaryDirectory directory;
  const auto append = [&](Metrics& metrics, int first) {
    std::vector<MetricRecord> records;
    for (int i = first; i < first + 50; ++i)
      records.push_back({fault_key(i % 2), sample_of(from_milliseconds(kFaultStart + i), i)});
    return metrics.append(records);
  };
  {
    const auto metrics = *open_metrics(directory.path());
    ASSERT_OK(append(*metrics, 0));
    ASSERT_OK(metrics->retire(from_milliseconds(kFaultStart)));  // this seals
  }
  {
    const auto connection = *sqlite::Connection::open(directory.path() + "/metrics.sqlite");
    ASSERT_OK(connection->run("UPDATE blocks SET data = x'0102030405' WHERE series = 1"));
  }
  const auto metrics = *open_metrics(directory.path());
  const StatisticsQuery query{
      .key = fault_key(0), .from = from_milliseconds(0), .to = from_milliseconds(INT64_MAX)};
  EXPECT_EQ(metrics->samples(query, SIZE_MAX).error().kind, Kind::corrupt);
  ASSERT_OK(append(*metrics, 50));
  ASSERT_OK(metrics->retire(from_milliseconds(kFaultStart)));
  EXPECT_EQ(values_of(*metrics, 0).size(), 25U);
  EXPECT_EQ(values_of(*metrics, 1).size(), 50U) << "other metrics have lost no points";
  const auto connection = *sqlite::Connection::open(directory.path() + "/metrics.sqlite");
  EXPECT_EQ(*connection->integer("SELECT count(*) FROM corrupt_blocks"), 1);
}

TEST(MetricsCorruption, MovesCorruptRecentPointsAtTheStart) {
  // One row has a wrong checksum; the other has a correct one, but a run without samples.
  std::string invalid_run("\x01\x01\x00\x01\x00\x00", 6);
  const uint32_t checksum = Crc32::of(invalid_run);
  invalid_run.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  for (const std::string& data : {std::string("\x01\x02\x03\x04\x05"), invalid_run}) {
    const TemporaryDirectory directory;
    {
      const auto metrics = *open_metrics(directory.path());
      for (int i = 0; i < 3; ++i)
        ASSERT_OK(metrics->append({{fault_key(0), sample_of(from_milliseconds(kFaultStart + i), i)},
                                   {fault_key(1), sample_of(from_milliseconds(kFaultStart), i)}}));
    }
    const auto count_of = [&](const std::string& table) {
      const auto connection = *sqlite::Connection::open(directory.path() + "/metrics.sqlite");
      return *connection->integer("SELECT count(*) FROM " + table);
    };
    {
      const auto connection = *sqlite::Connection::open(directory.path() + "/metrics.sqlite");
      auto row = *connection->prepare("UPDATE recent SET data = ? WHERE id = 2");
      ASSERT_OK(row.bind_bytes(data).run());
    }
    for (int opening = 0; opening < 2; ++opening) {
      const auto metrics = open_metrics(directory.path());
      ASSERT_OK(metrics);
      EXPECT_EQ(values_of(**metrics, 0), (std::vector<double>{0, 2}));
      EXPECT_EQ(values_of(**metrics, 1), (std::vector<double>{0, 2}));
    }
    EXPECT_EQ(count_of("recent"), 2);
    EXPECT_EQ(count_of("corrupt_recent"), 1);
    const auto metrics = *open_metrics(directory.path());
    ASSERT_OK(metrics->append({{fault_key(0), sample_of(from_milliseconds(kFaultStart + 3), 3)}}));
    ASSERT_OK(metrics->retire(from_milliseconds(kFaultStart)));  // this seals
    EXPECT_EQ(values_of(*metrics, 0), (std::vector<double>{0, 2, 3}));
    EXPECT_EQ(count_of("recent"), 0);
  }
}

TEST(MetricsCorruption, MovesCorruptRecentPointsDuringASeal) {
  const TemporaryDirectory directory;
  const auto metrics = *open_metrics(directory.path());
  ASSERT_OK(metrics->append({{fault_key(0), sample_of(from_milliseconds(kFaultStart), 1)}}));
  {
    const auto connection = *sqlite::Connection::open(directory.path() + "/metrics.sqlite");
    ASSERT_OK(connection->run("UPDATE recent SET data = x'0102030405'"));
  }
  ASSERT_OK(metrics->retire(from_milliseconds(kFaultStart)));
  ASSERT_OK(metrics->append({{fault_key(0), sample_of(from_milliseconds(kFaultStart), 2)}}));
  EXPECT_EQ(values_of(*metrics, 0), (std::vector<double>{2}));
}

TEST(MetricsCorruption, RejectsUnitsThatAreTooLong) {
  const TemporaryDirectory directory;
  const auto metrics = *open_metrics(directory.path());
  const Sample sample = sample_of(from_milliseconds(1), 1, std::string(kUnitBytesMax + 1, 'x'));
  EXPECT_EQ(metrics->append({{fault_key(0), sample}}).error().kind, Kind::invalid);
}

}  // namespace
}  // namespace trainyard::observe
