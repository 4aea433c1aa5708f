#include "cli/job_reference.hpp"

#include <gtest/gtest.h>

#include "cli/testing/test_client.hpp"

namespace trainyard::cli {
namespace {

const Instant kRequested = from_milliseconds(1'763'631'900'000);

TEST(JobReference, ReadsNamesIdsChildrenNodesAndArns) {
  for (const char* text : {"mnist-1", "nightly_run", "4b7d", "4b7d:7", "4b7d#1", "digits:0"}) {
    const auto reference = parse_job_reference(text);
    ASSERT_TRUE(reference) << reference.error().message;
    EXPECT_EQ(reference->text(), text);
  }
  const auto child = parse_job_reference("arn:aws:batch:us-east-1:123456789012:job/4b7d:7");
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ(child->name, "4b7d");
  EXPECT_EQ(child->child, 7);
  EXPECT_EQ(parse_job_reference("arn:aws:sagemaker:us-east-1:1:training-job/mnist")->name, "mnist");
}

TEST(JobReference, RejectsOtherForms) {
  for (const std::string& text :
       {std::string(), std::string(":7"), std::string("a:"), std::string("a:x"),
        std::string("a:-1"), std::string("a:99999"), std::string("a#"), std::string("a:1#2"),
        std::string("../a"), std::string("a b"), std::string("-a"), std::string("a\n"),
        std::string(600, 'a')}) {
    const auto reference = parse_job_reference(text);
    ASSERT_FALSE(reference) << text;
    EXPECT_EQ(reference.error().kind, Kind::invalid);
    EXPECT_NE(reference.error().message.find("write NAME, ID, ID:CHILD or ID#NODE"),
              std::string::npos);
  }
}

// Jobs of Batch by their id, as the server has them.
struct Jobs {
  struct Row {
    std::string name;
    std::string status = "InProgress";
    int64_t array = 0, nodes = 1;
  };
  std::map<std::string, Row> rows;

  Json shown(const std::string& id, const Row& row) const {
    Json json{{"Name", id},
              {"DisplayName", row.name},
              {"Arn", "arn:aws:batch:eu-west-1:123456789012:job/" + id},
              {"Status", row.status},
              {"CreationTime", 1'763'631'840.0},
              {"InstanceGroups", {{{"InstanceType", "x"}, {"InstanceCount", row.nodes}}}}};
    if (row.array > 0 && id.find(':') == std::string::npos) json["Array"] = {{"Size", row.array}};
    return json;
  }
  Result<Json> answer(const std::string& operation, const Json& input) const {
    if (operation == "ListJobs") {
      const std::string wanted = input["JobReference"];
      Json jobs = Json::array();
      for (const auto& [id, row] : rows)
        if (row.name == wanted || (wanted.size() >= 4 && id.starts_with(wanted)))
          jobs.push_back(shown(id, row));
      return Json{{"Jobs", std::move(jobs)}};
    }
    const std::string name = input["JobName"];
    if (name == "mnist") return Json{{"Name", "mnist"}, {"Status", "InProgress"}};
    const size_t colon = name.find(':');
    const auto found = rows.find(name.substr(0, colon));
    if (found == rows.end()) return not_found("Requested resource not found.");
    if (colon != std::string::npos && std::stoll(name.substr(colon + 1)) >= found->second.array)
      return not_found("Requested resource not found.");
    return shown(name, found->second);
  }
};

class FindJob : public testing::Test {
 protected:
  Result<FoundJob> find(const std::string& text, JobScope scope = JobScope::any) {
    client_.calls.clear();
    return find_job(client_, OutputStyle(), kRequested, text, scope);
  }
  std::string found(const std::string& text, JobScope scope = JobScope::any) {
    const auto job = find(text, scope);
    return job ? job->id() : job.error().message;
  }
  Jobs jobs_{{{"4b7d0001", {"digits", "InProgress", 200}},
              {"4b7d0002", {"letters", "Completed"}},
              {"0aaa0003", {"twice", "InProgress"}},
              {"0aaa0004", {"twice", "Failed"}},
              {"0bbb0005", {"old", "Failed"}},
              {"0bbb0006", {"old", "Completed"}},
              {"0ccc0007", {"under_score", "InProgress"}},
              {"0ddd0008", {"gang", "InProgress", 0, 2}}}};
  ScriptedClient client_{[this](const std::string& operation, const Json& input) {
    return jobs_.answer(operation, input);
  }};
};

TEST_F(FindJob, NeedsOneRequestForAnExactNameOrId) {
  EXPECT_EQ(found("mnist"), "mnist");
  EXPECT_EQ(client_.calls, std::vector<std::string>{"DescribeJob"});
  EXPECT_EQ(found("4b7d0001:7"), "4b7d0001:7");
  EXPECT_EQ(client_.calls, std::vector<std::string>{"DescribeJob"});
}

TEST_F(FindJob, AcceptsUniqueNamesAndBeginningsOfIds) {
  EXPECT_EQ(found("digits"), "4b7d0001");
  EXPECT_EQ(found("digits:199"), "4b7d0001:199");
  EXPECT_EQ(found("under_score"), "0ccc0007");
  EXPECT_EQ(found("4b7d0002"), "4b7d0002");
  EXPECT_EQ(found("0ccc"), "0ccc0007");
  EXPECT_EQ(found("gang#1"), "0ddd0008#1");
  EXPECT_EQ(find("gang#1")->node, 1u);
}

TEST_F(FindJob, ListsSeveralJobsWithStatusAndAge) {
  const auto several = find("twice");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().kind, Kind::conflict);
  EXPECT_EQ(several.error().message,
            "'twice' names 2 jobs; choose one by its id:\n"
            "id        name   status        age\n"
            "0aaa0003  twice  InProgress  1m00s\n"
            "0aaa0004  twice  Failed      1m00s");
  EXPECT_EQ(found("4b7d").substr(0, 19), "'4b7d' names 2 jobs");
}

TEST_F(FindJob, PrefersTheUnfinishedJobForCommandsThatNeedOne) {
  EXPECT_EQ(found("twice", JobScope::unfinished), "0aaa0003");
  EXPECT_TRUE(found("old", JobScope::unfinished)
                  .starts_with("all of the 2 jobs that 'old' names have ended:\nid "))
      << found("old", JobScope::unfinished);
  // One that has ended is found: the command says that it has.
  EXPECT_EQ(found("letters", JobScope::unfinished), "4b7d0002");
}

TEST_F(FindJob, RejectsUnknownJobsChildrenAndNodes) {
  EXPECT_EQ(found("nothing"),
            "job 'nothing' not found in eu-west-1; `trainyard jobs` lists the jobs, with the ids "
            "of Batch jobs");
  EXPECT_EQ(found("digits:200"), "array '4b7d0001' has the children :0 to :199");
  EXPECT_EQ(found("letters:0"), "job '4b7d0002' is not an array: it has no child :0");
  EXPECT_EQ(found("gang#2"), "job '0ddd0008' has the nodes #0 to #1");
  EXPECT_EQ(found("mnist#0"), "job 'mnist' is not a multi-node parallel job of Batch");
  EXPECT_EQ(found("digits#0"), "job '4b7d0001' is not a multi-node parallel job of Batch");
}

TEST_F(FindJob, ReturnsOtherErrorsOfTheServer) {
  ScriptedClient refused(
      [](const std::string&, const Json&) -> Result<Json> { return denied("not you"); });
  const auto job = find_job(refused, OutputStyle(), kRequested, "digits", JobScope::any);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().kind, Kind::denied);
  EXPECT_EQ(refused.calls.size(), 1u);
}

TEST(CandidatesTable, CutsALongList) {
  std::vector<JobView> jobs(13);
  for (JobView& job : jobs) job.name = "id", job.status = "Failed";
  EXPECT_TRUE(candidates_table(OutputStyle(), jobs, kRequested).ends_with("\nand 3 more"));
}

}  // namespace
}  // namespace trainyard::cli
