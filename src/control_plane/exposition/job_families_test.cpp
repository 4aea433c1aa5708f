#include "exposition/job_families.hpp"

#include <gtest/gtest.h>

#include "exposition/cluster_families.hpp"
#include "exposition/text_format.hpp"

namespace trainyard::exposition {
namespace {

std::shared_ptr<domain::Job> running_job(const std::string& name) {
  auto job = std::make_shared<domain::Job>();
  job->key = {"eu-west-1", name};
  job->state = domain::JobState::active;
  job->created = from_milliseconds(1'700'000'000'000);
  job->spec.principal = "ana";
  job->spec.queue.emplace().name = "quick";
  job->spec.groups.push_back({"homogeneousCluster", "ml.m5.large", 2});
  domain::Host host;
  host.state = domain::HostState::running;
  host.machine = "m1";
  host.share = {2, int64_t{1} << 30, 1};
  domain::Attempt attempt;
  attempt.state = domain::AttemptState::running;
  attempt.hosts = {host, host};
  job->attempts.push_back(attempt);
  return job;
}

LatestValue value(const std::string& metric, const std::string& host, double latest, double total) {
  return {metric, host, latest, total, from_milliseconds(1'700'000'001'500)};
}

void expect_lines(const std::string& text, std::initializer_list<std::string> lines) {
  for (const std::string& line : lines)
    EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line << "\n" << text;
}

TEST(JobFamilies, HaveBaseUnitsAndTheLabelsOfTheJob) {
  JobValues values;
  values.last_point = from_milliseconds(1'700'000'001'500);
  values.points_left_out = 7;
  values.values = {value("CPUUtilization", "algo-1", 150, 0), value("train:loss", "", .25, 3),
                   value("MemoryUtilization", "algo-1", 50, 0), value("own", "algo-1", 4, 0),
                   value("InputBytesFetched", "algo-2", 10, 4096)};
  Families families;
  add_job_families({{running_job("digits"), values}}, 100, families);
  const std::string of = "region=\"eu-west-1\",job_name=\"digits\",user=\"ana\",queue=\"quick\"";
  expect_lines(format_text(families, TextFormat::text),
               {"trainyard_job_info{" + of +
                    ",state=\"active\",instance_type=\"ml.m5.large\",display_name=\"\"} 1",
                "trainyard_job_hosts{" + of + "} 2", "trainyard_job_attempts_total{" + of + "} 1",
                "trainyard_job_created_timestamp_seconds{" + of + "} 1700000000",
                "trainyard_job_last_metric_timestamp_seconds{" + of + "} 1700000001.5",
                "trainyard_job_points_left_out_total{" + of + "} 7",
                "trainyard_job_host_cpu_used_cores{" + of + ",host=\"algo-1\"} 1.5",
                "trainyard_job_host_memory_utilization_ratio{" + of + ",host=\"algo-1\"} 0.5",
                "trainyard_job_host_input_fetched_bytes_total{" + of + ",host=\"algo-2\"} 4096",
                "trainyard_job_metric{" + of + ",metric=\"train:loss\"} 0.25",
                "trainyard_job_host_metric{" + of + ",host=\"algo-1\",metric=\"own\"} 4",
                "trainyard_job_series_left_out 0"});
}

TEST(JobFamilies, CountSeriesBeyondTheLimit) {
  JobValues values;
  for (int i = 0; i < 10; ++i) values.values.push_back(value("m" + std::to_string(i), "", i, i));
  Families families;
  add_job_families({{running_job("a"), values}, {running_job("b"), values}}, 15, families);
  expect_lines(format_text(families, TextFormat::text), {"trainyard_job_series_left_out 5"});
}

TEST(JobFamilies, WithoutJobsHaveOnlyTheCountOfSeriesLeftOut) {
  Families families;
  add_job_families({}, 10, families);
  EXPECT_EQ(families.samples(), 1U);
}

TEST(ClusterFamilies, CountJobsHostsAndUsedCapacity) {
  auto waiting = running_job("w");
  waiting->state = domain::JobState::waiting;
  waiting->attempts.clear();
  Families families;
  add_cluster_families({running_job("a"), waiting},
                       {{"m1", "", 8, int64_t{4} << 30, 2}, {"m2", "c5.xlarge", 4, 1 << 30, 0}},
                       families);
  expect_lines(
      format_text(families, TextFormat::text),
      {"trainyard_jobs{state=\"active\"} 1", "trainyard_jobs{state=\"waiting\"} 1",
       "trainyard_queue_jobs{region=\"eu-west-1\",queue=\"quick\",state=\"active\"} 1",
       "trainyard_queue_jobs{region=\"eu-west-1\",queue=\"quick\",state=\"waiting\"} 1",
       "trainyard_hosts{state=\"running\"} 2", "trainyard_machines{kind=\"fixed\"} 1",
       "trainyard_machine_cpus{kind=\"fixed\"} 8", "trainyard_machine_used_cpus{kind=\"fixed\"} 4",
       "trainyard_machine_free_cpus{kind=\"fixed\"} 4",
       "trainyard_machine_used_memory_bytes{kind=\"fixed\"} 2147483648",
       "trainyard_machine_free_accelerators{kind=\"fixed\"} 0",
       "trainyard_machine_free_cpus{kind=\"c5.xlarge\"} 4"});
}

TEST(ClusterFamilies, CountHostsOnRemovedMachinesAsUnknown) {
  Families families;
  add_cluster_families({running_job("a")}, {}, families);
  expect_lines(
      format_text(families, TextFormat::text),
      {"trainyard_machines{kind=\"unknown\"} 0", "trainyard_machine_used_cpus{kind=\"unknown\"} 4",
       "trainyard_machine_free_cpus{kind=\"unknown\"} 0"});
}

}  // namespace
}  // namespace trainyard::exposition
