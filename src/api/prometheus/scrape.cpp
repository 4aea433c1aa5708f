#include "prometheus/scrape.hpp"

#include <any>
#include <atomic>
#include <set>
#include <utility>

#include "auth/authorizer.hpp"
#include "base/log.hpp"
#include "base/prometheus.hpp"
#include "base/thread_safety.hpp"
#include "exposition/job_families.hpp"
#include "exposition/text_format.hpp"
#include "operations/rate_limiter.hpp"
#include "prometheus/token_request.hpp"
#include "shapes/s3.hpp"
#include "shapes/trainyard.hpp"

namespace trainyard::api::prometheus {
namespace {

using exposition::Families;
using exposition::FamilyType;

constexpr std::string_view kEverywhere = "*";

// Returns whether scrapes show the job.
bool is_shown(const domain::Job& job) {
  return job.state == domain::JobState::active || job.state == domain::JobState::stopping;
}

class Scrape final : public net::Handler {
 public:
  Scrape(ScrapeParts parts, net::Handler& next)
      : parts_(std::move(parts)),
        next_(next),
        tokens_(parts_.settings, parts_.services.control, parts_.configured_tokens),
        authorizer_(parts_.settings, parts_.services) {}

  Choice choose(const net::RequestHead& head) override {
    const auto token = head.path() == kScrapePath ? bearer_token(head) : std::nullopt;
    if (!token) return next_.choose(head);
    auto principal = tokens_.find(*token, signing::TokenUse::scrape);
    if (!principal) {
      refused_.fetch_add(1, std::memory_order_relaxed);
      return {.refusal = invalid_token_reply()};
    }
    if (head.method != "GET") return {.refusal = text_reply(405, "Only GET is allowed.\n")};
    Choice choice = admit(*principal, OperationClass::reads, 0, parts_.settings,
                          parts_.services.clock, limiter_);
    choice.finding = std::make_shared<Admitted>(Admitted{*std::move(principal)});
    return choice;
  }

  std::optional<Choice> preface(const net::RequestHead& head, std::string_view bytes,
                                bool whole) override {
    return next_.preface(head, bytes, whole);
  }

  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override {
    const auto* admitted = std::any_cast<std::shared_ptr<Admitted>>(&request.finding);
    if (!admitted) return next_.handle(std::move(request), std::move(responder));
    const auto began = parts_.services.clock.monotonic();
    auto reply = answer(request, (*admitted)->principal);
    const auto took = parts_.services.clock.monotonic() - began;
    seconds_.add(std::chrono::duration<double>(took).count());
    responder->reply(std::move(reply));
  }

  void stream(net::Stream& stream) override { next_.stream(stream); }

 private:
  net::Response answer(const net::Request& request, const Principal& principal) {
    Context context = context_of(request, principal, parts_.settings, parts_.services.clock.now());
    context.may_describe = [this](const Context& of, const domain::JobKey& job) {
      return authorizer_.may_describe(of, job);
    };
    const shapes::Service& own = shapes::trainyard::kService;
    if (const auto failure = check(context, own, "trainyard:GetMetrics"))
      return text_reply(403, failure->message + "\n");
    Families families;
    if (!check(context, own, "trainyard:DescribeServer")) {
      parts_.add_server_families(families,
                                 !check(context, shapes::s3::kService, "s3:ListAllMyBuckets"));
      add_own(families);
    }
    exposition::add_job_families(jobs_for(context), parts_.job_series_max, families);
    const auto format = exposition::choose_format(request.headers.get("accept"));
    net::Response out{200, {}, exposition::format_text(families, format)};
    out.headers.add("Content-Type", std::string(exposition::content_type(format)));
    out.headers.add("Cache-Control", "no-store");
    return out;
  }

  std::optional<Failure> check(const Context& context, const shapes::Service& service,
                               const char* action) const {
    return authorizer_.check(context, service, action, std::string(kEverywhere));
  }

  std::vector<exposition::ExposedJob> jobs_for(const Context& context) {
    const auto live = parts_.services.control.live_jobs();
    restore(live);
    std::vector<exposition::ExposedJob> out;
    for (const auto& job : live)
      if (is_shown(*job) && context.may_see(job->key))
        out.push_back({job, parts_.values.values_of(job->key)});
    return out;
  }

  // Reads the values from before the start of this server, at the first scrape; if that fails, at
  // the next one.
  void restore(const std::vector<std::shared_ptr<const domain::Job>>& live) {
    const MutexLock lock(restoring_);
    if (restored_) return;
    std::set<domain::JobKey> wanted;
    std::set<std::string> regions;
    for (const auto& job : live) {
      if (!is_shown(*job)) continue;
      wanted.insert(job->key);
      regions.insert(job->key.region);
    }
    bool complete = true;
    for (const std::string& region : regions) {
      const auto done =
          parts_.values.restore(parts_.services.metrics, region,
                                [&](const domain::JobKey& job) { return wanted.contains(job); });
      if (done) continue;
      complete = false;
      log(Level::warning, "prometheus", "the values of running jobs were not read; it is retried",
          {{"why", done.error().message}});
    }
    restored_ = complete;
  }

  void add_own(Families& families) const {
    families.add("trainyard_scrape_seconds", FamilyType::histogram, "Time of one scrape.")
        .histogram({}, seconds_);
    families.counter("trainyard_scrapes_refused_total", "Scrapes with a token that is not valid.",
                     double(refused_.load(std::memory_order_relaxed)));
    families.counter("trainyard_metric_points_left_out_total",
                     "Points of jobs that scrapes lack, since a job has too many metrics.",
                     double(parts_.values.points_left_out()));
  }

  const ScrapeParts parts_;
  net::Handler& next_;
  const BearerTokens tokens_;
  const Authorizer authorizer_;
  RateLimiter limiter_;
  Histogram seconds_;
  std::atomic<uint64_t> refused_{0};
  Mutex restoring_;
  bool restored_ GUARDED_BY(restoring_) = false;
};

}  // namespace

std::unique_ptr<net::Handler> make_scrape(ScrapeParts parts, net::Handler& next) {
  return std::make_unique<Scrape>(std::move(parts), next);
}

}  // namespace trainyard::api::prometheus
