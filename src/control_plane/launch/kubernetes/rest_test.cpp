#include "launch/kubernetes/rest.hpp"

#include <gtest/gtest.h>

namespace trainyard::launch {
namespace {

// Returns the prepared answers in order, and records the requests.
class KubernetesRestTest : public testing::Test {
 protected:
  std::unique_ptr<Kubernetes> client(KubernetesAccess access = with_token()) {
    return kubernetes_by_rest(
        std::move(access), "training", "3fa91c",
        [this](const RestRequest& request) -> Result<RestAnswer> {
          requests_.push_back(request);
          if (answers_.empty()) return unavailable("connection refused");
          RestAnswer answer = answers_.front();
          answers_.erase(answers_.begin());
          return answer;
        },
        [this](const std::string&) -> Result<std::string> { return token_file_; });
  }

  static KubernetesAccess with_token() {
    KubernetesAccess access;
    access.server = "https://10.0.0.1:6443";
    access.token = "secret";
    return access;
  }

  std::string header(const std::string& name) const {
    for (const auto& [each, value] : requests_.back().headers)
      if (each == name) return value;
    return "";
  }

  std::vector<RestAnswer> answers_;
  std::vector<RestRequest> requests_;
  std::string token_file_ = "first\n";
};

TEST_F(KubernetesRestTest, ListsPageByPage) {
  answers_ = {{200, R"({"metadata":{"continue":"a/b"},"items":[{"metadata":{"name":"n1"}}]})"},
              {200, R"({"metadata":{},"items":[{"metadata":{"name":"n2"}}]})"}};
  const auto nodes = client()->nodes();
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(nodes->size(), 2u);
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(requests_[0].url, "https://10.0.0.1:6443/api/v1/nodes?&limit=500");
  EXPECT_EQ(requests_[1].url, requests_[0].url + "&continue=a%2Fb");
  EXPECT_EQ(header("Authorization"), "Bearer secret");
}

TEST_F(KubernetesRestTest, FailsOnAListThatNeverEnds) {
  answers_.assign(2000, {200, R"({"metadata":{"continue":"again"},"items":[]})"});
  const auto nodes = client()->nodes();
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().kind, Kind::exhausted);
}

TEST_F(KubernetesRestTest, RequestsItsOwnObjects) {
  answers_ = {{200, R"({"metadata":{},"items":null})"}, {200, R"({"metadata":{},"items":null})"}};
  const auto kubernetes = client();
  ASSERT_TRUE(kubernetes->jobs());
  EXPECT_EQ(requests_.back().url,
            "https://10.0.0.1:6443/apis/batch/v1/namespaces/training/jobs"
            "?labelSelector=trainyard%2Fserver%3D3fa91c&limit=500");
  ASSERT_TRUE(kubernetes->pods());
  EXPECT_TRUE(requests_.back().url.starts_with(
      "https://10.0.0.1:6443/api/v1/namespaces/training/pods?labelSelector="));
}

TEST_F(KubernetesRestTest, CreatesAppliesResumesAndDeletes) {
  answers_ = {{201, R"({"metadata":{"uid":"u1"}})"}, {200, "{}"}, {200, "{}"}, {200, "{}"}};
  const auto kubernetes = client();
  const auto uid = kubernetes->create_job({{"kind", "Job"}});
  ASSERT_TRUE(uid) << uid.error().message;
  EXPECT_EQ(*uid, "u1");
  EXPECT_EQ(requests_.back().method, "POST");
  ASSERT_TRUE(kubernetes->apply_secret({{"metadata", {{"name", "a"}}}}));
  EXPECT_EQ(requests_.back().method, "PATCH");
  EXPECT_EQ(requests_.back().url,
            "https://10.0.0.1:6443/api/v1/namespaces/training/secrets/a"
            "?force=true&fieldManager=trainyard");
  EXPECT_EQ(header("Content-Type"), "application/apply-patch+yaml");
  ASSERT_TRUE(kubernetes->resume_job("a"));
  EXPECT_EQ(requests_.back().body, R"({"spec":{"suspend":false}})");
  ASSERT_TRUE(kubernetes->delete_job("a", "u1"));
  EXPECT_EQ(requests_.back().method, "DELETE");
  EXPECT_NE(requests_.back().body.find(R"("uid":"u1")"), std::string::npos);
}

TEST_F(KubernetesRestTest, SucceedsInDeletingAMissingJob) {
  answers_ = {{404, "{}"}, {409, "{}"}, {403, R"({"message":"forbidden"})"}};
  const auto kubernetes = client();
  EXPECT_TRUE(kubernetes->delete_job("a", "u1"));
  EXPECT_TRUE(kubernetes->delete_job("a", "u1"));
  EXPECT_FALSE(kubernetes->delete_job("a", "u1"));
}

TEST_F(KubernetesRestTest, ReadsATokenFileForEachRequest) {
  KubernetesAccess access = with_token();
  access.token_file = "/token";
  const auto kubernetes = client(access);
  answers_.assign(2, {200, R"({"metadata":{},"items":null})"});
  ASSERT_TRUE(kubernetes->jobs());
  EXPECT_EQ(header("Authorization"), "Bearer first");
  token_file_ = "renewed";
  ASSERT_TRUE(kubernetes->jobs());
  EXPECT_EQ(header("Authorization"), "Bearer renewed");
  token_file_ = "two words";
  EXPECT_EQ(kubernetes->jobs().error().kind, Kind::denied);
}

}  // namespace
}  // namespace trainyard::launch
