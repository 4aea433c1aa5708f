// Tests the formatted output of responses of the API.
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/cost_view.hpp"
#include "cli/job_view.hpp"
#include "cli/log_merge.hpp"
#include "cli/status_block.hpp"
#include "cli/top_view.hpp"

namespace trainyard::cli {
namespace {

const OutputStyle kColourless{};
const OutputStyle kLive{
    .colours = false, .live = true, .unicode = false, .columns = 100, .rows = 24};
const Instant kNow = from_milliseconds(1'763'631'900'000);  // 09:45:00

Json job_json() {
  return Json{
      {"Name", "mnist"},
      {"Arn", "arn:aws:sagemaker:us-east-1:123456789012:training-job/mnist"},
      {"Status", "InProgress"},
      {"SecondaryStatus", "Training"},
      {"CreationTime", 1'763'631'800.0},
      {"TrainingStartTime", 1'763'631'840.5},
      {"InstanceGroups", {{{"InstanceType", "ml.m5.large"}, {"InstanceCount", 2}}}},
      {"TrainingTimeInSeconds", 60},
      {"BillableTimeInSeconds", 50},
      {"Spot", true},
      {"Attempts", 2},
      {"Cost", {{"Amount", "0.300000"}, {"OnDemandAmount", "1.000000"}, {"Currency", "USD"}}},
      {"Tags", {{{"Key", "project"}, {"Value", "digits"}}}}};
}

TEST(JobView, FormatsALineOfJobs) {
  const JobView running = *job_view(job_json());
  JobView waiting =
      *job_view(Json{{"Name", "big"},
                     {"Status", "InProgress"},
                     {"SecondaryStatus", "Pending"},
                     {"CreationTime", 1'763'631'895.0},
                     {"WaitReason", "waits for 8 GPUs, which mnist holds"},
                     {"InstanceGroups",
                      {{{"InstanceType", "ml.p3.16xlarge"}, {"InstanceCount", 1}},
                       {{"InstanceType", "ml.c5.large"}, {"InstanceCount", 4}}}},
                     {"Cost", {{"Amount", "0"}, {"OnDemandAmount", "0"}, {"Currency", "USD"}}}});
  EXPECT_EQ(jobs_table(kColourless, {waiting, running}, kNow),
            "name   status               hosts                                   age  ran          "
            "   cost  why\n"
            "big    InProgress Pending   1 x ml.p3.16xlarge + 4 x ml.c5.large     5s              "
            "0.00 USD  waits for 8 GPUs, which mnist holds\n"
            "mnist  InProgress Training  2 x ml.m5.large                       1m40s  59s  0.30 "
            "USD (-70%)\n");
}

TEST(JobView, ShowsBatchJobsByNameAndArraysInOneLine) {
  Json json{{"Name", "4b7d-01"},
            {"DisplayName", "digits"},
            {"Status", "InProgress"},
            {"SecondaryStatus", "Starting"},
            {"CreationTime", 1'763'631'895.0},
            {"InstanceGroups", {{{"InstanceType", "1 vCPU, 64 MiB"}, {"InstanceCount", 1}}}},
            {"Array", {{"Size", 10'000}, {"Running", 64}, {"Succeeded", 120}, {"Failed", 3}}}};
  EXPECT_EQ(jobs_table(kColourless, {*job_view(json)}, kNow),
            "name    id       status                                                   hosts"
            "               age\n"
            "digits  4b7d-01  InProgress Running 64 of 10000, 120 succeeded, 3 failed  1 x 1 vCPU, "
            "64 MiB   5s\n");
  EXPECT_EQ(array_text({200, 4, 0, 12}), "Running 4 of 200, 12 failed");
  EXPECT_EQ(array_text({200, 0, 0, 0}), "Pending 200 of 200");
  EXPECT_EQ(array_text({200, 0, 100, 1}), "Pending 99 of 200, 100 succeeded, 1 failed");
  EXPECT_EQ(array_text({2, 0, 2, 0}), "2 of 2 succeeded");
  EXPECT_EQ(array_text({200, 0, 188, 12}), "188 of 200 succeeded, 12 failed");
}

JobView batch_view(const Json& more = Json::object()) {
  Json json{{"Name", "4b7d"},
            {"DisplayName", "digits"},
            {"Arn", "arn:aws:batch:us-east-1:123456789012:job/4b7d"},
            {"Status", "Stopped"},
            {"CreationTime", 1'763'631'895.0}};
  json.update(more);
  return *job_view(json);
}

TEST(JobView, ShowsTheReasonOfABatchJob) {
  const JobView cancelled = batch_view({{"StatusReason", "wrong data"}});
  EXPECT_NE(jobs_table(kColourless, {cancelled}, kNow).find("  wrong data\n"), std::string::npos);
  EXPECT_NE(
      job_page(kColourless, cancelled, Json::object(), kNow).find("reason        wrong data\n"),
      std::string::npos);
  const JobView failed = batch_view(
      {{"StatusReason", "Essential container in task exited"}, {"FailureReason", "exit code 3"}});
  EXPECT_EQ(failed.reason(), "exit code 3");
  // A waiting job has its reason once.
  const std::string waits =
      job_page(kColourless, batch_view({{"WaitReason", "no GPU"}, {"StatusReason", "no GPU"}}),
               Json::object(), kNow);
  EXPECT_NE(waits.find("why           no GPU\n"), std::string::npos) << waits;
  EXPECT_EQ(waits.find("reason"), std::string::npos) << waits;
}

TEST(JobView, ShowsTheStateOfTheChildrenOnThePageOfAnArray) {
  const JobView array = batch_view({{"Status", "InProgress"},
                                    {"SecondaryStatus", "Starting"},
                                    {"Array", {{"Size", 200}, {"Running", 4}, {"Failed", 12}}}});
  const std::string page = job_page(kColourless, array, Json::object(), kNow);
  EXPECT_TRUE(page.starts_with("4b7d  InProgress (Running 4 of 200, 12 failed)\n")) << page;
  EXPECT_NE(page.find("log           trainyard logs 4b7d\n"), std::string::npos) << page;
}

TEST(JobView, FormatsLabelsOfChildren) {
  JobView child = batch_view();
  child.name = "4b7d:7";
  EXPECT_EQ(label_of(child), "digits:7");
  EXPECT_EQ(label_with_id(child), "digits:7 (4b7d:7)");
  EXPECT_EQ(label_with_id(*job_view(job_json())), "mnist");
}

TEST(JobView, RejectsResponsesWithoutAJob) {
  EXPECT_FALSE(job_view(Json{{"Status", "Completed"}}));
  EXPECT_FALSE(job_view(Json::array()));
  EXPECT_EQ(job_views(Json::object())->size(), 0u);
}

TEST(JobView, ShowsTheBestChildrenOfAnArray) {
  const Json array{{"Name", "4b7d"},
                   {"DisplayName", "grid"},
                   {"Arn", "arn:aws:batch:us-east-1:123456789012:job/4b7d"},
                   {"Status", "Completed"},
                   {"Array",
                    {{"Size", 4},
                     {"Succeeded", 4},
                     {"Metrics",
                      {{{"Name", "loss"},
                        {"Highest", 0.5},
                        {"HighestIndex", 0},
                        {"Lowest", 0.25},
                        {"LowestIndex", 3}}}}}}};
  const JobView view = *job_view(array);
  EXPECT_TRUE(view.of_batch());
  const std::string page =
      job_page(kColourless, view, {{"jobQueue", "arn:aws:batch:us-east-1:1:job-queue/q"}}, kNow);
  EXPECT_NE(page.find("queue         q\n"), std::string::npos) << page;
  EXPECT_NE(page.find("loss        0.5  child 0    0.25  child 3\n"), std::string::npos) << page;
}

TEST(JobView, ShowsAMissingPrice) {
  JobView job = *job_view(job_json());
  job.spot = false;
  job.unpriced = {"ml.x.y"};
  EXPECT_EQ(cost_text(job), "0.30 USD + ?");
}

TEST(JobView, ShowsTimelineHostsChannelsAndOutputsOnThePage) {
  Json json = job_json();
  json["Hosts"] = {{{"Name", "algo-1"},
                    {"InstanceType", "ml.m5.large"},
                    {"Machine", "box"},
                    {"State", "running"},
                    {"StateSince", 1'763'631'840.0},
                    {"Cpus", 2.0},
                    {"MemoryInBytes", 1 << 30}}};
  json["Metrics"] = {{{"Name", "loss"}, {"Value", 0.25}, {"At", 1'763'631'890.0}}};
  const Json described{
      {"AlgorithmSpecification", {{"TrainingImage", "trainyard/trainer"}}},
      {"TensorBoardOutputConfig", {{"S3OutputPath", "s3://b/board"}}},
      {"HyperParameters", {{"epochs", "3"}}},
      {"InputDataConfig",
       {{{"ChannelName", "train"}, {"DataSource", {{"S3DataSource", {{"S3Uri", "s3://b/t"}}}}}}}},
      {"SecondaryStatusTransitions",
       {{{"Status", "Starting"},
         {"StartTime", 1'763'631'800.0},
         {"EndTime", 1'763'631'840.0},
         {"StatusMessage", "Preparing"}},
        {{"Status", "Training"},
         {"StartTime", 1'763'631'840.0},
         {"StatusMessage", "in progress"}}}},
      {"ModelArtifacts", {{"S3ModelArtifacts", "s3://b/m/model.tar.gz"}}}};
  EXPECT_EQ(job_page(kColourless, *job_view(json), described, kNow),
            R"(mnist  InProgress (Training)
hosts         2 x ml.m5.large
image         trainyard/trainer
created       2025-11-20 09:43:20Z (1m40s ago)
ran           59s, 50 s billable of 60 s, 2 attempts
cost          0.30 USD (-70%)
tags          project=digits
parameters    epochs=3

Timeline
since                 status            took                message
2025-11-20 09:43:20Z  Starting           40s  [######....]  Preparing
2025-11-20 09:44:00Z  Training  1m00s so far  [##########]  in progress

Hosts
host    instance     machine  share            state    since
algo-1  ml.m5.large  box      2 cpus, 1.0 GiB  running  1m00s

Channels
channel  from
train    s3://b/t

Metrics
metric  last  at
loss    0.25  2025-11-20 09:44:50Z

Links
model         s3://b/m/model.tar.gz
tensorboard   s3://b/board/mnist/tensorboard-output
log           /aws/sagemaker/TrainingJobs mnist/  (trainyard logs mnist)
arn           arn:aws:sagemaker:us-east-1:123456789012:training-job/mnist
)");
}

TEST(JobView, ShowsTheReasonOfAFailureOnce) {
  Json json = job_json();
  json["Status"] = json["SecondaryStatus"] = "Failed";
  json["FailureReason"] = "AlgorithmError: KeyError: 'x' (algo-1)\nTraceback\n  line 7";
  json["Hosts"] = {{{"Name", "algo-1"},
                    {"State", "failed"},
                    {"FailureReason", "KeyError: 'x' (algo-1)\nTraceback\n  line 7"}}};
  const Json described{{"SecondaryStatusTransitions",
                        {{{"Status", "Failed"},
                          {"StartTime", 1'763'631'840.0},
                          {"StatusMessage", json["FailureReason"]}}}}};
  const std::string page = job_page(kColourless, *job_view(json), described, kNow);
  EXPECT_NE(page.find("failed        AlgorithmError: KeyError: 'x' (algo-1)\n"), std::string::npos)
      << page;
  EXPECT_EQ(page.find("Traceback"), page.rfind("Traceback")) << page;
  EXPECT_NE(page.find("KeyError: 'x' (algo-1)", page.find("Hosts")), std::string::npos) << page;
}

TEST(JobView, WritesCountsOfOneInTheSingular) {
  Json json = job_json();
  json["Hosts"] = {{{"Name", "algo-1"}, {"State", "running"}, {"Cpus", 1.0}, {"Gpus", 1}},
                   {{"Name", "algo-2"}, {"State", "running"}, {"Cpus", 0.5}, {"Gpus", 2}}};
  const std::string page = job_page(kColourless, *job_view(json), Json::object(), kNow);
  EXPECT_NE(page.find("1 cpu, 0 B, 1 GPU "), std::string::npos) << page;
  EXPECT_NE(page.find("0.5 cpus, 0 B, 2 GPUs "), std::string::npos) << page;
}

TEST(JobView, ShowsEachNoteOnALine) {
  Json json = job_json();
  json["Note"] = "each host was scaled";
  json["Notes"] = {"VpcConfig has no effect here: hosts share a network", "and another"};
  const std::string page = job_page(kColourless, *job_view(json), Json::object(), kNow);
  EXPECT_NE(page.find(R"(
note          each host was scaled
note          VpcConfig has no effect here: hosts share a network
note          and another
hosts )"),
            std::string::npos)
      << page;
}

TEST(JobView, DoesNotRepeatTheNoteInTheTimeline) {
  Json json = job_json();
  json["Note"] = "each host was scaled";
  const auto page_with = [&](const std::string& message) {
    const Json described{
        {"SecondaryStatusTransitions",
         {{{"Status", "Completed"}, {"StartTime", 1'763'631'840.0}, {"StatusMessage", message}}}}};
    return job_page(kColourless, *job_view(json), described, kNow);
  };
  for (const char* message : {"It is done. each host was scaled", "each host was scaled"}) {
    const std::string page = page_with(message);
    EXPECT_EQ(page.find("each host was scaled"), page.rfind("each host was scaled")) << page;
  }
  EXPECT_NE(page_with("It is done. each host was scaled").find("  It is done.\n"),
            std::string::npos);
}

TEST(TopPage, DrawsBarsOfEachHost) {
  JobView job = *job_view(job_json());
  HostView host;
  host.name = "algo-1", host.state = "running", host.cpus = 2;
  host.usage = {{"CPUUtilization", {100, 150}}, {"MemoryUtilization", {25}}};
  job.hosts = {host};
  EXPECT_EQ(top_page(kColourless, {job}, kNow),
            "trainyard top  1 job on 1 host  2025-11-20 09:45:00Z\n\n"
            "job    host    state       cpu              memory\n"
            "mnist  algo-1  running  150.0%  [######..]   25.0%  [##......]\n");
  EXPECT_NE(top_page(kColourless, {}, kNow).find("no jobs are running"), std::string::npos);
  OutputStyle low = kLive;
  low.rows = 6;
  job.hosts = {host, host, host};
  EXPECT_NE(top_page(low, {job}, kNow).find("and 2 more hosts"), std::string::npos);
}

TEST(TopPage, CountsRunningChildrenAndNoWaitingHosts) {
  HostView host;
  host.name = "algo-1", host.state = "running", host.cpus = 1;
  host.usage = {{"CPUUtilization", {50}}};
  JobView array = batch_view(
      {{"Status", "InProgress"}, {"Array", {{"Size", 200}, {"Running", 2}, {"Failed", 1}}}});
  JobView child = batch_view({{"Status", "InProgress"}});
  child.name = "4b7d:7", child.hosts = {host};
  JobView other = child;
  other.name = "4b7d:8";
  const JobView waiting = *job_view(job_json());
  const std::string page = top_page(kColourless, {array, child, other, waiting}, kNow);
  EXPECT_TRUE(page.starts_with("trainyard top  1 job on 2 hosts, 1 job waiting  2025")) << page;
  EXPECT_NE(page.find("digits:7  algo-1  running"), std::string::npos) << page;
  EXPECT_NE(page.find("digits:8  algo-1  running"), std::string::npos) << page;
  // Hosts that have ended are not running.
  child.hosts[0].state = "finished";
  EXPECT_NE(top_page(kColourless, {child}, kNow).find("no jobs are running"), std::string::npos);
}

TEST(CostTable, ShowsTheCostOfOneJob) {
  JobView array = batch_view(
      {{"BillableTimeInSeconds", 90},
       {"Array", {{"Size", 3}, {"Succeeded", 3}}},
       {"Cost", {{"Amount", "1.500000"}, {"OnDemandAmount", "1.500000"}, {"Currency", "EUR"}}}});
  EXPECT_EQ(cost_table(kColourless, "job", cost_view_of(array)),
            "job     jobs  host time      cost\n"
            "digits     3      1m30s  1.50 EUR  [##############]\n"
            "total      3      1m30s  1.50 EUR\n");
}

TEST(CostTable, ShowsGroupsAndTheirSum) {
  const Json answer{{"Currency", "EUR"},
                    {"Groups",
                     {{{"Key", "digits"},
                       {"Jobs", 3},
                       {"BillableHostSeconds", 7200},
                       {"Amount", "10.000000"},
                       {"OnDemandAmount", "12.000000"}},
                      {{"Key", ""},
                       {"Jobs", 1},
                       {"BillableHostSeconds", 60},
                       {"Amount", "5.000000"},
                       {"OnDemandAmount", "5.000000"}}}},
                    {"Total",
                     {{"Jobs", 4},
                      {"BillableHostSeconds", 7260},
                      {"Amount", "15.000000"},
                      {"OnDemandAmount", "17.000000"}}},
                    {"Unpriced", {"ml.x.y"}}};
  EXPECT_EQ(cost_table(kColourless, "tag:project", *cost_view(answer)),
            "tag:project  jobs  host time       cost  saved\n"
            "digits          3      2h00m  10.00 EUR   2.00  [##############]\n"
            "(none)          1      1m00s   5.00 EUR         [#######.......]\n"
            "total           4      2h01m  15.00 EUR   2.00\n"
            "not included, since the price is unknown: ml.x.y\n");
  EXPECT_FALSE(cost_view(Json::object()));
}

// -- lines of many hosts

std::vector<std::string> texts(const std::vector<LogLine>& lines) {
  std::vector<std::string> out;
  for (const auto& line : lines) out.push_back(line.text);
  return out;
}

TEST(LogMerge, OrdersLinesByTimeAsFarAsKnown) {
  LogMerge merge;
  merge.mark_unread("a");
  merge.mark_unread("b");
  EXPECT_EQ(merge.unread_streams(), (std::vector<std::string>{"a", "b"}));
  merge.feed("a", {{1, "algo-1", "a1"}, {4, "algo-1", "a4"}}, false);
  EXPECT_TRUE(merge.take_ready().empty());  // b may have an earlier line
  merge.feed("b", {{2, "algo-2", "b2"}}, false);
  EXPECT_EQ(texts(merge.take_ready()), (std::vector<std::string>{"a1", "b2"}));
  EXPECT_EQ(merge.unread_streams(), std::vector<std::string>{"b"});
  merge.feed("b", {}, true);
  EXPECT_EQ(texts(merge.take_ready()), std::vector<std::string>{"a4"});
  merge.feed("a", {}, true);
  EXPECT_TRUE(merge.unread_streams().empty());
  merge.mark_unread("b");
  merge.feed("b", {{3, "algo-2", "late"}}, false);
  EXPECT_EQ(texts(merge.take_ready()), std::vector<std::string>{"late"});
}

TEST(LogMerge, MergesSixtyHosts) {
  LogMerge merge;
  for (int host = 0; host < 60; ++host)
    merge.feed(std::to_string(host),
               {{100 - host, "", std::to_string(host)}, {1000 + host, "", "end"}}, true);
  const auto lines = merge.take_ready();
  ASSERT_EQ(lines.size(), 120u);
  for (size_t i = 1; i < lines.size(); ++i)
    EXPECT_LE(lines[i - 1].at_milliseconds, lines[i].at_milliseconds);
}

TEST(LogLine, ColoursTheHost) {
  EXPECT_EQ(host_of_stream("mnist-1/algo-12-1763631900"), "algo-12");
  EXPECT_EQ(host_of_stream("mnist-1/algo-12-1763631900-2"), "algo-12");
  EXPECT_EQ(host_of_stream("other"), "other");
  EXPECT_EQ(log_line(kColourless, {0, "algo-2", "hello\a"}, 7), "algo-2  | hello?\n");
  EXPECT_EQ(log_line(kColourless, {0, "digits:7", "x"}, 8), "digits:7 | x\n");
  const OutputStyle colours{.colours = true, .live = true, .unicode = true, .columns = 80};
  EXPECT_EQ(log_line(colours, {0, "algo-2", "x"}, 6), "\033[38;5;208malgo-2 │\033[0m x\n");
  EXPECT_EQ(log_line(colours, {0, "digits:1", "x"}, 6).substr(0, 11), "\033[38;5;208m")
      << "child 1 is the second, as algo-2";
}

// -- progress

TEST(StatusBlock, FormatsProgressOnOneLine) {
  EXPECT_EQ(progress_line(kColourless, {"algo-1", "channel train", 512, 1024, false}),
            "channel train      [###########...........]  50%  512 B of 1.0 KiB  algo-1");
  EXPECT_EQ(progress_line(kColourless, {"", "image", 2048, 0, false}),
            "image              [......................]       2.0 KiB");
  EXPECT_EQ(progress_line(kColourless, {"", "model", 2048, 4096, true}),
            "model              [######################] 100%  2.0 KiB");
  OutputStyle narrow = kColourless;
  narrow.columns = 60;
  EXPECT_EQ(progress_line(narrow, {"algo-1", "channel train", 300 << 20, 900 << 20, false}),
            "channel train      [#...]  33%  300 MiB of 900 MiB  algo-1");
}

TEST(StatusBlock, SumsHosts) {
  std::vector<ProgressView> many;
  for (int i = 0; i < 20; ++i)
    many.push_back({"algo-" + std::to_string(i), "channel train", 10, 20, i < 5});
  const auto sums = summed(many);
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].done_bytes, 200);
  EXPECT_EQ(sums[0].total_bytes, 400);
  EXPECT_FALSE(sums[0].finished);
  EXPECT_EQ(sums[0].host, "20 hosts");
  EXPECT_EQ(summed({many[0]})[0].host, "algo-0");
  StatusBlock block(kLive);
  const auto lines = [&](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(block.show("", many)), 1);
  many.resize(3);
  EXPECT_EQ(lines(block.show("", many)), 3);
}

TEST(StatusBlock, StaysBelowTheLog) {
  StatusBlock block(kLive);
  EXPECT_EQ(block.show("mnist  Training", {}), "mnist  Training\n");
  EXPECT_EQ(block.show("mnist  Training", {}), "");  // unchanged
  EXPECT_EQ(block.hide(), "\033[1A\r\033[J");
  EXPECT_EQ(block.hide(), "");
  EXPECT_EQ(block.draw(), "mnist  Training\n");
  EXPECT_EQ(block.clear(), "\033[1A\r\033[J");
  EXPECT_EQ(block.clear(), "");
}

TEST(StatusBlock, KeepsTheLineOfATransferThatAllHostsFinished) {
  const ProgressView half{"algo-1", "channel train", 1, 2, false};
  const ProgressView whole{"algo-2", "channel train", 2, 2, true};
  for (const OutputStyle* style : {&kColourless, &kLive}) {
    StatusBlock block(*style);
    block.show("mnist  Training", {});
    EXPECT_EQ(block.settle({half, whole}), "");
    const std::string stays = block.settle({whole, whole});
    EXPECT_NE(stays.find("100%  4 B  2 hosts\n"), std::string::npos) << stays;
    EXPECT_EQ(stays.ends_with("mnist  Training\n"), style->live);
    EXPECT_EQ(block.settle({whole, whole}), "");
  }
}

TEST(StatusBlock, WritesHeadlinesButNoMovingBarsToAFile) {
  StatusBlock block(kColourless);
  const ProgressView half{"", "upload train", 1, 2, false};
  EXPECT_EQ(block.show("a", {half}), "a\n");
  EXPECT_EQ(block.show("a", {half}), "");
  EXPECT_EQ(block.show("b\033[2J", {}), "b?[2J\n");
  EXPECT_EQ(block.hide() + block.draw() + block.clear(), "");
}

}  // namespace
}  // namespace trainyard::cli
