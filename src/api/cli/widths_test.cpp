// Tests the pages at the widths of real terminals.
#include <gtest/gtest.h>

#include "cli/cost_view.hpp"
#include "cli/job_view.hpp"
#include "cli/top_view.hpp"

namespace trainyard::cli {
namespace {

constexpr int kWidths[] = {60, 80, 120, 200};
const Instant kAt = from_milliseconds(1'763'631'900'000);  // 09:45:00
const char* const kId = "4b7d0f12-9c3e-4d1a-8f6b-2a5c7e9d1b30";
const char* const kSibling = "4b7d0f12-9c4e-4d1a-8f6b-2a5c7e9d1b30";
// A title for the window, and a broken sequence of UTF-8 that hides an escape.
const char* const kHostile = "\033]0;owned\a\xc3\033[2J";

OutputStyle terminal_of_width(int columns) {
  return {.colours = false, .live = true, .unicode = true, .columns = columns, .rows = 24};
}

JobView training_job() {
  JobView job = *job_view(Json{{"Name", "pytorch-training-2026-11-24-08-21-03-815"},
                               {"Arn", "arn:aws:sagemaker:us-east-1:123456789012:training-job/x"},
                               {"Status", "InProgress"},
                               {"SecondaryStatus", "Downloading"},
                               {"CreationTime", 1'763'631'800.0},
                               {"TrainingStartTime", 1'763'631'840.5},
                               {"Spot", true}});
  job.groups = {{"ml.p3.16xlarge", 1}, {"ml.c5.large", 4}};
  job.currency = "USD", job.cost_millionths = 300'000, job.on_demand_millionths = 1'000'000;
  job.tags = {{"note", "a value with many words, which is longer than a line of most terminals"}};
  HostView host;
  host.name = "algo-1", host.instance_type = "ml.p3.16xlarge", host.machine = "box";
  host.state = "failed", host.cpus = 1, host.memory_bytes = 1 << 30, host.gpus = 1;
  host.failure = std::string("KeyError: 'x' in a long line of train.py") + kHostile;
  host.usage = {{"CPUUtilization", {100, 150}},
                {"MemoryUtilization", {25}},
                {"DiskUtilization", {5}},
                {"GPUUtilization", {90}},
                {"GPUMemoryUtilization", {50}}};
  job.hosts = {host};
  job.metrics = {{"validation:accuracy-of-the-last-epoch", 0.25, kAt, {}, {}}};
  return job;
}

JobView batch_job(const char* id) {
  JobView job = *job_view(Json{{"Name", id},
                               {"DisplayName", std::string("digits") + kHostile},
                               {"Status", "InProgress"},
                               {"SecondaryStatus", "Pending"},
                               {"CreationTime", 1'763'631'895.0}});
  job.groups = {{"1 vCPU, 64 MiB", 1}};
  job.wait_reason = "waits for 8 GPU on machine box (0 free): held by mnist-1 (4), mnist-2 (4)";
  return job;
}

const Json kDescribed{
    {"InputDataConfig",
     {{{"ChannelName", "train"},
       {"InputMode", "File"},
       {"ContentType", "application/x-recordio-protobuf"},
       {"DataSource",
        {{"S3DataSource",
          {{"S3Uri", "s3://a-bucket-of-the-team/datasets/digits/2026-11-24/train/part-0000"},
           {"S3DataDistributionType", "ShardedByS3Key"}}}}}}}},
    {"SecondaryStatusTransitions",
     {{{"Status", "Starting"},
       {"StartTime", 1'763'631'800.0},
       {"EndTime", 1'763'631'840.0},
       {"StatusMessage", "Preparing the instances for training."}},
      {{"Status", "Interrupted"},
       {"StartTime", 1'763'631'840.0},
       {"StatusMessage",
        "The training job was interrupted and starts again: requested by alice; waits for 8 "
        "GPU"}}}}};

TEST(Widths, FitEveryTerminal) {
  for (const int width : kWidths) {
    const OutputStyle style = terminal_of_width(width);
    const std::vector<JobView> jobs{training_job(), batch_job(kId)};
    const std::string pages[] = {
        jobs_table(style, jobs, kAt), job_page(style, jobs[0], kDescribed, kAt),
        job_page(style, jobs[1], Json::object(), kAt), top_page(style, jobs, kAt)};
    for (const auto& page : pages) {
      for (const auto& line : wrap(page, 0)) EXPECT_LE(width_of(line), width) << line;
      EXPECT_EQ(page.find('\033'), std::string::npos) << page;
      EXPECT_EQ(page.find('\a'), std::string::npos) << page;
    }
  }
}

TEST(Widths, LeaveOutColumnsOfJobsAt80Columns) {
  EXPECT_EQ(jobs_table(terminal_of_width(80), {training_job(), batch_job(kId)}, kAt),
            "name                                id        status                    age  ran\n"
            "pytorch-training-…-24-08-21-03-815            InProgress Downloading  1m40s  59s\n"
            "digits?]0;owned???[2J               4b7d0f12  InProgress Pending         5s\n"
            "  waits for 8 GPU on machine box (0 free): held by mnist-1 (4), mnist-2 (4)\n");
}

TEST(Widths, ShowMoreColumnsOfJobsAt120Columns) {
  EXPECT_EQ(jobs_table(terminal_of_width(120), {training_job(), batch_job(kId)}, kAt),
            "name                              id        status                  hosts             "
            "         age  ran             cost\n"
            "pytorch-training…24-08-21-03-815            InProgress Downloading  1 x "
            "ml.p3.16xlarge + 4…  1m40s  59s  0.30 USD (-70%)\n"
            "digits?]0;owned???[2J             4b7d0f12  InProgress Pending      1 x 1 vCPU, 64 "
            "MiB          5s\n"
            "  waits for 8 GPU on machine box (0 free): held by mnist-1 (4), mnist-2 (4)\n");
}

TEST(Widths, KeepWordsWhole) {
  for (const int width : kWidths) {
    const std::string page = job_page(terminal_of_width(width), training_job(), kDescribed, kAt);
    for (const char* word :
         {"Interrupted", "algo-1", "longer", "terminals", "instances", "interrupted", "failed"})
      EXPECT_NE(page.find(word), std::string::npos) << word << " at " << width << "\n" << page;
  }
}

TEST(Widths, KeepNumbersAndLeaveOutBarsOfTop) {
  JobView job = training_job();
  job.hosts[0].state = "running";
  EXPECT_EQ(top_page(terminal_of_width(60), {job}, kAt),
            "trainyard top  1 job on 1 host  2025-11-20 09:45:00Z\n"
            "\n"
            "job                host       cpu  memory    gpu  gpu memory\n"
            "pytorch-…1-03-815  algo-1  150.0%   25.0%  90.0%       50.0%\n");
}

TEST(Widths, ShortenIdsOfCosts) {
  CostView view{
      .currency = "USD", .lines = {{kId, "", 1, 60, 500'000, 500'000}}, .total = {.key = "total"}};
  EXPECT_NE(cost_table(terminal_of_width(80), "job", view).find("\n4b7d0f12  "), std::string::npos);
  EXPECT_NE(cost_table({}, "job", view).find(kId), std::string::npos);
  view.lines[0].display_name = "digits";
  for (const int width : {60, 80}) {
    const std::string page = cost_table(terminal_of_width(width), "job", view);
    EXPECT_NE(page.find("\ndigits  4b7d0f12  "), std::string::npos) << page;
  }
  EXPECT_NE(cost_table({}, "job", view).find("\ndigits  " + std::string(kId)), std::string::npos);
}

TEST(Widths, KeepIdsAndReasonsWholeInAFile) {
  const std::string listed = jobs_table({}, {batch_job(kId)}, kAt);
  EXPECT_NE(listed.find(kId), std::string::npos) << listed;
  EXPECT_NE(listed.find("held by mnist-1 (4), mnist-2 (4)\n"), std::string::npos) << listed;
}

TEST(ShortIds, AreAsLongAsTheyMustBe) {
  const std::string id(kId), sibling(kSibling);
  using Names = std::vector<std::string>;
  EXPECT_EQ(short_ids({id, "mnist"}), (Names{"4b7d0f12", "mnist"}));
  EXPECT_EQ(short_ids({id, sibling}), (Names{"4b7d0f12-9c3", "4b7d0f12-9c4"}));
  EXPECT_EQ(short_ids({id, id + ":7", id + "#1"}), (Names{"4b7d0f12", "4b7d0f12:7", "4b7d0f12#1"}));
}

}  // namespace
}  // namespace trainyard::cli
