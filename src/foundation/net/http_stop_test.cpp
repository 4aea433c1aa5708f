// Tests stopping an HTTP server: requests that are being served, and answers that come too late.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>

#include "base/text.hpp"
#include "net/http_server.hpp"
#include "net/testing/http_test_client.hpp"

namespace trainyard::net {
namespace {

TEST_F(Http, StoppingLetsCurrentRequestsFinish) {
  std::promise<std::unique_ptr<Responder>> requested;
  std::promise<void> streaming, may_stream;
  handler.on_handle = [&](Request, std::unique_ptr<Responder> responder) {
    requested.set_value(std::move(responder));
  };
  handler.on_stream = [&](Stream& stream) {
    streaming.set_value();
    may_stream.get_future().wait();
    stream.reply({200, {}, "streamed to the end"}).value();
  };
  serve();
  RawClient buffered = client(), streamed = client(), idle = client();
  buffered.send("GET / HTTP/1.1\r\n\r\n");
  streamed.send("GET /stream HTTP/1.1\r\n\r\n");
  std::unique_ptr<Responder> responder = requested.get_future().get();
  streaming.get_future().wait();
  std::thread stopper([&] { server->stop(60s); });
  EXPECT_TRUE(idle.closed());
  responder->reply({200, {}, "late but whole"});
  may_stream.set_value();
  const Answer answer = buffered.receive();
  EXPECT_EQ(answer.body, "late but whole");
  EXPECT_EQ(answer.headers.get("Connection"), "close");
  EXPECT_EQ(streamed.receive().body, "streamed to the end");
  stopper.join();
}

TEST_F(Http, StoppingWithoutGraceEndsRequestsAndDropsLateAnswers) {
  std::promise<std::unique_ptr<Responder>> requested;
  std::promise<void> streaming;
  std::promise<Kind> how;
  handler.on_handle = [&](Request, std::unique_ptr<Responder> responder) {
    requested.set_value(std::move(responder));
  };
  handler.on_stream = [&](Stream& stream) {
    streaming.set_value();
    std::vector<char> buffer(1000);
    const auto got = stream.read(buffer);
    how.set_value(got ? Kind::internal : got.error().kind);
  };
  with_tls();
  serve();
  RawClient buffered = client(), streamed = client(), secret = client(), half = client();
  ASSERT_TRUE(secret.start_tls(authority));
  EXPECT_EQ(secret.send("GET"), true);
  half.send("GET / HT");
  buffered.send("GET / HTTP/1.1\r\n\r\n");
  streamed.send("PUT /stream HTTP/1.1\r\nContent-Length: 10\r\n\r\n");
  const std::unique_ptr<Responder> responder = requested.get_future().get();
  streaming.get_future().wait();
  server->stop(0ms);
  EXPECT_TRUE(buffered.closed());
  EXPECT_TRUE(streamed.closed());
  EXPECT_TRUE(half.closed());
  EXPECT_EQ(how.get_future().get(), Kind::cancelled);
  server.reset();
  responder->reply({200, {}, "to nobody"});
}

}  // namespace
}  // namespace trainyard::net
