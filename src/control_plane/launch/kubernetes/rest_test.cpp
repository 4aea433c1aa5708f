#include "launch/kubernetes/rest.hpp"

#include <gtest/gtest.h>

#include "launch/kubernetes/list_objects.hpp"
#include "launch/testing/kubernetes_json.hpp"

namespace trainyard::launch {
namespace {

// Returns the prepared answers in order, and records the requests.
class KubernetesRestTest : public testing::Test {
 protected:
  std::unique_ptr<Kubernetes> client(KubernetesAccess access = with_token()) {
    return kubernetes_by_rest(
        std::move(access), "training", "3fa91c",
        [this]() -> SendRest {
          return [this](const RestRequest& request) -> Result<RestAnswer> {
            requests_.push_back(request);
            if (answers_.empty()) return unavailable("connection refused");
            RestAnswer answer = answers_.front();
            answers_.erase(answers_.begin());
            if (!request.receive || answer.status != 200) return answer;
            for (const std::string& piece : {std::string(), answer.body})
              if (!request.receive(piece)) break;
            return RestAnswer{200, ""};
          };
        },
        [this](const std::string&) -> Result<std::string> { return token_file_; });
  }

  static KubernetesAccess with_token() {
    KubernetesAccess access;
    access.server = "https://10.0.0.1:6443";
    access.token = "secret";
    return access;
  }

  static constexpr const char* kEmptyList = R"({"metadata":{"resourceVersion":"7"},"items":null})";

  static std::string job(bool deleting = false) {
    KubernetesJob job;
    job.name = "trainyard-3fa91c-j1a1";
    job.uid = "u1";
    job.attempt = {1, 1};
    job.hosts = 1;
    job.deleting = deleting;
    Json shown = json_of(job, "3fa91c");
    shown["metadata"]["resourceVersion"] = "9";
    return dump(shown);
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
  answers_ = {
      {200,
       R"({"metadata":{"continue":"a/b","resourceVersion":"7"},"items":[{"metadata":{"name":"n1",
           "resourceVersion":"3"}}]})"},
      {200, R"({"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"n2",
                "resourceVersion":"4"}}]})"}};
  const auto nodes = list_objects<KubernetesNode>(*client(), "3fa91c");
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(nodes->objects.size(), 2u);
  EXPECT_EQ(nodes->version, "7");
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(requests_[0].url, "https://10.0.0.1:6443/api/v1/nodes?&limit=500");
  EXPECT_EQ(requests_[1].url, requests_[0].url + "&continue=a%2Fb");
  EXPECT_EQ(header("Authorization"), "Bearer secret");
}

TEST_F(KubernetesRestTest, FailsOnAListThatNeverEnds) {
  answers_.assign(2000,
                  {200, R"({"metadata":{"continue":"again","resourceVersion":"7"},"items":[]})"});
  const auto nodes = list_objects<KubernetesNode>(*client(), "3fa91c");
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().kind, Kind::exhausted);
}

TEST_F(KubernetesRestTest, RequestsItsOwnObjects) {
  answers_.assign(3, {200, kEmptyList});
  const auto kubernetes = client();
  ASSERT_TRUE(kubernetes->list(KubernetesResource::jobs, ""));
  EXPECT_EQ(requests_.back().url,
            "https://10.0.0.1:6443/apis/batch/v1/namespaces/training/jobs"
            "?labelSelector=trainyard%2Fserver%3D3fa91c&limit=500");
  ASSERT_TRUE(kubernetes->list(KubernetesResource::pods, ""));
  EXPECT_TRUE(requests_.back().url.starts_with(
      "https://10.0.0.1:6443/api/v1/namespaces/training/pods?labelSelector="));
  ASSERT_TRUE(kubernetes->list(KubernetesResource::others, ""));
  EXPECT_EQ(requests_.back().url,
            "https://10.0.0.1:6443/api/v1/pods"
            "?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
            "&labelSelector=trainyard%2Fserver%21%3D3fa91c&limit=500");
}

TEST_F(KubernetesRestTest, WatchesAfterAVersionWithADeadline) {
  answers_ = {{200, "a line\n"}, {410, R"({"message":"too old resource version"})"}};
  const auto kubernetes = client();
  std::vector<std::string> pieces;
  const KubernetesWatch watch{"7", 100s, [&](std::string_view piece) {
                                pieces.emplace_back(piece);
                                return true;
                              }};
  ASSERT_TRUE(kubernetes->watch(KubernetesResource::nodes, watch));
  EXPECT_EQ(requests_.back().url,
            "https://10.0.0.1:6443/api/v1/nodes?&watch=true&allowWatchBookmarks=true"
            "&timeoutSeconds=100&resourceVersion=7");
  EXPECT_GT(requests_.back().answer_limit, 100s) << "the API server ends it first";
  EXPECT_LE(requests_.back().answer_limit, 120s);
  EXPECT_GE(requests_.back().interrupt_descriptor, 0);
  EXPECT_EQ(pieces, (std::vector<std::string>{"", "a line\n"}));
  const auto gone = kubernetes->watch(KubernetesResource::nodes, watch);
  ASSERT_FALSE(gone);
  EXPECT_TRUE(gone.error().is(KubernetesFault::expired));
}

TEST_F(KubernetesRestTest, FindsAJobByItsName) {
  answers_ = {{200, R"({"metadata":{"resourceVersion":"7"},"items":[)" + job() + "]}"},
              {200, kEmptyList}};
  const auto kubernetes = client();
  const auto found = kubernetes->find_job("trainyard-3fa91c-j1a1");
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_TRUE(*found);
  EXPECT_EQ((*found)->uid, "u1");
  EXPECT_TRUE(
      requests_.back().url.ends_with("&fieldSelector=metadata.name%3Dtrainyard-3fa91c-j1a1"))
      << requests_.back().url;
  EXPECT_FALSE(*kubernetes->find_job("trainyard-3fa91c-j1a1"));
}

TEST_F(KubernetesRestTest, CreatesAppliesSubmitsAndDeletes) {
  answers_ = {{201, job()}, {200, "{}"},  {200, "{}"}, {200, "{}"},
              {200, job()}, {200, job()}, {200, "{}"}, {200, job(true)}};
  const auto kubernetes = client();
  const auto created = kubernetes->create_job({{"kind", "Job"}});
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_EQ(created->uid, "u1");
  EXPECT_EQ(created->version, "9");
  EXPECT_EQ(requests_.back().method, "POST");
  const auto object = [](const char* kind) -> Json {
    return {{"kind", kind}, {"metadata", {{"name", "a"}}}};
  };
  ASSERT_TRUE(kubernetes->apply(object("Secret")));
  EXPECT_EQ(requests_.back().method, "PATCH");
  EXPECT_EQ(requests_.back().url,
            "https://10.0.0.1:6443/api/v1/namespaces/training/secrets/a"
            "?force=true&fieldManager=trainyard");
  EXPECT_EQ(header("Content-Type"), "application/apply-patch+yaml");
  ASSERT_TRUE(kubernetes->apply(object("Service")));
  EXPECT_TRUE(requests_.back().url.find("/api/v1/namespaces/training/services/a?") !=
              std::string::npos)
      << requests_.back().url;
  ASSERT_TRUE(kubernetes->apply(object("NetworkPolicy")));
  EXPECT_TRUE(requests_.back().url.find(
                  "/apis/networking.k8s.io/v1/namespaces/training/networkpolicies/a?") !=
              std::string::npos)
      << requests_.back().url;
  ASSERT_TRUE(kubernetes->submit_job("a", ""));
  EXPECT_EQ(requests_.back().body, R"({"spec":{"suspend":false}})");
  ASSERT_TRUE(kubernetes->submit_job("a", "team"));
  EXPECT_EQ(requests_.back().body,
            R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"team"}}})");
  const auto gone = kubernetes->delete_job("a", "u1");
  ASSERT_TRUE(gone);
  EXPECT_FALSE(*gone) << "the answer is no Job";
  EXPECT_EQ(requests_.back().method, "DELETE");
  EXPECT_NE(requests_.back().body.find(R"("uid":"u1")"), std::string::npos);
  const auto deleted = kubernetes->delete_job("a", "u1");
  ASSERT_TRUE(deleted);
  ASSERT_TRUE(*deleted);
  EXPECT_TRUE((*deleted)->deleting);
}

TEST_F(KubernetesRestTest, ReadsTheLatestEventOfAJob) {
  answers_ = {{200, R"({"metadata":{},"items":[
                {"lastTimestamp":"2026-11-24T12:00:02Z","reason":"FailedCreate","message":"two"},
                {"lastTimestamp":"2026-11-24T12:00:01Z","reason":"FailedCreate","message":"one"}]})"},
              {200, R"({"metadata":{},"items":null})"},
              {200, "[]"}};
  const auto kubernetes = client();
  EXPECT_EQ(*kubernetes->why_no_pods("a"), "FailedCreate: two");
  EXPECT_EQ(requests_.back().url,
            "https://10.0.0.1:6443/api/v1/namespaces/training/events?limit=500&fieldSelector="
            "involvedObject.kind%3DJob%2Creason%3DFailedCreate%2CinvolvedObject.name%3Da");
  EXPECT_EQ(*kubernetes->why_no_pods("a"), "");
  EXPECT_FALSE(kubernetes->why_no_pods("a")) << "the answer is no list";
}

TEST_F(KubernetesRestTest, UsesAVersionOfKueuesApiThatTheClusterServes) {
  answers_ = {{200, R"({"versions":[{"version":"v1beta1"},{"version":"v1beta2"}]})"},
              {200, kEmptyList},
              {200, R"({"versions":[{"version":"v1alpha1"}]})"},
              {200, "{}"},
              {404, R"({"message":"the server could not find the requested resource"})"},
              {503, R"({"message":"starting"})"}};
  const auto kubernetes = client();
  ASSERT_TRUE(kubernetes->find_kueue());
  EXPECT_EQ(requests_.back().url, "https://10.0.0.1:6443/apis/kueue.x-k8s.io");
  ASSERT_TRUE(kubernetes->list(KubernetesResource::workloads, ""));
  EXPECT_EQ(requests_.back().url,
            "https://10.0.0.1:6443/apis/kueue.x-k8s.io/v1beta2/namespaces/training/workloads?"
            "&limit=500");
  EXPECT_EQ(kubernetes->find_kueue().error().kind, Kind::not_found);
  EXPECT_EQ(kubernetes->find_kueue().error().kind, Kind::corrupt);
  const auto none = kubernetes->find_kueue();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Kind::not_found);
  EXPECT_NE(none.error().message.find("install Kueue, or remove local_queue"), std::string::npos);
  EXPECT_EQ(kubernetes->find_kueue().error().kind, Kind::unavailable);
}

TEST_F(KubernetesRestTest, SucceedsInDeletingAMissingJob) {
  answers_ = {{404, "{}"}, {409, "{}"}, {403, R"({"message":"forbidden"})"}};
  const auto kubernetes = client();
  EXPECT_TRUE(kubernetes->delete_job("a", "u1"));
  EXPECT_TRUE(kubernetes->delete_job("a", "u1"));
  EXPECT_FALSE(kubernetes->delete_job("a", "u1")) << "it is denied";
}

TEST_F(KubernetesRestTest, ReadsATokenFileForEachRequest) {
  KubernetesAccess access = with_token();
  access.token_file = "/token";
  const auto kubernetes = client(access);
  answers_.assign(2, {200, kEmptyList});
  ASSERT_TRUE(kubernetes->list(KubernetesResource::jobs, ""));
  EXPECT_EQ(header("Authorization"), "Bearer first");
  token_file_ = "renewed";
  ASSERT_TRUE(kubernetes->list(KubernetesResource::jobs, ""));
  EXPECT_EQ(header("Authorization"), "Bearer renewed");
  token_file_ = "two words";
  EXPECT_EQ(kubernetes->list(KubernetesResource::jobs, "").error().kind, Kind::denied);
}

}  // namespace
}  // namespace trainyard::launch
