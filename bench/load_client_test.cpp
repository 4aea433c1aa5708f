#include "bench/load_client.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "net/http_server.hpp"

namespace trainyard::bench {
namespace {

struct Counter : net::Handler {
  Choice choose(const net::RequestHead&) override { return {}; }
  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override {
    seen++;
    responder->reply({request.target == "/refuse" ? 403 : 200, {}, request.body});
  }
  void stream(net::Stream&) override {}
  std::atomic<uint64_t> seen = 0;
};

TEST(LoadClient, CountsResponses) {
  Counter counter;
  auto server = net::serve_http({.listen = "127.0.0.1:0"}, counter);
  ASSERT_TRUE(server);
  Load load;
  load.address = "127.0.0.1:" + std::to_string((*server)->port());
  load.connections = 7;
  load.threads = 2;
  load.warm_up = 0ms;
  load.lasts = 60s;
  load.requests_max = 1000;
  load.make_request = [](uint64_t number) {
    const std::string body = std::string(size_t(number), 'x');
    return std::string("POST ") + (number % 4 == 0 ? "/refuse" : "/") +
           " HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  const auto result = run_load(load);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(counter.seen, 1000u);
  EXPECT_EQ(result->answers, 1000u);
  EXPECT_EQ(result->refusals, 250u);
  EXPECT_TRUE(result->first_refusal.starts_with("HTTP/1.1 403 Forbidden"));
  EXPECT_GT(result->answers_per_second, 0);
  EXPECT_LE(result->p50_ms, result->p99_ms);
  EXPECT_LE(result->p99_ms, result->max_ms);
}

TEST(LoadClient, ReportsAMissingServer) {
  Load load;
  load.address = "127.0.0.1:1";
  load.make_request = [](uint64_t) { return ""; };
  EXPECT_EQ(run_load(load).error().kind, Kind::unavailable);
}

}  // namespace
}  // namespace trainyard::bench
