#include "prometheus/write.hpp"

#include <gtest/gtest.h>

#include "dispatch/testing/tenants.hpp"
#include "remote_write/snappy.hpp"
#include "remote_write/write_request.hpp"
#include "signing/metrics_token.hpp"

namespace trainyard::api::prometheus {
namespace {

using in_memory::Reply;
using remote_write::TimeSeries;
using signing::TokenUse;

struct WriteWorld : testing::Test {
  TestTenants tenants;
  std::unique_ptr<net::Handler> write =
      make_write(tenants.settings, tenants.services, *tenants.api);

  Reply post(const in_memory::Signing& by, const std::string& body,
             const std::string& method = "POST", TokenUse use = TokenUse::write,
             const std::string& content_type = "application/x-protobuf",
             const std::string& content_encoding = "snappy") {
    net::Request request;
    request.method = method;
    request.target = "/api/v1/write";
    request.peer = "192.0.2.7:5000";
    request.headers.add("Host", "127.0.0.1:4566");
    if (!content_type.empty()) request.headers.add("Content-Type", content_type);
    if (!content_encoding.empty()) request.headers.add("Content-Encoding", content_encoding);
    if (!by.keys.access_key_id.empty())
      request.headers.add("Authorization",
                          "Bearer " + signing::metrics_token(by.keys.access_key_id,
                                                             by.keys.secret_access_key, use));
    request.body = body;
    return *in_memory::send(*write, std::move(request));
  }
  std::string body_of(const std::vector<TimeSeries>& series) const {
    return remote_write::snappy_compress(remote_write::encode(series));
  }
  TimeSeries up(double value) {
    return {{{"__name__", "up"}, {"job", "node"}}, {{value, to_milliseconds(tenants.clock.now())}}};
  }
  std::optional<observe::Sample> stored() {
    return *tenants.metrics->last({"eu-west-1", "Prometheus", "up", {{"job", "node"}}});
  }
};

TEST_F(WriteWorld, StoresPointsInTheirNamespace) {
  const Reply reply = post(tenants.owner, body_of({up(1)}));
  EXPECT_EQ(reply.status, 204) << reply.body;
  ASSERT_TRUE(stored());
  EXPECT_EQ(stored()->sum, 1);
}

TEST_F(WriteWorld, NeedsTheRightToPutMetricData) {
  const auto of = [&](const char* name, const char* space) {
    return tenants.add_user(
        name, allow(R"("cloudwatch:PutMetricData")", R"("*")",
                    std::string(R"(,"Condition":{"StringEquals":{"cloudwatch:namespace":")") +
                        space + "\"}}"));
  };
  EXPECT_EQ(post(of("ann", "Prometheus"), body_of({up(1)})).status, 204);
  const Reply refused = post(of("bob", "Team"), body_of({up(2)}));
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("cloudwatch:PutMetricData"), std::string::npos) << refused.body;
  EXPECT_EQ(stored()->sum, 1);
}

TEST_F(WriteWorld, AcceptsOnlyTokensForWriting) {
  EXPECT_EQ(post(tenants.owner, body_of({up(1)}), "POST", TokenUse::scrape).status, 401);
  EXPECT_EQ(post(tenants.owner, "", "GET").status, 405);
  in_memory::Signing none;
  none.keys = {};
  EXPECT_GE(post(none, body_of({up(1)})).status, 400) << "the API answers it";
  EXPECT_FALSE(stored());
}

TEST_F(WriteWorld, StoresNothingOfMalformedRequests) {
  const TimeSeries unnamed{{{"job", "node"}}, {{1, to_milliseconds(tenants.clock.now())}}};
  for (const std::string& body :
       {std::string("not snappy"), remote_write::snappy_compress("\xff"), body_of({up(1), unnamed}),
        remote_write::snappy_compress(std::string(17 << 20, '\n'))})
    EXPECT_EQ(post(tenants.owner, body).status, 400);
  EXPECT_FALSE(stored());
}

TEST_F(WriteWorld, LetsSendersRetryIfTheDiskIsFull) {
  tenants.settings.check_disk_space = [] { return exhausted("the disk is full"); };
  EXPECT_EQ(post(tenants.owner, body_of({up(1)})).status, 503);
}

TEST_F(WriteWorld, RejectsRequestsBeyondTheLimits) {
  const std::vector<TimeSeries> many(remote_write::DecodeLimits().series_max + 1, up(1));
  const Reply reply = post(tenants.owner, body_of(many));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.body, "more than 10000 series in one request\n");
  EXPECT_FALSE(stored());
}

TEST_F(WriteWorld, StoresManySamplesOfASeries) {
  TimeSeries large = up(1);
  for (int i = 0; i < 20; ++i)
    large.labels.emplace_back("label_" + std::to_string(i), std::string(1'000, 'z'));
  large.samples.assign(4'000, large.samples[0]);
  EXPECT_EQ(post(tenants.owner, body_of({large})).status, 204) << "80 MB if each had its own";
}

TEST_F(WriteWorld, AcceptsOnlyVersionOne) {
  const auto status = [&](const std::string& type, const std::string& encoding = "snappy") {
    return post(tenants.owner, body_of({up(1)}), "POST", TokenUse::write, type, encoding).status;
  };
  for (const char* type :
       {"text/plain", "application/json", "application/x-protobuf2", ";",
        "application/x-protobuf;proto=io.prometheus.write.v2.Request",
        "application/x-protobuf; charset=utf-8; Proto=\"io.prometheus.write.v2.Request\""})
    EXPECT_EQ(status(type), 415) << type;
  for (const char* encoding : {"gzip", "zstd", "snappy, gzip", "identity"})
    EXPECT_EQ(status("application/x-protobuf", encoding), 415) << encoding;
  const Reply refused = post(tenants.owner, body_of({up(1)}), "POST", TokenUse::write,
                             "application/x-protobuf", "gzip");
  EXPECT_TRUE(refused.body.starts_with("Unsupported content encoding: ")) << refused.body;
  EXPECT_FALSE(stored());
  for (const char* type : {"", "application/x-protobuf", "Application/X-Protobuf",
                           "application/x-protobuf;proto=prometheus.WriteRequest",
                           "application/x-protobuf; proto=\"prometheus.WriteRequest\""})
    EXPECT_EQ(status(type), 204) << type;
  for (const char* encoding : {"", "snappy", "Snappy"})
    EXPECT_EQ(status("application/x-protobuf", encoding), 204) << encoding;
}

TEST_F(WriteWorld, LeavesOutAndCountsPointsOfTooManyMetrics) {
  observe::MetricSettings limited;
  limited.group_of = [](const observe::MetricKey&) { return std::string("all"); };
  limited.group_series_max = 2;
  const auto metrics = *observe::open_metrics(tenants.directory.path() + "/limited", limited);
  const Services services{tenants.control,  *tenants.logs, *metrics,
                          *tenants.objects, tenants.clock, tenants.random};
  write = make_write(tenants.settings, services, *tenants.api);
  const auto of = [&](const char* name, double value) {
    return TimeSeries{{{"__name__", name}}, {{value, to_milliseconds(tenants.clock.now())}}};
  };
  EXPECT_EQ(post(tenants.owner, body_of({of("a", 1)})).status, 204);
  const Reply reply = post(tenants.owner, body_of({of("b", 2), of("c", 3), of("d", 4)}));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.body,
            "2 of 3 points were left out, and the others are stored: the namespace Prometheus has "
            "as many metrics as it may have in a region (series_of_job_max of [metrics])\n");
  const auto found = *metrics->last({"eu-west-1", "Prometheus", "b", {}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->sum, 2);
  EXPECT_EQ(post(tenants.owner, body_of({of("a", 5), of("b", 6)})).status, 204);
  write.reset();
}

}  // namespace
}  // namespace trainyard::api::prometheus
