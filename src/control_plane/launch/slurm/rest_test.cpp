#include "launch/slurm/rest.hpp"

#include <gtest/gtest.h>

#include "base/testing/test_clock.hpp"
#include "base/text.hpp"
#include "launch/slurm/rest_submission.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::launch {
namespace {

// Recorded from slurmrestd 22.05.8, and those with a version from 24.11.5.
std::string recorded_rest(const std::string& name) {
  const auto text = os::read_file("slurm/testdata/" + name);
  EXPECT_TRUE(text) << name;
  return text ? *text : "";
}

std::string token_until(int64_t seconds) {
  return "e30." + to_base64("{\"exp\":" + std::to_string(seconds) + ",\"sun\":\"root\"}") + ".sig";
}

TEST(SlurmRestAnswers, ReadsTheJobsThatAreOurs) {
  const auto jobs = read_rest_jobs(recorded_rest("rest_jobs.json"), "root");
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().name, "trainyard-3fa91c-j17a1");
  EXPECT_EQ(jobs->front().state, "PENDING");
  EXPECT_EQ(jobs->front().reason, "Resources");
  EXPECT_EQ(jobs->front().expected_start.substr(0, 10), "2026-11-24");
}

TEST(SlurmRestAnswers, NamesTheOwnersOfJobs) {
  EXPECT_EQ(read_rest_jobs(recorded_rest("rest_jobs.json"), "root")->front().user, "");
  EXPECT_EQ(read_rest_jobs(recorded_rest("rest_jobs.json"), "slurm")->front().user, "root");
  const auto nameless =
      read_rest_jobs(R"({"jobs":[{"job_id":5,"user_name":"","comment":"trainyard/1 a"}]})", "root");
  ASSERT_TRUE(nameless);
  EXPECT_TRUE(nameless->empty()) << "it is not the server's";
}

TEST(SlurmRestAnswers, ReadsNodes) {
  const auto nodes = read_rest_nodes(recorded_rest("rest_nodes.json"));
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 3u);
  EXPECT_EQ(nodes->at(0).name, "n1");
  EXPECT_EQ(nodes->at(0).address, "10.219.77.11");
  EXPECT_EQ(nodes->at(0).cpus, 16);
  EXPECT_EQ(nodes->at(0).memory_mib, 60'000);
  EXPECT_EQ(nodes->at(0).partitions, (std::vector<std::string>{"train", "short", "down"}));
  EXPECT_EQ(nodes->at(1).states.back(), "DRAIN");
  EXPECT_EQ(nodes->at(1).reason, "bad disk");
  EXPECT_EQ(nodes->at(2).gpus, 4);
}

class SlurmRestVersion : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Current, SlurmRestVersion,
                         testing::Values("v0.0.40", "v0.0.41", "v0.0.42"),
                         [](const auto& info) { return "v" + std::string(info.param).substr(5); });

TEST_P(SlurmRestVersion, ReadsRecordedJobs) {
  const auto jobs =
      read_rest_jobs(recorded_rest("rest_jobs_" + std::string(GetParam()) + ".json"), "trainyard");
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 1u) << "the other is not ours";
  const SlurmJob& job = jobs->front();
  EXPECT_EQ(job.id, 7u);
  EXPECT_EQ(job.user, "root");
  EXPECT_EQ(job.name, "trainyard-3fa91c-j17a1");
  EXPECT_EQ(job.state, "PENDING");
  EXPECT_EQ(job.reason, "Resources");
  EXPECT_EQ(job.expected_start.substr(0, 10), "2026-12-01");
  EXPECT_FALSE(job.requeued);
  EXPECT_FALSE(job.preempted);
}

TEST_P(SlurmRestVersion, ReadsRecordedNodes) {
  const auto nodes =
      read_rest_nodes(recorded_rest("rest_nodes_" + std::string(GetParam()) + ".json"));
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 3u);
  EXPECT_EQ(nodes->at(0).address, "10.219.77.11");
  EXPECT_EQ(nodes->at(0).states, std::vector<std::string>{"ALLOCATED"});
  EXPECT_EQ(nodes->at(0).cpus, 16);
  EXPECT_EQ(nodes->at(0).cpus_allocated, 16);
  EXPECT_EQ(nodes->at(0).memory_mib, 60'000);
  EXPECT_EQ(nodes->at(0).memory_allocated_mib, 100);
  EXPECT_EQ(nodes->at(0).partitions.front(), "train");
  EXPECT_EQ(nodes->at(1).states.back(), "DRAIN");
  EXPECT_EQ(nodes->at(1).reason, "bad disk");
  EXPECT_EQ(nodes->at(2).gpus, 4);
}

TEST_P(SlurmRestVersion, SubmitsInItsForms) {
  const RestVersion* version = find_rest_version(GetParam());
  ASSERT_NE(version, nullptr);
  SlurmJobRequest request;
  request.nodes = {"n1", "n3"};
  request.per_node.memory_mib = 512;
  request.time_limit_minutes = 9;
  request.per_node.gpus = 2;
  request.placement.gpu_type = "t4";
  request.placement.exclusive = true;
  const auto sent = parse_json(rest_submission(*version, request));
  ASSERT_TRUE(sent);
  const Json& job = (*sent)["job"];
  EXPECT_EQ(job["nodes"], "2");
  EXPECT_EQ(job["required_nodes"], (Json{"n1", "n3"}));
  EXPECT_EQ(job["memory_per_node"], (Json{{"set", true}, {"number", 512}}));
  EXPECT_EQ(job["time_limit"], (Json{{"set", true}, {"number", 9}}));
  EXPECT_EQ(job["tres_per_node"], "gres/gpu:t4:2");
  EXPECT_EQ(job["shared"], Json::array({"none"}));
  EXPECT_TRUE(job["environment"].is_array());
}

TEST_P(SlurmRestVersion, SubmitsComponents) {
  SlurmJobRequest request;
  request.name = "a";
  request.nodes = {"n1"};
  request.placement.licenses = "matlab:1";
  request.placement.partition = "train";
  request.others = {{{"n2", "n3"}, {6, 50, 2}}};
  for (const char* name : {"v0.0.38", GetParam()}) {
    const auto sent = parse_json(rest_submission(*find_rest_version(name), request));
    ASSERT_TRUE(sent && !sent->contains("job") && (*sent)["jobs"].size() == 2) << name;
    const Json &first = (*sent)["jobs"][0], &second = (*sent)["jobs"][1];
    EXPECT_EQ(first["name"], "a");
    EXPECT_EQ(second["name"], "a.1");
    EXPECT_EQ(second["cpus_per_task"], 6);
    EXPECT_EQ(second["tasks"], 2);
    EXPECT_EQ(second["partition"], "train");
    EXPECT_TRUE(first.contains("licenses") && !second.contains("licenses")) << name;
  }
}

TEST_P(SlurmRestVersion, PowersNodes) {
  TestClock clock;
  os::TemporaryDirectory directory;
  const std::string file = directory.path() + "/token";
  ASSERT_TRUE(os::write_file(file, token_until(clock.now().time_since_epoch() / Duration(1s) + 9)));
  std::vector<RestRequest> requests;
  RestAnswer answer{200, R"({"errors":[]})"};
  const auto send = [&](const RestRequest& request) -> Result<RestAnswer> {
    requests.push_back(request);
    return answer;
  };
  const auto slurm = *slurm_by_rest({"http://s", GetParam(), "root", file}, send, clock);
  EXPECT_TRUE(slurm->power_up({"n1", "n2"}));
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[1].method, "POST");
  EXPECT_EQ(requests[1].url, "http://s/slurm/" + std::string(GetParam()) + "/node/n2");
  EXPECT_EQ(requests[1].body, R"({"state":["POWER_UP"]})");
  EXPECT_TRUE(slurm->power_down({"n1"}));
  EXPECT_EQ(requests[2].body, R"({"state":["POWER_DOWN"]})");
  const auto old = *slurm_by_rest({"http://s", "v0.0.38", "root", file}, send, clock);
  EXPECT_EQ(old->power_up({"n1"}).error().kind, Kind::invalid);
  EXPECT_EQ(requests.size(), 3u);
}

TEST(SlurmRestAnswers, JoinsComponents) {
  const auto jobs = read_rest_jobs(
      R"({"jobs":[
        {"job_id":6,"het_job_id":{"set":true,"infinite":false,"number":5},
         "het_job_offset":{"set":true,"infinite":false,"number":1},"user_name":"root",
         "job_state":["RUNNING"],"nodes":"n[2-3]","name":"a.1","comment":"trainyard/1 a"},
        {"job_id":5,"het_job_id":5,"het_job_offset":0,"user_name":"root","job_state":"RUNNING",
         "nodes":"n1","name":"a","comment":"trainyard/1 a"},
        {"job_id":9,"het_job_id":8,"het_job_offset":1,"user_name":"root","job_state":"RUNNING",
         "comment":"trainyard/1 b"}]})",
      "root");
  ASSERT_TRUE(jobs && jobs->size() == 1);
  EXPECT_EQ(jobs->front().id, 5u);
  EXPECT_EQ(jobs->front().name, "a");
  EXPECT_EQ(jobs->front().nodes, "n1,n[2-3]");
  EXPECT_EQ(jobs->front().component_nodes, (std::vector<std::string>{"n1", "n[2-3]"}));
}

TEST(SlurmRestAnswers, AcceptsTheFormsOfNewerVersions) {
  const auto jobs = read_rest_jobs(
      R"({"jobs":[{"job_id":{"set":true,"infinite":false,"number":5},"user_name":"trainyard",
          "job_state":["RUNNING","COMPLETING"],"comment":"trainyard/1 a"}]})",
      "trainyard");
  ASSERT_TRUE(jobs && jobs->size() == 1);
  EXPECT_EQ(jobs->front().id, 5u);
  EXPECT_EQ(jobs->front().state, "COMPLETING");
}

TEST(SlurmRestAnswers, TellsErrorsApart) {
  struct Case {
    int status;
    const char* body;
    Kind kind;
  };
  for (
      const Case& each :
      {Case{500, R"({"errors":[{"error_code":2000,"error":"Invalid partition name"}]})",
            Kind::invalid},
       Case{500, R"({"errors":[{"error":"Unspecified error","errno":-1}]})", Kind::unavailable},
       Case{500, R"({"errors":[{"error_number":2017,"error":"Invalid job id specified"}]})",
            Kind::not_found},
       Case{
           500,
           R"({"errors":[{"error_number":5004,"error":"Socket timed out on send/recv operation"}]})",
           Kind::unavailable},
       Case{400, R"({"errors":[{"description":"Disabled key: \"required_nodes\""}]})",
            Kind::invalid},
       Case{
           200,
           R"({"status":[{"error":{"code":2017,"message":"Invalid job id specified"}}],"errors":[]})",
           Kind::not_found},
       Case{
           200,
           R"({"status":[{"error":{"code":2009,"message":"Access/permission denied"}}],"errors":[]})",
           Kind::invalid},
       Case{401, "Authentication failure", Kind::denied}, Case{503, "", Kind::unavailable}}) {
    const auto answer = check_rest_answer(each.status, each.body);
    ASSERT_FALSE(answer) << each.body;
    EXPECT_EQ(answer.error().kind, each.kind) << answer.error().message;
  }
  EXPECT_TRUE(check_rest_answer(200, R"({"errors":[]})"));
  EXPECT_TRUE(check_rest_answer(200, R"({"status":[{"error":{"code":0,"message":"No error"}}]})"));
}

// As slurmrestd 24.11.5 answered, by v0.0.40 to v0.0.42.
TEST(SlurmRestAnswers, TellErrorsOfNewerVersionsApart) {
  struct Case {
    int status;
    int number;
    const char* description;
    const char* error;
    Kind kind;
  };
  const char* const submits = "Batch job submission failed";
  const char* const updates = "Job update requested failed";
  for (const Case& each :
       {Case{500, 2053, submits, "Requested reservation is invalid", Kind::invalid},
        Case{504, 5004, submits, "Socket timed out on send/recv operation", Kind::unavailable},
        Case{502, 1800, submits, "Unable to contact slurm controller (connect failure)",
             Kind::unavailable},
        Case{511, 1007, "Unable to query jobs", "Protocol authentication error", Kind::denied},
        Case{404, 2017, updates, "Invalid job id specified", Kind::not_found},
        Case{500, 2084, updates, "Job has already finished", Kind::not_found},
        Case{500, 2010, updates, "Invalid user id", Kind::invalid},
        // of a slurmctld that hangs, or has ended
        Case{500, 1000, updates, "Unexpected message received", Kind::unavailable},
        Case{500, 1, "Signal request failed", "Operation not permitted", Kind::unavailable}}) {
    const Json body = {{"errors",
                        {{{"description", each.description},
                          {"error_number", each.number},
                          {"error", each.error},
                          {"source", "slurm_submit_batch_job()"}}}},
                       {"warnings", Json::array()}};
    const auto answer = check_rest_answer(each.status, dump(body));
    ASSERT_FALSE(answer) << each.error;
    EXPECT_EQ(answer.error().kind, each.kind) << answer.error().message;
    EXPECT_NE(answer.error().message.find(each.error), std::string::npos);
  }
  EXPECT_EQ(check_rest_answer(511, R"({"errors":[],"warnings":[]})").error().kind, Kind::denied);
}

TEST(SlurmRestAnswers, CheckTheTokenBeforeItIsUsed) {
  const Instant now(Duration(1'000'000'000));
  EXPECT_TRUE(check_token(token_until(1'000'001), now));
  const auto expired = check_token(token_until(1'000'000), now);
  ASSERT_FALSE(expired);
  EXPECT_EQ(expired.error().kind, Kind::denied);
  EXPECT_NE(expired.error().message.find("expired at 1970-01-12"), std::string::npos)
      << expired.error().message;
  for (const char* wrong : {"", "secret", "a.b.c", "a.e30"})
    EXPECT_FALSE(check_token(wrong, now)) << wrong;
}

TEST(SlurmRest, SendsTheTokenOfTheFileWithEachRequest) {
  TestClock clock;
  os::TemporaryDirectory directory;
  const std::string file = directory.path() + "/token";
  const auto far = clock.now().time_since_epoch() / Duration(1s) + 100;
  std::vector<RestRequest> requests;
  RestAnswer answer{200, R"({"errors":[],"job_id":7})"};
  auto slurm = slurm_by_rest(
      {"http://slurm.lan:6820/", "v0.0.38", "ana", file},
      [&](const RestRequest& request) -> Result<RestAnswer> {
        requests.push_back(request);
        return answer;
      },
      clock);
  ASSERT_TRUE(slurm) << slurm.error().message;
  SlurmJobRequest request;
  request.nodes = {"n1", "n2"};
  request.per_node.cpus = 6;
  request.per_node.gpus = 4;
  request.script = "#!/bin/sh\n";
  request.placement.gpu_type = "h100";
  EXPECT_FALSE((*slurm)->submit(request)) << "the file is missing";
  ASSERT_TRUE(os::write_file(file, "SLURM_JWT=" + token_until(far) + "\n"));
  EXPECT_EQ(*(*slurm)->submit(request), 7u);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].url, "http://slurm.lan:6820/slurm/v0.0.38/job/submit");
  EXPECT_EQ(requests[0].headers[0].second, "ana");
  EXPECT_EQ(requests[0].headers[1].second, token_until(far));
  const auto sent = parse_json(requests[0].body);
  ASSERT_TRUE(sent);
  EXPECT_EQ((*sent)["job"]["nodelist"], "n1,n2");
  EXPECT_EQ((*sent)["job"]["nodes"], 2);
  EXPECT_EQ((*sent)["job"]["tasks"], 2);
  EXPECT_EQ((*sent)["job"]["cpus_per_task"], 6);
  EXPECT_EQ((*sent)["job"]["gres"], "gpu:h100:4");
  EXPECT_EQ((*sent)["script"], "#!/bin/sh\n");
  answer = {500, R"({"errors":[{"error_number":2017,"error":"Invalid job id specified"}]})"};
  EXPECT_TRUE((*slurm)->cancel(7, "removed-x")) << "it has ended";
  EXPECT_EQ(requests.back().method, "DELETE");
  EXPECT_EQ((*slurm)->jobs().error().kind, Kind::not_found);
  ASSERT_TRUE(os::write_file(file, token_until(far - 200)));
  const auto jobs = (*slurm)->jobs();
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().kind, Kind::denied);
  EXPECT_NE(jobs.error().message.find("expired"), std::string::npos) << jobs.error().message;
  ASSERT_TRUE(os::write_file(file, token_until(far)));
  request.user = {"alice", 1001, 100};
  answer = {200, R"({"errors":[],"job_id":8})"};
  EXPECT_EQ(*(*slurm)->submit(request), 8u);
  EXPECT_EQ(requests.back().headers[0].second, "alice") << "with the same token";
  EXPECT_EQ(requests.back().headers[1].second, token_until(far));
  EXPECT_TRUE((*slurm)->check_user(request.user));
  EXPECT_EQ(requests.back().url, "http://slurm.lan:6820/slurm/v0.0.38/reservations");
  answer = {401, "Authentication failure"};
  EXPECT_EQ((*slurm)->check_user(request.user).error().kind, Kind::denied);
  EXPECT_EQ(slurm_by_rest({"http://x", "v9", "ana", file}, {}, clock).error().kind, Kind::invalid);
}

}  // namespace
}  // namespace trainyard::launch
