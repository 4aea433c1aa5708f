#include "launch/kubernetes/rest.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "launch/kubernetes/answers.hpp"

namespace trainyard::launch {
namespace {

constexpr const char* kFieldManager = "trainyard";

class KubernetesByRest final : public Kubernetes {
 public:
  KubernetesByRest(KubernetesAccess access, const std::string& name_space, std::string mark,
                   SendRest send, ReadFile read_file)
      : access_(std::move(access)),
        mark_(std::move(mark)),
        core_("/api/v1/namespaces/" + percent_encode(name_space)),
        batch_("/apis/batch/v1/namespaces/" + percent_encode(name_space)),
        send_(std::move(send)),
        read_file_(std::move(read_file)) {}

  Result<std::vector<KubernetesJob>> jobs() override {
    std::vector<KubernetesJob> jobs;
    TRY(each_page(batch_ + "/jobs?" + own_objects(), [&](const std::string& body) {
          return read_job_page(body, mark_, jobs);
        }).in("listing this server's Jobs"));
    return jobs;
  }

  Result<std::vector<KubernetesPod>> pods() override {
    std::vector<KubernetesPod> pods;
    TRY(each_page(core_ + "/pods?" + own_objects(), [&](const std::string& body) {
          return read_pod_page(body, mark_, pods);
        }).in("listing this server's pods"));
    return pods;
  }

  Result<std::vector<KubernetesNode>> nodes() override {
    std::vector<KubernetesNode> nodes;
    TRY(each_page("/api/v1/nodes?", [&](const std::string& body) {
          return read_node_page(body, nodes);
        }).in("listing nodes"));
    return nodes;
  }

  Result<std::map<std::string, KubernetesAmounts>> used_by_others() override {
    std::map<std::string, KubernetesAmounts> used;
    size_t pods = 0;
    const std::string present = percent_encode("status.phase!=Succeeded,status.phase!=Failed");
    TRY(each_page("/api/v1/pods?fieldSelector=" + present, [&](const std::string& body) {
          return read_use_page(body, mark_, used, pods);
        }).in("listing the pods of all namespaces"));
    return used;
  }

  Result<std::string> create_job(const Json& job) override {
    return read_uid(
        TRY(send("POST", batch_ + "/jobs", "application/json", dump(job)).in("creating the Job")));
  }
  Result<void> apply_secret(const Json& secret) override {
    return apply("secrets", secret).in("creating the Secret");
  }
  Result<void> apply_service(const Json& service) override {
    return apply("services", service).in("creating the Service");
  }

  Result<void> resume_job(const std::string& name) override {
    TRY(send("PATCH", batch_ + "/jobs/" + percent_encode(name), "application/merge-patch+json",
             R"({"spec":{"suspend":false}})")
            .in("resuming the Job"));
    return {};
  }

  Result<void> delete_job(const std::string& name, const std::string& uid) override {
    const Json options = {{"kind", "DeleteOptions"},
                          {"apiVersion", "v1"},
                          {"propagationPolicy", "Foreground"},
                          {"preconditions", {{"uid", uid}}}};
    const auto done =
        send("DELETE", batch_ + "/jobs/" + percent_encode(name), "application/json", dump(options));
    // A conflict: another Job has the name by now.
    if (done || done.error().kind == Kind::not_found || done.error().kind == Kind::conflict)
      return {};
    return Error(done.error()).in("deleting the Job");
  }

 private:
  std::string own_objects() const {
    return "labelSelector=" + percent_encode(std::string(kServerLabel) + "=" + mark_);
  }

  // Lists a resource, with one request for each page.
  template <class F>
  Result<void> each_page(const std::string& path, F read_page) {
    constexpr size_t kPagesMax = kKubernetesPodsMax / kKubernetesPageItems + 1;
    std::string next;
    for (size_t page = 0; page < kPagesMax; ++page) {
      std::string url = path + "&limit=" + std::to_string(kKubernetesPageItems);
      if (!next.empty()) url += "&continue=" + percent_encode(next);
      next = TRY(read_page(TRY(send("GET", url))));
      if (next.empty()) return {};
    }
    return exhausted("the list has more than " + std::to_string(kPagesMax) + " pages");
  }

  // Uses server-side apply, which creates or replaces.
  Result<void> apply(const std::string& resource, const Json& object) {
    const std::string name = object["metadata"]["name"].get<std::string>();
    TRY(send("PATCH",
             core_ + "/" + resource + "/" + percent_encode(name) +
                 "?force=true&fieldManager=" + kFieldManager,
             "application/apply-patch+yaml", dump(object)));
    return {};
  }

  Result<std::string> send(const std::string& method, const std::string& path,
                           const std::string& type = "", std::string body = "") {
    RestRequest request;
    request.method = method;
    request.url = access_.server + path;
    request.headers = {{"Accept", "application/json"}};
    if (const std::string token = TRY(token_now()); !token.empty())
      request.headers.emplace_back("Authorization", "Bearer " + token);
    if (!type.empty()) request.headers.emplace_back("Content-Type", type);
    request.body = std::move(body);
    auto answer =
        TRY(send_(request).in("sending a request to the API server at " + access_.server));
    TRY(check_kubernetes_answer(answer.status, answer.body));
    return std::move(answer.body);
  }

  Result<std::string> token_now() const {
    if (access_.token_file.empty()) return access_.token;
    const std::string text =
        TRY(read_file_(access_.token_file).in("reading the token for Kubernetes"));
    const auto token = trim(text);
    const bool plain = std::ranges::all_of(token, [](char c) { return c > ' ' && c < 127; });
    if (token.empty() || !plain) return denied("the file " + access_.token_file + " has no token");
    return std::string(token);
  }

  const KubernetesAccess access_;
  const std::string mark_;
  const std::string core_, batch_;
  const SendRest send_;
  const ReadFile read_file_;
};

}  // namespace

std::unique_ptr<Kubernetes> kubernetes_by_rest(KubernetesAccess access, std::string name_space,
                                               std::string mark, SendRest send,
                                               ReadFile read_file) {
  return std::make_unique<KubernetesByRest>(std::move(access), name_space, std::move(mark),
                                            std::move(send), std::move(read_file));
}

}  // namespace trainyard::launch
