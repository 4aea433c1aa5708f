#include "launch/kubernetes/rest.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "launch/kubernetes/answers.hpp"
#include "os/notifier.hpp"

namespace trainyard::launch {
namespace {

constexpr const char* kFieldManager = "trainyard";

class KubernetesByRest final : public Kubernetes {
 public:
  KubernetesByRest(KubernetesAccess access, const std::string& name_space, std::string mark,
                   const OpenSendRest& open, ReadFile read_file)
      : access_(std::move(access)),
        mark_(std::move(mark)),
        name_space_(percent_encode(name_space)),
        core_("/api/v1/namespaces/" + name_space_),
        batch_("/apis/batch/v1/namespaces/" + name_space_),
        network_policies_("/apis/networking.k8s.io/v1/namespaces/" + name_space_ +
                          "/networkpolicies/"),
        send_(open()),
        read_file_(std::move(read_file)) {
    for (SendRest& each : senders_) each = open();
  }

  Result<void> find_kueue() override {
    RestRequest request;
    request.url = "/apis/kueue.x-k8s.io";
    const std::string doing = "looking for Kueue";
    const auto body = send(send_, std::move(request)).in(doing);
    if (!body && body.error().kind == Kind::not_found)
      return not_found(
          "the cluster has no Kueue, which local_queue of the config's [kubernetes] needs: install "
          "Kueue, or remove local_queue");
    const std::string version = TRY(read_kueue_version(TRY(body)).in(doing));
    workloads_ = "/apis/kueue.x-k8s.io/" + version + "/namespaces/" + name_space_ + "/workloads?";
    return {};
  }

  Result<std::string> list(KubernetesResource resource, const std::string& page) override {
    RestRequest request;
    request.url = path_of(resource) + "&limit=" + std::to_string(kKubernetesPageItems);
    if (!page.empty()) request.url += "&continue=" + percent_encode(page);
    request.interrupt_descriptor = stopped_.descriptor();
    return send(senders_[size_t(resource)], std::move(request));
  }

  Result<void> watch(KubernetesResource resource, const KubernetesWatch& watch) override {
    RestRequest request;
    request.url = path_of(resource) + "&watch=true&allowWatchBookmarks=true&timeoutSeconds=" +
                  std::to_string(watch.timeout / 1s) +
                  "&resourceVersion=" + percent_encode(watch.version);
    request.receive = watch.receive;
    request.answer_limit = watch.timeout + kEndMargin;
    request.interrupt_descriptor = stopped_.descriptor();
    TRY(send(senders_[size_t(resource)], std::move(request)));
    return {};
  }

  void stop() override { stopped_.notify(); }

  Result<std::optional<KubernetesJob>> find_job(const std::string& name) override {
    RestRequest request;
    request.url = path_of(KubernetesResource::jobs) +
                  "&fieldSelector=" + percent_encode("metadata.name=" + name);
    const std::string doing = "looking for the Job";
    const std::string body = TRY(send(send_, std::move(request)).in(doing));
    auto page = TRY(read_page<KubernetesJob>(body, mark_).in(doing));
    for (auto& [each, job] : page.objects)
      if (each == name) return std::optional(std::move(job));
    return std::optional<KubernetesJob>();
  }

  Result<std::string> why_no_pods(const std::string& job) override {
    RestRequest request;
    request.answer_limit = kEventsAnswerMax;
    request.url = core_ + "/events?limit=" + std::to_string(kKubernetesPageItems) +
                  "&fieldSelector=" +
                  percent_encode(
                      "involvedObject.kind=Job,reason=FailedCreate,"
                      "involvedObject.name=" +
                      job);
    const std::string doing = "reading the events of the Job";
    return read_latest_event(TRY(send(send_, std::move(request)).in(doing))).in(doing);
  }

  Result<KubernetesJob> create_job(const Json& job) override {
    const std::string body =
        TRY(write("POST", batch_ + "/jobs", "application/json", dump(job)).in("creating the Job"));
    return read_job_answer(body, mark_).in("creating the Job");
  }
  // Uses server-side apply, which creates or replaces.
  Result<void> apply(const Json& object) override {
    const std::string kind = object["kind"].get<std::string>();
    const std::string name = object["metadata"]["name"].get<std::string>();
    const std::string resource = kind == "NetworkPolicy" ? network_policies_
                                 : kind == "Secret"      ? core_ + "/secrets/"
                                                         : core_ + "/services/";
    TRY(write("PATCH",
              resource + percent_encode(name) + "?force=true&fieldManager=" + kFieldManager,
              "application/apply-patch+yaml", dump(object))
            .in("creating the " + kind));
    return {};
  }

  Result<KubernetesJob> submit_job(const std::string& name,
                                   const std::string& local_queue) override {
    const Json change = local_queue.empty()
                            ? Json{{"spec", {{"suspend", false}}}}
                            : Json{{"metadata", {{"labels", {{kLocalQueueLabel, local_queue}}}}}};
    const std::string doing = "submitting the Job";
    const std::string body = TRY(write("PATCH", batch_ + "/jobs/" + percent_encode(name),
                                       "application/merge-patch+json", dump(change))
                                     .in(doing));
    return read_job_answer(body, mark_).in(doing);
  }

  Result<std::optional<KubernetesJob>> delete_job(const std::string& name,
                                                  const std::string& uid) override {
    const Json options = {{"kind", "DeleteOptions"},
                          {"apiVersion", "v1"},
                          {"propagationPolicy", "Foreground"},
                          {"preconditions", {{"uid", uid}}}};
    auto done = write("DELETE", batch_ + "/jobs/" + percent_encode(name), "application/json",
                      dump(options));
    // A conflict: another Job has the name by now.
    if (!done && (done.error().kind == Kind::not_found || done.error().kind == Kind::conflict))
      return std::optional<KubernetesJob>();
    if (!done) return std::move(done).error().in("deleting the Job");
    // A Job without pods may be gone at once; then the answer is a Status.
    auto job = read_job_answer(*done, mark_);
    return job && job->deleting ? std::optional(*std::move(job)) : std::nullopt;
  }

 private:
  // Short, since all jobs wait for the answer, which is only a part of a message.
  static constexpr Duration kEventsAnswerMax = 2s;
  // An API server that is alive has ended a watch this long after its timeout.
  static constexpr Duration kEndMargin = 15s;

  std::string path_of(KubernetesResource resource) const {
    const std::string own =
        "?labelSelector=" + percent_encode(std::string(kServerLabel) + "=" + mark_);
    switch (resource) {
      case KubernetesResource::jobs:
        return batch_ + "/jobs" + own;
      case KubernetesResource::pods:
        return core_ + "/pods" + own;
      case KubernetesResource::nodes:
        return "/api/v1/nodes?";
      case KubernetesResource::workloads:
        return workloads_;
      case KubernetesResource::others:
        break;
    }
    return "/api/v1/pods?fieldSelector=" +
           percent_encode("status.phase!=Succeeded,status.phase!=Failed") +
           "&labelSelector=" + percent_encode(std::string(kServerLabel) + "!=" + mark_);
  }

  Result<std::string> write(const std::string& method, const std::string& path,
                            const std::string& type, std::string body) {
    RestRequest request;
    request.method = method;
    request.url = path;
    request.headers = {{"Content-Type", type}};
    request.body = std::move(body);
    return send(send_, std::move(request));
  }

  // Sends a request whose URL is a path.
  Result<std::string> send(const SendRest& by, RestRequest request) const {
    if (request.method.empty()) request.method = "GET";
    request.url.insert(0, access_.server);
    request.headers.emplace_back("Accept", "application/json");
    if (const std::string token = TRY(token_now()); !token.empty())
      request.headers.emplace_back("Authorization", "Bearer " + token);
    auto answer = TRY(by(request).in("sending a request to the API server at " + access_.server));
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
  const std::string name_space_;  // in URLs
  const std::string core_, batch_, network_policies_;
  std::string workloads_;                               // set by find_kueue()
  const SendRest send_;                                 // used by the launcher's thread
  std::array<SendRest, kKubernetesResources> senders_;  // by resource
  const ReadFile read_file_;
  os::Notifier stopped_;  // never cleared
};

}  // namespace

std::unique_ptr<Kubernetes> kubernetes_by_rest(KubernetesAccess access,
                                               const std::string& name_space, std::string mark,
                                               const OpenSendRest& open, ReadFile read_file) {
  return std::make_unique<KubernetesByRest>(std::move(access), name_space, std::move(mark), open,
                                            std::move(read_file));
}

}  // namespace trainyard::launch
