#include "prometheus/scrape.hpp"

#include <gtest/gtest.h>

#include "dispatch/testing/tenants.hpp"
#include "signing/metrics_token.hpp"

namespace trainyard::api::prometheus {
namespace {

using in_memory::Reply;
using signing::TokenUse;

constexpr const char* kJobArn = R"("arn:aws:trainyard:eu-west-1:123456789012:job/mnist-1")";

// The metrics of a server whose store cannot be read at first.
class FailingMetrics final : public observe::Metrics {
 public:
  FailingMetrics(observe::Metrics& metrics, int failures)
      : metrics_(metrics), failures_(failures) {}

  Result<void> append(const std::vector<observe::MetricRecord>& records) override {
    return metrics_.append(records);
  }
  Result<uint64_t> append_allowed(const std::vector<observe::MetricRecord>& records) override {
    return metrics_.append_allowed(records);
  }
  Result<uint64_t> append_series_allowed(
      const std::vector<observe::MetricSeries>& series) override {
    return metrics_.append_series_allowed(series);
  }
  Result<void> append_batch(const std::string& writer, uint64_t batch,
                            const std::vector<observe::MetricRecord>& records) override {
    return metrics_.append_batch(writer, batch, records);
  }
  Result<uint64_t> last_batch(const std::string& writer) override {
    return metrics_.last_batch(writer);
  }
  Result<std::vector<observe::Datapoint>> statistics(
      const observe::StatisticsQuery& query) override {
    return metrics_.statistics(query);
  }
  Result<std::vector<observe::Sample>> samples(const observe::StatisticsQuery& query,
                                               size_t count_max) override {
    return metrics_.samples(query, count_max);
  }
  Result<std::optional<observe::Sample>> last(const observe::MetricKey& key) override {
    return metrics_.last(key);
  }
  Result<std::vector<observe::MetricKey>> list(const std::string& region,
                                               const std::string& name_space,
                                               const std::string& name) override {
    if (failures_ > 0 && failures_-- > 0) return unavailable("the store is not read now");
    return metrics_.list(region, name_space, name);
  }
  Result<void> retire(Instant now) override { return metrics_.retire(now); }

 private:
  observe::Metrics& metrics_;
  int failures_;
};

struct ScrapeWorld : testing::Test {
  TestTenants tenants;
  exposition::LatestValues values{{}};
  std::unique_ptr<net::Handler> scrape;

  ScrapeWorld() {
    for (const char* job : {"mnist-1", "rival"}) {
      values.add({"eu-west-1", job});
      values.record(
          {{{"eu-west-1", "/aws/sagemaker/TrainingJobs", "loss", {{"TrainingJobName", job}}},
            observe::sample_of(tenants.clock.now(), .5)}});
    }
    open(tenants.services);
  }

  void open(const Services& services) {
    scrape =
        make_scrape({tenants.settings, services, values,
                     [](exposition::Families& families, bool buckets) {
                       families.gauge("trainyard_agents", "Agents.", 1);
                       if (buckets) families.gauge("trainyard_bucket_bytes", "Bytes.", 1);
                     },
                     [] {
                       return std::vector<ConfiguredToken>{{"a-token-of-the-configuration", ""},
                                                           {"a-token-of-a-user-gone", "gone"},
                                                           {"a-token-of-ann-1234", "ann"}};
                     }},
                    *tenants.api);
  }

  Reply get(const std::string& authorization, const std::string& method = "GET",
            const std::string& accept = "") {
    net::Request request;
    request.method = method;
    request.target = "/metrics";
    request.peer = "192.0.2.7:5000";
    request.headers.add("Host", "127.0.0.1:4566");
    if (!authorization.empty()) request.headers.add("Authorization", authorization);
    if (!accept.empty()) request.headers.add("Accept", accept);
    return *in_memory::send(*scrape, std::move(request));
  }
  Reply get_as(const in_memory::Signing& by, TokenUse use = TokenUse::scrape) {
    return get("Bearer " +
               signing::metrics_token(by.keys.access_key_id, by.keys.secret_access_key, use));
  }
};

bool has(const Reply& reply, const std::string& text) {
  return reply.body.find(text) != std::string::npos;
}

TEST_F(ScrapeWorld, ShowsEverythingToTheOwner) {
  const Reply reply = get_as(tenants.owner);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  for (const char* text :
       {"trainyard_agents 1", "trainyard_bucket_bytes 1", "job_name=\"mnist-1\"",
        "job_name=\"rival\"", "metric=\"loss\"} 0.5", "trainyard_scrape_seconds"})
    EXPECT_TRUE(has(reply, text)) << text << reply.body;
}

TEST_F(ScrapeWorld, SendsOpenMetricsIfAccepted) {
  const Reply reply = get("Bearer a-token-of-the-configuration", "GET",
                          "application/openmetrics-text;version=1.0.0");
  EXPECT_EQ(reply.headers.get("content-type"),
            "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_TRUE(reply.body.ends_with("# EOF\n"));
}

TEST_F(ScrapeWorld, ForwardsRequestsWithoutAToken) {
  const Reply there = get("");
  const Reply elsewhere = [&] {
    net::Request request;
    request.method = "GET";
    request.target = "/another";
    request.peer = "192.0.2.7:5000";
    request.headers.add("Host", "127.0.0.1:4566");
    return *in_memory::send(*scrape, std::move(request));
  }();
  EXPECT_EQ(there.status, 403);
  EXPECT_EQ(there.status, elsewhere.status);
  EXPECT_EQ(there.headers.get("www-authenticate"), "");
  EXPECT_FALSE(has(there, "trainyard"));
}

TEST_F(ScrapeWorld, RejectsInvalidTokensAlike) {
  const auto ann = tenants.add_user("ann", allow(R"("*")", R"("*")"));
  auto wrong_secret = ann;
  wrong_secret.keys.secret_access_key = "guess";
  for (const Reply& reply :
       {get("Bearer "), get("Bearer x"), get("bearer a-token-of-the-configuratioN"),
        get("Bearer a-token-of-a-user-gone"), get_as(wrong_secret), get_as(ann, TokenUse::write),
        get("Bearer " + std::string(5'000, 'x'))}) {
    EXPECT_EQ(reply.status, 401);
    EXPECT_EQ(reply.body, "The bearer token is not valid.\n");
    EXPECT_EQ(reply.headers.get("www-authenticate"), "Bearer");
  }
  EXPECT_EQ(get("Bearer a-token-of-the-configuration", "POST").status, 405);
}

TEST_F(ScrapeWorld, RejectsTokensOfInactiveKeys) {
  const auto ann = tenants.add_user("ann", allow(R"("*")", R"("*")"));
  EXPECT_EQ(get_as(ann).status, 200);
  EXPECT_EQ(get("Bearer a-token-of-ann-1234").status, 200);
  tenants.identities->put(
      policy::AccessKey{.id = "AKIAann", .user = "ann", .secret = "ann-secret", .active = false});
  EXPECT_EQ(get_as(ann).status, 401);
}

TEST_F(ScrapeWorld, ShowsOnlyJobsThatThePrincipalMayDescribe) {
  const Reply none = get_as(tenants.add_user("outsider", allow(R"("sagemaker:*")", R"("*")")));
  EXPECT_EQ(none.status, 403);
  EXPECT_TRUE(has(none, "trainyard:GetMetrics")) << none.body;

  const std::string two =
      R"({"Version":"2012-10-17","Statement":[
          {"Effect":"Allow","Action":"trainyard:GetMetrics","Resource":"*"},
          {"Effect":"Allow","Action":"trainyard:DescribeJob","Resource":[)" +
      std::string(kJobArn) + "]}]}";
  const Reply own = get_as(tenants.add_user("ann", two));
  EXPECT_EQ(own.status, 200) << own.body;
  EXPECT_TRUE(has(own, "job_name=\"mnist-1\"")) << own.body;
  EXPECT_FALSE(has(own, "rival")) << own.body;
  EXPECT_FALSE(has(own, "trainyard_agents")) << own.body;
  EXPECT_FALSE(has(own, "trainyard_scrape_seconds")) << own.body;

  const Reply server = get_as(tenants.add_user(
      "operator", allow(R"("trainyard:GetMetrics","trainyard:DescribeServer")", R"("*")")));
  EXPECT_TRUE(has(server, "trainyard_agents 1")) << server.body;
  EXPECT_FALSE(has(server, "trainyard_bucket_bytes")) << server.body;
  EXPECT_FALSE(has(server, "mnist-1")) << server.body;
}

TEST_F(ScrapeWorld, ReadsStoredValuesAtTheFirstScrape) {
  ASSERT_TRUE(tenants.metrics->append(
      {{{"eu-west-1", "/aws/sagemaker/TrainingJobs", "old", {{"TrainingJobName", "mnist-1"}}},
        observe::sample_of(tenants.clock.now(), 42)}}));
  EXPECT_TRUE(has(get_as(tenants.owner), "metric=\"old\"} 42"));
}

TEST_F(ScrapeWorld, RetriesToReadStoredValuesAtTheNextScrape) {
  ASSERT_TRUE(tenants.metrics->append(
      {{{"eu-west-1", "/aws/sagemaker/TrainingJobs", "old", {{"TrainingJobName", "mnist-1"}}},
        observe::sample_of(tenants.clock.now(), 42)}}));
  FailingMetrics failing(*tenants.metrics, 1);
  const Services services{tenants.control,  *tenants.logs, failing,
                          *tenants.objects, tenants.clock, tenants.random};
  open(services);
  const Reply first = get_as(tenants.owner);
  EXPECT_EQ(first.status, 200);
  EXPECT_FALSE(has(first, "metric=\"old\"")) << first.body;
  EXPECT_TRUE(has(get_as(tenants.owner), "metric=\"old\"} 42"));
  scrape.reset();
}

TEST_F(ScrapeWorld, HasNoSeriesOfWaitingAndEndedJobs) {
  for (const auto state : {domain::JobState::waiting, domain::JobState::completed}) {
    auto job = tenants.job("mnist-1", 17);
    job.state = state;
    tenants.put_job(job);
    EXPECT_FALSE(has(get_as(tenants.owner), "mnist-1"));
  }
}

TEST_F(ScrapeWorld, CountsForThePrincipalsRate) {
  tenants.settings.rate_limits = [] {
    return RateLimits{.reads_per_second = .001, .burst_seconds = 2000};
  };
  open(tenants.services);
  EXPECT_EQ(get_as(tenants.owner).status, 200);
  EXPECT_EQ(get_as(tenants.owner).status, 200);
  EXPECT_EQ(get_as(tenants.owner).status, 429);
}

}  // namespace
}  // namespace trainyard::api::prometheus
