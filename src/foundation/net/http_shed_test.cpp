// Tests which connections end for new ones when a peer has too many.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>

#include "net/http_server.hpp"
#include "net/testing/http_test_client.hpp"

namespace trainyard::net {
namespace {

constexpr std::chrono::seconds kDeadline{60};

TEST_F(Http, AFullPeerShedsIdleConnectionsButNoneWithARequest) {
  settings.connections_per_peer_max = 3;
  settings.io_threads = 1;
  std::promise<std::unique_ptr<Responder>> waiting;
  handler.on_handle = [&](Request request, std::unique_ptr<Responder> responder) {
    if (request.target == "/wait")
      waiting.set_value(std::move(responder));
    else
      responder->reply({200, {}, ""});
  };
  serve();
  RawClient busy = client();
  ASSERT_TRUE(busy.send("GET /wait HTTP/1.1\r\n\r\n"));
  auto handled = waiting.get_future();
  ASSERT_EQ(handled.wait_for(kDeadline), std::future_status::ready);
  const std::unique_ptr<Responder> responder = handled.get();
  RawClient idle[] = {client(), client()};
  for (RawClient& each : idle) EXPECT_EQ(each.exchange("GET / HTTP/1.1\r\n\r\n").status, 200);
  int status = 0;
  // until the server has counted the end of an idle connection
  for (int i = 0; i < 1000 && status != 200; i++) {
    RawClient next = client();
    status = next.exchange("GET / HTTP/1.1\r\n\r\n").status;
  }
  EXPECT_EQ(status, 200);
  EXPECT_TRUE(idle[0].closed()) << "the oldest";
  responder->reply({200, {}, ""});
  EXPECT_EQ(busy.receive().status, 200);
}

}  // namespace
}  // namespace trainyard::net
