// Tests requests on behalf of principals: those of campaigns, with the current rights of the
// principal that started them, and those of other servers that are configured as peers.
#include "auth/delegation.hpp"

#include "auth/delegated_access.hpp"
#include "auth/principals.hpp"
#include "base/text.hpp"
#include "dispatch/testing/tenants.hpp"

namespace trainyard::api {
namespace {

using in_memory::signed_request;
using in_memory::Signing;

constexpr const char* kCampaignArn = "arn:aws:trainyard:eu-west-1:123456789012:campaign/streets";

struct DelegatingTenants : TestTenants {
  DelegatedAccess access{settings, services};

  // Returns the record that a campaign stores of the principal of these keys.
  campaign::Principal record_for(const Signing& by) {
    Context context{.region = "eu-west-1", .now = clock.now(), .source_ip = "192.0.2.7"};
    const Principals principals(settings, control);
    if (by.keys.session_token.empty()) {
      EXPECT_TRUE(principals.find_by_key(by.keys.access_key_id, context.principal));
    } else {
      auto resolved = resolve_keys(settings.temporary_key_secret, by.keys.access_key_id,
                                   by.keys.session_token, clock.now());
      context.principal = *principals.find_by_session(resolved.session);
    }
    return *record_of(context, kCampaignArn);
  }
  Signing keys_for(const campaign::Principal& principal) {
    return {access.keys_for(principal), "eu-west-1"};
  }
  // Returns "200", or the body of the error.
  std::string get(const std::string& path, const campaign::Principal& by) {
    const auto reply = s3("GET", path, "", keys_for(by));
    return reply.status == 200 ? "200" : reply.body;
  }
  Signing session(const std::string& role, Duration lifetime, const std::string& policy = "") {
    RoleSession out{.role_arn = "arn:aws:iam::123456789012:role/" + role,
                    .session_name = "work",
                    .assumed = true,
                    .person = "ann",
                    .source_identity = "ann@example.org"};
    if (!policy.empty()) out.policies.push_back(policy);
    out.limited = !policy.empty();
    return keys(out, lifetime);
  }
};

TEST(CampaignRights, AreTheUsersRightsAtEachUse) {
  DelegatingTenants tenants;
  const auto ann = tenants.record_for(tenants.add_user("ann", kReadTrain));
  EXPECT_EQ(ann.arn, "arn:aws:iam::123456789012:user/ann");
  EXPECT_EQ(tenants.get("/data/train/part-0", ann), "200");
  expect_access_denied(
      tenants.get("/bob/secret", ann),
      "User: arn:aws:iam::123456789012:user/ann is not authorized to perform: s3:GetObject on "
      "resource: arn:aws:s3:::bob/secret because no ");
  EXPECT_TRUE(tenants.access.authorise(ann, "s3:GetObject", "*", "eu-west-1").error().kind ==
              Kind::denied);
  tenants.add_user("ann", allow(R"("trainyard:DescribeCampaign")",
                                R"("arn:aws:trainyard:eu-west-1:123456789012:campaign/ann-*")"));
  expect_access_denied(tenants.get("/data/train/part-0", ann), "s3:GetObject");
  EXPECT_TRUE(
      tenants.access.authorise(ann, "trainyard:DescribeCampaign", "campaign/ann-1", "eu-west-1"));
  EXPECT_FALSE(
      tenants.access.authorise(ann, "trainyard:DescribeCampaign", "campaign/bob-1", "eu-west-1"));
  tenants.add_user("ann", kReadTrain);
  EXPECT_EQ(tenants.get("/data/train/part-0", ann), "200") << "given back";

  tenants.identities->remove_user("ann");
  expect_access_denied(tenants.get("/data/train/part-0", ann), "the user no longer exists");
  // A new user with the same name.
  tenants.add_user("ann", kReadTrain);
  policy::User other = *tenants.identities->find_user("ann");
  other.id = "AIDAANOTHER";
  tenants.identities->put(other);
  expect_access_denied(tenants.get("/data/train/part-0", ann), "the user no longer exists");
}

TEST(CampaignRights, AccountJobsToTheUserAndNeedPassRole) {
  DelegatingTenants tenants;
  tenants.add_role("mine", allow(R"("s3:*")", R"("*")"),
                   R"({"Service":"sagemaker.amazonaws.com"})");
  tenants.add_role("bobs", allow(R"("s3:*")", R"("*")"),
                   R"({"Service":"sagemaker.amazonaws.com"})");
  const auto ann = tenants.record_for(tenants.add_user(
      "ann",
      allow(R"("sagemaker:CreateTrainingJob","iam:PassRole")",
            R"("arn:aws:sagemaker:*:*:training-job/*","arn:aws:iam::123456789012:role/mine")")));
  const auto create = [&](const std::string& name, const std::string& role) {
    return tenants.json(
        "SageMaker.CreateTrainingJob",
        R"({"TrainingJobName":")" + name +
            R"(","AlgorithmSpecification":{"TrainingImage":"python","TrainingInputMode":"File"},"RoleArn":"arn:aws:iam::123456789012:role/)" +
            role +
            R"(","OutputDataConfig":{"S3OutputPath":"s3://models/"},"ResourceConfig":{"InstanceType":"ml.m5.large","InstanceCount":1,"VolumeSizeInGB":5},)"
            R"("StoppingCondition":{"MaxRuntimeInSeconds":600}})",
        "sagemaker", tenants.keys_for(ann));
  };
  EXPECT_EQ(create("streets-1", "mine").status, 200);
  EXPECT_EQ(tenants.control.jobs.at({"eu-west-1", "streets-1"})->spec.principal, "ann");
  expect_access_denied(create("streets-2", "bobs").body,
                       "iam:PassRole on resource: arn:aws:iam::123456789012:role/bobs");
}

TEST(CampaignRights, EndWithTheSession) {
  DelegatingTenants tenants;
  tenants.add_role("runner", allow(R"("s3:GetObject")", R"("arn:aws:s3:::*")"), R"({"AWS":"*"})");
  const auto limited = tenants.record_for(tenants.session("runner", 15min, kReadTrain));
  EXPECT_EQ(tenants.get("/data/train/part-0", limited), "200");
  expect_access_denied(tenants.get("/bob/secret", limited), "arn:aws:s3:::bob/secret");
  // Changes of the role apply, and so does the revocation of sessions.
  tenants.add_role(
      "runner",
      R"({"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"},)"
      R"({"Effect":"Deny","Action":"*","Resource":"*","Condition":{"DateLessThan":{"aws:TokenIssueTime":"2026-11-20T09:50:00Z"}}}]})",
      R"({"AWS":"*"})");
  expect_access_denied(tenants.get("/data/train/part-0", limited), "explicit deny");
  tenants.add_role("runner", allow(R"("s3:*")", R"("*")"), R"({"AWS":"*"})");
  EXPECT_EQ(tenants.get("/data/train/part-0", limited), "200");
  tenants.clock.advance(15min);
  expect_access_denied(tenants.get("/data/train/part-0", limited), "the session has expired");

  const auto second = tenants.record_for(tenants.session("runner", 1h));
  EXPECT_EQ(tenants.get("/bob/secret", second), "200");
  policy::Role again = *tenants.identities->find_role("runner");
  again.id = "AROAANOTHER";
  tenants.identities->put(again);
  expect_access_denied(tenants.get("/bob/secret", second), "the role no longer exists");
}

TEST(CampaignRights, OfAJobEndWithItsAttempt) {
  DelegatingTenants tenants;
  const auto job = tenants.record_for(tenants.keys_of("mnist-1"));
  EXPECT_EQ(tenants.get("/data/train/part-0", job), "200");
  expect_access_denied(tenants.get("/bob/secret", job), "arn:aws:s3:::bob/secret");
  tenants.clock.advance(2h);
  EXPECT_EQ(tenants.get("/data/train/part-0", job), "200") << "the attempt still runs";
  // A session assumed with the job's keys expires with the session or the attempt.
  tenants.add_role("runner", kReadTrain, R"({"AWS":"*"})");
  const auto chained =
      tenants.record_for(tenants.keys({.role_arn = "arn:aws:iam::123456789012:role/runner",
                                       .session_name = "chained",
                                       .job_region = "eu-west-1",
                                       .job_name = "mnist-1",
                                       .job_number = 17,
                                       .attempt = 1,
                                       .assumed = true,
                                       .person = "ana"}));
  EXPECT_EQ(tenants.get("/data/train/part-0", chained), "200");
  domain::Job ended = tenants.job("mnist-1", 17);
  ended.attempts.back().state = domain::AttemptState::ended;
  tenants.put_job(ended);
  for (const auto& one : {job, chained})
    expect_access_denied(tenants.get("/data/train/part-0", one),
                         "the job's attempt, with which the session expires, has ended");
  ended.attempts.push_back({.number = 2, .state = domain::AttemptState::running});
  tenants.put_job(ended);
  expect_access_denied(tenants.get("/data/train/part-0", job), "has ended");
}

TEST(CampaignRights, OfAnOwnerOutliveTheKeyButNotTheOwner) {
  DelegatingTenants tenants;
  const auto owner = tenants.record_for(tenants.owner);
  const campaign::Principal before_records;
  for (const auto& one : {owner, before_records}) EXPECT_EQ(tenants.get("/bob/secret", one), "200");
  tenants.identities->remove_key("AKIAOWNER");
  tenants.identities->put(
      policy::AccessKey{.id = "AKIANEW", .user = "owner", .secret = "x", .owner = true});
  for (const auto& one : {owner, before_records}) EXPECT_EQ(tenants.get("/bob/secret", one), "200");
  tenants.identities->remove_key("AKIANEW");
  tenants.identities->put(
      policy::AccessKey{.id = "AKIAEVE", .user = "eve", .secret = "x", .owner = true});
  expect_access_denied(tenants.get("/bob/secret", owner), "its owner's key was removed");
}

TEST(CampaignRights, UseSealedKeysAndStoredRecords) {
  DelegatingTenants tenants;
  const auto ann = tenants.record_for(tenants.add_user("ann", kReadTrain));
  Signing forged = tenants.keys_for(ann);
  std::string bytes = *from_base64(forged.keys.session_token);
  bytes.replace(bytes.find("ann"), 3, "bob");
  forged.keys.session_token = to_base64(bytes);
  EXPECT_NE(
      tenants.s3("GET", "/data/train/part-0", "", forged).body.find("<Code>InvalidToken</Code>"),
      std::string::npos);
  Signing late = tenants.keys_for(ann);
  tenants.clock.advance(DelegatedAccess::kKeysLifetime);
  EXPECT_NE(tenants.s3("GET", "/data/train/part-0", "", late).status, 200);
  EXPECT_EQ(tenants.get("/data/train/part-0", ann), "200") << "new keys";

  const Delegation delegation{
      .kind = PrincipalKind::session,
      .name = "ann",
      .id = "AROA:work",
      .session = {.role_arn = "r", .session_name = "s", .policies = {"{\"a\"}"}},
      .invoked_by = kCampaignArn,
      .source_ip = "192.0.2.7",
      .secure = true};
  const std::string text = *format_delegation(delegation);
  EXPECT_EQ(*format_delegation(*parse_delegation(text)), text);
  for (const std::string wrong : {"", "[]", "{}", R"({"kind":"god","name":"x"})",
                                  R"({"kind":"user"})", R"({"kind":"session","name":"x"})",
                                  R"({"kind":"session","name":"x","session":{"role_arn":"r"}})",
                                  R"({"kind":"user","name":7})"})
    EXPECT_FALSE(parse_delegation(wrong)) << wrong;
  EXPECT_FALSE(parse_delegation(R"({"kind":"user","name":")" + std::string(3000, 'x') + "\"}"));
  EXPECT_FALSE(parse_delegation(std::string(kDelegationBytesMax + 1, ' ')));
}

// Remembers the principals that started campaigns, and runs nothing.
class StartedCampaigns final : public campaign::Campaigns {
 public:
  std::vector<campaign::Principal> started;
  Result<campaign::Plan> plan(const campaign::Definition&, const campaign::Principal&) override {
    return campaign::Plan{};
  }
  Result<campaign::Described> create(const campaign::Definition& definition,
                                     const campaign::Principal& by) override {
    started.push_back(by);
    campaign::Described out;
    out.campaign.definition = definition;
    out.campaign.started_by = by;
    out.campaign.stop_reason = "AccessDenied: why";
    out.comparison.same["learning-rate"] = "0.1";
    return out;
  }
  Result<campaign::Described> describe(const std::string&) override { return not_found("none"); }
  std::vector<campaign::Described> list() override {
    return {*create(*campaign::read_definition(kDefinition), {})};
  }
  Result<campaign::Described> stop(const std::string&) override { return not_found("none"); }
  Result<campaign::QueryResult> query(const std::string&, const campaign::Principal& by) override {
    started.push_back(by);
    return campaign::QueryResult{};
  }
  Result<int64_t> change(const std::string&) override { return int64_t{0}; }
  void object_created(const std::string&, const std::string&) override {}

  static constexpr const char* kDefinition =
      R"({"name":"ann-1","query":"SELECT 1","training_job":{}})";
};

TEST(CampaignRights, AreNeededToStartACampaign) {
  DelegatingTenants tenants;
  StartedCampaigns campaigns;
  tenants.services.campaigns = &campaigns;
  tenants.open();
  const Signing ann = tenants.add_user(
      "ann", allow(R"("trainyard:CreateCampaign")",
                   R"("arn:aws:trainyard:eu-west-1:123456789012:campaign/ann-*")"));
  policy::User user = *tenants.identities->find_user("ann");
  user.inline_policies["list"] = document(allow(R"("trainyard:ListCampaigns")", R"("*")"));
  tenants.identities->put(user);
  const auto create = [&](const std::string& definition, const Signing& by) {
    return tenants.json("Trainyard.CreateCampaign", Json{{"Definition", definition}}.dump(),
                        "trainyard", by);
  };
  const auto made = create(StartedCampaigns::kDefinition, ann);
  ASSERT_EQ(made.status, 200) << made.body;
  EXPECT_EQ(made.json()["StartedBy"], "arn:aws:iam::123456789012:user/ann");
  ASSERT_EQ(campaigns.started.size(), 1u);
  const Delegation started = *parse_delegation(campaigns.started[0].record);
  EXPECT_EQ(started.kind, PrincipalKind::user);
  EXPECT_EQ(started.name, "ann");
  EXPECT_EQ(started.invoked_by, "arn:aws:trainyard:eu-west-1:123456789012:campaign/ann-1");
  EXPECT_EQ(started.source_ip, "192.0.2.7");
  expect_access_denied(create(R"({"name":"bob-1","query":"SELECT 1","training_job":{}})", ann).body,
                       "trainyard:CreateCampaign on resource: "
                       "arn:aws:trainyard:eu-west-1:123456789012:campaign/bob-1");
  expect_access_denied(create("no json", ann).body, "campaign/*");
  expect_access_denied(
      tenants.json("Trainyard.QueryCatalogue", R"({"Statement":"SELECT 1"})", "trainyard", ann)
          .body,
      "trainyard:QueryCatalogue");
  EXPECT_EQ(campaigns.started.size(), 1u);
  // A list shows no values of other users' jobs.
  const auto listed = tenants.json("Trainyard.ListCampaigns", "{}", "trainyard", ann);
  EXPECT_EQ(listed.status, 200) << listed.body;
  EXPECT_EQ(listed.body.find("learning-rate"), std::string::npos) << listed.body;
  EXPECT_EQ(listed.body.find("AccessDenied"), std::string::npos) << listed.body;
}

}  // namespace
}  // namespace trainyard::api
