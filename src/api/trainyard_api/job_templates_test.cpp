#include <gtest/gtest.h>

#include "operations/testing/operation_caller.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/job_template.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

TEST(NamesSecret, RecognisesNamesOfSecrets) {
  for (const char* name :
       {"HF_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "wandb-api-key",
        "apiKey", "SECRET", "client.secret", "SSH_PRIVATE_KEY", "token", "GitHubToken", "TOKEN_"})
    EXPECT_TRUE(names_secret(name)) << name;
  for (const char* name : {"", "_", "MAX_TOKENS", "TOKENIZERS_PARALLELISM", "AWS_ACCESS_KEY_ID",
                           "KEY", "SORT_KEY", "epochs", "PASSWORD_FILE", "secretary"})
    EXPECT_FALSE(names_secret(name)) << name;
}

struct TemplateWorld : OperationsWorld, ::testing::Test {
  TemplateWorld() : OperationsWorld(trainyard_api::add_job_templates) {
    context.principal.arn = "arn:aws:iam::123456789012:user/ann";
  }
  static own::PutJobTemplateRequest named(const std::string& name,
                                          const std::string& request = R"({"RoleArn":"r"})") {
    own::PutJobTemplateRequest out;
    out.template_name = name;
    out.training_job_request = request;
    return out;
  }
  void put(const own::PutJobTemplateRequest& request) {
    const auto done = call<own::PutJobTemplate>(request);
    EXPECT_TRUE(done) << done.failure(own::kService).message;
  }
  own::ListJobTemplatesResponse list(int64_t most = 50, const std::string& token = "") {
    own::ListJobTemplatesRequest request;
    request.max_results = most;
    if (!token.empty()) request.next_token = token;
    const auto found = call<own::ListJobTemplates>(request);
    EXPECT_TRUE(found);
    return found ? *found : own::ListJobTemplatesResponse();
  }
  std::string names(const own::ListJobTemplatesResponse& found) {
    std::string all;
    for (const own::JobTemplate& each : *found.templates) all += *each.template_name + " ";
    return all;
  }
};

TEST_F(TemplateWorld, SavesReplacesAndDeletes) {
  EXPECT_EQ(names(list()), "");
  auto first = named("digits", R"({"HyperParameters":{"lr":"0.1"},"Unknown":{"secret":"x"}})");
  first.description = "with a description";
  first.secret_environment = {"HF_TOKEN"};
  put(first);
  const auto found = list();
  ASSERT_EQ(found.templates->size(), 1u);
  const own::JobTemplate& saved = found.templates->front();
  EXPECT_EQ(saved.training_job_request, R"({"HyperParameters":{"lr":"0.1"}})");
  EXPECT_EQ(saved.description, "with a description");
  EXPECT_EQ(saved.secret_environment, std::vector<std::string>{"HF_TOKEN"});
  EXPECT_EQ(saved.saved_by, "arn:aws:iam::123456789012:user/ann");
  EXPECT_EQ(saved.save_time, clock.now());
  put(named("digits"));
  EXPECT_EQ(list().templates->front().training_job_request, R"({"RoleArn":"r"})");
  own::DeleteJobTemplateRequest gone;
  gone.template_name = "digits";
  EXPECT_TRUE(call<own::DeleteJobTemplate>(gone));
  EXPECT_EQ(names(list()), "");
  EXPECT_EQ(refusal<own::DeleteJobTemplate>(gone),
            "ValidationException: The job template digits does not exist");
}

TEST_F(TemplateWorld, ListsARegionByNameInPages) {
  for (const char* name : {"c", "a", "b-1", "d"}) put(named(name));
  context.region = "eu-west-2";
  put(named("other"));
  context.region = "eu-west-1";
  const auto first = list(2);
  EXPECT_EQ(names(first), "a b-1 ");
  EXPECT_EQ(first.next_token, "b-1");
  const auto second = list(2, *first.next_token);
  EXPECT_EQ(names(second), "c d ");
  EXPECT_FALSE(second.next_token);
  for (const char* token : {"zzz", "\xff", "../eu-west-2/", "0"}) list(50, token);
  EXPECT_EQ(names(list(50, "\xff")), "");
}

TEST_F(TemplateWorld, RejectsSecrets) {
  const auto refused = [&](const own::PutJobTemplateRequest& request) {
    const std::string text = refusal<own::PutJobTemplate>(request);
    EXPECT_EQ(text.find("hunter2"), std::string::npos) << text;
    return text;
  };
  EXPECT_NE(refused(named("a", R"({"Environment":{"HF_TOKEN":"hunter2"}})")).find("HF_TOKEN"),
            std::string::npos);
  EXPECT_NE(refused(named("a", R"({"HyperParameters":{"api_key":"hunter2"}})")).find("api_key"),
            std::string::npos);
  auto marked = named("a", R"({"Environment":{"LICENCE":"hunter2"}})");
  marked.secret_environment = {"LICENCE"};
  EXPECT_NE(refused(marked).find("LICENCE"), std::string::npos);
  EXPECT_EQ(names(list()), "");
  put(named("a", R"({"Environment":{"HF_TOKEN":"","EPOCHS":"3"}})"));
}

TEST_F(TemplateWorld, RejectsInvalidRequests) {
  for (const char* text : {"[]", "{", "null", R"({"HyperParameters":[]})", R"({"RoleArn":7})"})
    EXPECT_EQ(refusal<own::PutJobTemplate>(named("a", text)).substr(0, 40),
              "ValidationException: TrainingJobRequest:")
        << text;
}

TEST_F(TemplateWorld, HasALimitPerRegion) {
  domain::Records full;
  for (int i = 0; i < 500; ++i)
    full.all[{"job_template", "eu-west-1/" + std::to_string(i)}] =
        std::make_shared<const domain::Record>();
  control.stored_records = std::make_shared<const domain::Records>(full);
  EXPECT_NE(refusal<own::PutJobTemplate>(named("more")).find("at most 500 job templates"),
            std::string::npos);
  put(named("7"));  // replaces one
  context.region = "eu-west-2";
  put(named("more"));
}

// A record of a later version is left out, without hiding others.
TEST_F(TemplateWorld, SkipsRecordsThatItCannotRead) {
  domain::Records records;
  const auto record = [](Json document) {
    return std::make_shared<const domain::Record>(domain::Record{1, std::move(document)});
  };
  records.all[{"job_template", "eu-west-1/a"}] = record({{"request", {{"a", 1}}}, {"saved", "x"}});
  records.all[{"job_template", "eu-west-1/b"}] = record({{"request", Json::object()}});
  control.stored_records = std::make_shared<const domain::Records>(records);
  EXPECT_EQ(names(list()), "b ");
}

}  // namespace
}  // namespace trainyard::api::trainyard_api
