// TestTenants sets up the API with an owner, buckets and jobs, for tests of what principals may do.
// A test adds users and roles.
//
// Threads: confined to the test's thread.
#pragma once

#include "auth/temporary_keys.hpp"
#include "dispatch/testing/test_server.hpp"
#include "policy/policy.hpp"

namespace trainyard::api {

inline constexpr const char* kTrainer = "arn:aws:iam::123456789012:role/trainer";

inline policy::Document document(const std::string& text,
                                 policy::PolicyKind kind = policy::PolicyKind::identity) {
  auto parsed = policy::parse_policy(text, kind);
  EXPECT_TRUE(parsed) << text;
  return {text, *parsed};
}

inline std::string allow(const std::string& actions, const std::string& resources,
                         const std::string& more = "") {  // more: ,"Condition":{..}
  return R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":[)" + actions +
         R"(],"Resource":[)" + resources + "]" + more + "}]}";
}

inline std::string trust(const std::string& principal) {
  return R"({"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Principal":)" +
         principal + "}}";
}

inline constexpr const char* kAllowEverything =
    R"({"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}})";
inline const std::string kReadTrain = allow(R"("s3:GetObject")", R"("arn:aws:s3:::data/train/*")");

inline void expect_access_denied(const std::string& answer, const std::string& text) {
  EXPECT_NE(answer.find("AccessDenied"), std::string::npos) << answer;
  EXPECT_NE(answer.find(text), std::string::npos) << answer;
}

// Holds the buckets `data`, `models` and `bob`, and two running jobs, `mnist-1` and `rival`. Both
// have the principal ana and the channel s3://data/train/.
struct TestTenants : TestServer {
  std::shared_ptr<policy::Identities> identities = std::make_shared<policy::Identities>(kAccount);
  in_memory::Signing owner;

  explicit TestTenants(bool open_roles = false) {
    settings.keys.clear();
    settings.identities = [this] { return identities; };
    settings.find_image = [](const std::string&) -> Result<domain::Image> {
      return domain::Image{};
    };
    settings.regions = {"eu-west-1"};
    settings.open_roles = open_roles;
    identities->put(policy::AccessKey{
        .id = "AKIAOWNER", .user = "owner", .secret = "owner-secret", .owner = true});
    open();
    for (const char* bucket : {"data", "models", "bob"})
      EXPECT_EQ(s3("PUT", std::string("/") + bucket).status, 200);
    for (const char* key : {"/data/train/part-0", "/data/other/secret", "/models/mnist-1/output/a",
                            "/models/rival/output/model.tar.gz", "/bob/secret"})
      EXPECT_EQ(s3("PUT", key, "bytes").status, 200);
    for (const char* stream : {"mnist-1/algo-1-1", "rival/algo-1-1"})
      EXPECT_TRUE(logs->ensure_stream({"eu-west-1", "/aws/sagemaker/TrainingJobs", stream}));
    add_job("mnist-1", 17);
    add_job("rival", 18);
  }

  domain::Job job(const std::string& name, uint64_t number) {
    domain::Job out;
    out.number = number;
    out.key = {"eu-west-1", name};
    out.account = kAccount;
    out.state = domain::JobState::active;
    out.spec.principal = "ana";
    out.spec.role_arn = kTrainer;
    out.spec.request = Json::object();
    out.spec.output_uri = "s3://models";
    out.spec.checkpoint =
        domain::SyncedDirectory{"s3://models/checkpoints/" + name, "/opt/ml/checkpoints"};
    out.spec.tensorboard = domain::SyncedDirectory{
        domain::tensorboard_uri("s3://models/board", name), "/opt/ml/output/tensorboard"};
    domain::Channel channel;
    channel.name = "train";
    channel.s3_data_type = "S3Prefix";
    channel.s3_uri = "s3://data/train/";
    out.spec.channels.push_back(channel);
    out.spec.groups.push_back({"homogeneousCluster", "ml.m5.large", 1});
    out.attempts.push_back({.number = 1, .state = domain::AttemptState::running});
    return out;
  }
  // Adds the job, or replaces the job with its name.
  void put_job(domain::Job job) {
    const domain::JobKey key = job.key;
    control.jobs[key] = std::make_shared<const domain::Job>(std::move(job));
  }
  void add_job(const std::string& name, uint64_t number) { put_job(job(name, number)); }

  // Issues temporary keys of the session.
  in_memory::Signing keys(const RoleSession& session, Duration lifetime = 1h) {
    const auto made =
        issue_keys(settings.temporary_key_secret, session, clock.now(), lifetime, random);
    return {{made.access_key_id, made.secret_access_key, made.session_token}, "eu-west-1"};
  }
  // Issues the keys of the job's first attempt.
  in_memory::Signing keys_of(const std::string& name) {
    const auto& found = *control.jobs.at({"eu-west-1", name});
    return keys({.role_arn = found.spec.role_arn,
                 .session_name = "SageMaker-j" + std::to_string(found.number) + "a1",
                 .job_region = "eu-west-1",
                 .job_name = name,
                 .job_number = found.number,
                 .attempt = 1,
                 .person = found.spec.principal});
  }
  // Adds a user with an inline policy, and returns the user's keys.
  in_memory::Signing add_user(const std::string& name, const std::string& policy) {
    policy::User made;
    made.name = name;
    made.id = "AIDA" + name;
    made.inline_policies["own"] = document(policy);
    identities->put(made);
    identities->put(
        policy::AccessKey{.id = "AKIA" + name, .user = name, .secret = name + "-secret"});
    return {{"AKIA" + name, name + "-secret", ""}, "eu-west-1"};
  }
  // Adds a role with an inline policy, which `principal` may assume.
  void add_role(const std::string& name, const std::string& policy, const std::string& principal) {
    policy::Role made;
    made.name = name;
    made.id = "AROA" + name;
    made.inline_policies["own"] = document(policy);
    made.trust = document(trust(principal), policy::PolicyKind::trust);
    identities->put(made);
  }
};

}  // namespace trainyard::api
