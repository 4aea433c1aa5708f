#include "net/http_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <thread>

#include "base/text.hpp"
#include "base/thread_safety.hpp"
#include "net/testing/http_test_client.hpp"
#include "net/testing/test_socket.hpp"

namespace trainyard::net {
namespace {

using HttpStreams = Http;

TEST_F(HttpStreams, TransfersLargeBodiesInBothDirections) {
  with_tls();
  handler.on_stream = [](Stream& stream) {
    if (stream.head().method == "PUT") {
      const auto taken = read_body(stream);
      stream.reply({200, {}, taken ? std::to_string(*taken) : "broken"}).value();
    } else {
      const uint64_t size = uint64_t(parse_int(stream.head().query()).value());
      const bool sized = stream.head().path() == "/stream/sized";
      stream.start(200, {}, sized ? std::optional(size) : std::nullopt).value();
      write_body(stream, size, 100'000).value();
    }
  };
  serve();
  for (const bool secret : {false, true}) {
    const uint64_t size = secret ? kLarge / 8 : kLarge;
    const std::string body = body_from(0, size);
    RawClient client = this->client();
    if (secret) {
      ASSERT_TRUE(client.start_tls(authority));
    }
    client.send("PUT /stream HTTP/1.1\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n");
    client.send(body);
    EXPECT_EQ(client.receive().body, std::to_string(size));
    client.send("PUT /stream HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (uint64_t place = 0; place < size; place += 1 << 20) {
      client.send("100000\r\n");
      client.send(std::string_view(body).substr(place, 1 << 20));
      client.send("\r\n");
    }
    client.send("0\r\n\r\n");
    EXPECT_EQ(client.receive().body, std::to_string(size));
    for (const std::string path : {"/stream/sized", "/stream/chunked"})
      EXPECT_TRUE(
          client.exchange("GET " + path + "?" + std::to_string(size) + " HTTP/1.1\r\n\r\n").body ==
          body);
  }
}

// preface() reads the body up to the first '|'; the rest is streamed.
struct Prefaced : Http {
  Mutex mutex;
  std::map<std::string, std::string> begun GUARDED_BY(mutex);  // by connection

  Prefaced() {
    handler.on_choose = [](const RequestHead&) { return Handler::Choice{Intake::prefaced, 1000}; };
    handler.on_preface = [this](const RequestHead& head, std::string_view bytes,
                                bool) -> std::optional<Handler::Choice> {
      const MutexLock lock(mutex);
      std::string& all = begun[head.peer];
      all += bytes;
      if (all.find('|') == std::string::npos) return std::nullopt;
      if (all.starts_with("bad")) return Handler::Choice{.refusal = Response{403, {}, "no"}};
      return Handler::Choice{.tenant = "good"};
    };
    handler.on_stream = [this](Stream& stream) {
      std::string rest(100, 0), all;
      {
        const MutexLock lock(mutex);
        all = std::exchange(begun[stream.head().peer], {});
      }
      for (auto got = stream.read(rest); got && *got > 0; got = stream.read(rest))
        all += rest.substr(0, *got);
      stream.reply({200, {}, all}).value();
    };
  }
};

TEST_F(Prefaced, StreamsTheRestOfTheBody) {
  serve();
  RawClient client = this->client();
  for (const size_t size : {1, 3, 200, 5000, 100'000}) {
    const std::string body = "name|" + std::string(size, 'x');
    const std::string length = std::to_string(body.size());
    EXPECT_EQ(
        client.exchange("POST / HTTP/1.1\r\nContent-Length: " + length + "\r\n\r\n" + body).body,
        body);
    client.send("POST / HTTP/1.1\r\nContent-Length: " + length +
                "\r\nExpect: 100-continue\r\n\r\n");
    EXPECT_EQ(client.receive().status, 100);
    client.send(body.substr(0, 2));
    EXPECT_EQ(client.exchange(body.substr(2)).body, body);
  }
  EXPECT_EQ(client
                .exchange("POST / HTTP/1.1\r\nTransfer-Encoding: "
                          "chunked\r\n\r\n2\r\nna\r\n4\r\nme|x\r\n0\r\n\r\n")
                .body,
            "name|x");
}

TEST_F(Prefaced, RefusesLimitsAndRequiresADecision) {
  serve();
  RawClient client = this->client();
  EXPECT_EQ(client.exchange("POST / HTTP/1.1\r\nContent-Length: 8\r\n\r\nbad|rest").status, 403);
  {
    const MutexLock lock(mutex);
    begun.clear();
  }
  EXPECT_EQ(client.exchange("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nnever").status, 400);
  RawClient large = this->client();
  EXPECT_EQ(
      large.exchange("POST / HTTP/1.1\r\nContent-Length: 2000\r\n\r\n" + std::string(2000, 'x'))
          .status,
      413);
}

TEST_F(Prefaced, SlowRequestsOccupyNoThreadAndEnd) {
  settings.stream_threads_max = 1;
  settings.idle_limit = 5s;
  serve();
  std::vector<RawClient> slow;
  for (int i = 0; i < 8; i++) {
    slow.push_back(client());
    slow.back().send("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc");
  }
  RawClient other = client();
  for (int i = 0; i < 10; i++)
    EXPECT_EQ(other.exchange("POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\nname|x").body, "name|x");
  for (RawClient& client : slow) EXPECT_EQ(client.receive().status, 408);
}

TEST_F(HttpStreams, Sends100ContinueWhenTheBodyIsFirstRead) {
  std::promise<void> may_read;
  handler.on_stream = [&](Stream& stream) {
    may_read.get_future().wait();
    const auto taken = read_body(stream);
    stream.reply({200, {}, taken ? std::to_string(*taken) : "broken"}).value();
  };
  serve();
  RawClient client = this->client();
  client.send("PUT /stream HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n");
  pollfd heard = {client.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&heard, 1, 50), 0) << "nothing is sent before the handler reads";
  may_read.set_value();
  EXPECT_EQ(client.receive().status, 100);
  EXPECT_EQ(client.exchange(body_from(0, 1000)).body, "1000");
}

TEST_F(HttpStreams, SendsNo100ContinueForARejectedBody) {
  handler.on_stream = [](Stream& stream) { stream.reply({403, {}, "no"}).value(); };
  serve();
  RawClient client = this->client();
  const Answer answer = client.exchange(
      "PUT /stream HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(answer.headers.get("Connection"), "close")
      << "whether the body follows cannot be known";
  EXPECT_TRUE(client.closed());
}

// Debian's botocore misreads the next answer on a connection when its wait was answered by another
// status than 100.
TEST_F(HttpStreams, Sends100ContinueForAnEmptyBody) {
  bool wanted = true;
  handler.on_stream = [&](Stream& stream) {
    EXPECT_TRUE(!wanted || read_body(stream));
    stream.reply({200, {}, "ok"}).value();
  };
  serve();
  RawClient client = this->client();
  client.send("PUT /stream HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  EXPECT_EQ(client.receive().body, "ok");
  wanted = false;
  const Answer answer =
      client.exchange("PUT /stream HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(answer.headers.get("Connection"), "close");
}

TEST_F(HttpStreams, DropsASmallUnreadBodyAndEndsTheConnectionForALargeOne) {
  handler.on_stream = [](Stream& stream) { stream.reply({403, {}, "no"}).value(); };
  serve();
  RawClient small = client();
  for (int i = 0; i < 3; i++)
    EXPECT_EQ(small
                  .exchange("PUT /stream HTTP/1.1\r\nContent-Length: 1000\r\n\r\n" +
                            std::string(1000, 'b'))
                  .status,
              403);
  RawClient large = client();
  large.send("PUT /stream HTTP/1.1\r\nContent-Length: 8000000\r\n\r\n" +
             std::string(8'000'000, 'b'));
  const Answer answer = large.receive();
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(answer.headers.get("Connection"), "close");
}

TEST_F(HttpStreams, ClientDetectsABrokenStream) {
  handler.on_stream = [](Stream& stream) {
    const bool sized = stream.head().path() == "/stream/sized";
    stream.start(200, {}, sized ? std::optional<uint64_t>(1000) : std::nullopt).value();
    stream.write(std::string(500, 'x')).value();
    if (!sized) throw std::runtime_error("a fault of ours");
  };
  serve();
  RawClient client = this->client();
  EXPECT_EQ(client.exchange("GET /stream/sized HTTP/1.1\r\n\r\n").status, 0);
  RawClient other = this->client();
  EXPECT_EQ(other.exchange("GET /stream/chunked HTTP/1.1\r\n\r\n").status, 0);
}

TEST_F(HttpStreams, AStreamEndsWhenItsClientDies) {
  std::promise<Kind> how;
  handler.on_stream = [&](Stream& stream) {
    stream.start(200, {}, kLarge).value();
    const auto given = write_body(stream, kLarge);
    how.set_value(given ? Kind::internal : given.error().kind);
  };
  serve();
  {
    RawClient client = this->client();
    client.send("GET /stream HTTP/1.1\r\n\r\n");
    EXPECT_FALSE(client.receive_some().empty());
  }
  EXPECT_EQ(how.get_future().get(), Kind::unavailable);
}

TEST_F(HttpStreams, AStreamIsCancelledWhenItsClientStalls) {
  settings.idle_limit = 200ms;
  std::promise<Kind> reading, writing;
  handler.on_stream = [&](Stream& stream) {
    if (stream.head().method == "PUT") {
      std::vector<char> buffer(1000);
      auto got = stream.read(buffer);
      while (got && *got > 0) got = stream.read(buffer);
      reading.set_value(got ? Kind::internal : got.error().kind);
    } else {
      stream.start(200, {}, std::nullopt).value();
      const auto given = write_body(stream, kLarge);
      writing.set_value(given ? Kind::internal : given.error().kind);
    }
  };
  serve();
  RawClient sender = client(), reader = client();
  sender.send("PUT /stream HTTP/1.1\r\nContent-Length: 1000\r\n\r\nabc");
  reader.send("GET /stream HTTP/1.1\r\n\r\n");
  EXPECT_EQ(reading.get_future().get(), Kind::cancelled);
  EXPECT_EQ(writing.get_future().get(), Kind::cancelled);
}

// Both directions are idle, so no deadline of the server would end the connection.
TEST_F(HttpStreams, AnUpgradedConnectionEndsWhenItsClientVanishes) {
  if (::geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
  settings.dead_peer = {.idle = 1s, .interval = 1s, .dead_after = 3s};
  std::promise<Kind> how;
  handler.on_stream = [&](Stream& stream) {
    const auto connection = stream.upgrade("shell");
    if (!connection) return how.set_value(Kind::internal);
    for (int i = 0; i < 60; i++)
      if (const auto bytes = (*connection)->read(1s, -1); !bytes)
        return how.set_value(bytes.error().kind);
    how.set_value(Kind::internal);
  };
  test::in_own_network([&] {
    serve();
    RawClient client = this->client();
    client.send("GET /stream HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: shell\r\n\r\n");
    EXPECT_EQ(client.receive(true).status, 101);
    test::set_loopback(0);
    EXPECT_EQ(how.get_future().get(), Kind::unavailable);
  });
}

// The kernel drops what it has not yet sent when a socket with unread bytes is closed.
TEST_F(HttpStreams, AnUpgradedConnectionSendsAllBytesWhileTheClientStillSends) {
  const std::string output(256 << 10, 'x');
  std::promise<void> sent, written;
  handler.on_stream = [&](Stream& stream) {
    const auto connection = stream.upgrade("shell");
    ASSERT_TRUE(connection);
    sent.get_future().wait();
    EXPECT_TRUE((*connection)->write(output));
    written.set_value();
  };
  serve();
  RawClient client(server->port(), 4096);
  client.send("GET /stream HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: shell\r\n\r\n");
  EXPECT_EQ(client.receive(true).status, 101);
  client.send("bytes that the server never reads");
  sent.set_value();
  written.get_future().wait();
  std::string received;
  for (std::string some = client.receive_some(); !some.empty(); some = client.receive_some())
    received += some;
  EXPECT_EQ(received.size(), output.size());
}

// A client that sends byte by byte is never idle, but is ended all the same.
TEST_F(HttpStreams, AStreamBelowTheLowestRateIsCancelled) {
  settings.idle_limit = 200ms;
  settings.bytes_per_second_min = 1 << 20;
  std::promise<Kind> reading;
  handler.on_stream = [&](Stream& stream) {
    std::vector<char> buffer(1000);
    auto got = stream.read(buffer);
    while (got && *got > 0) got = stream.read(buffer);
    reading.set_value(got ? Kind::internal : got.error().kind);
  };
  serve();
  RawClient sender = client();
  sender.send("PUT /stream HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
  std::future<Kind> ended = reading.get_future();
  for (int i = 0; i < 10'000 && ended.wait_for(5ms) != std::future_status::ready; i++)
    sender.send("a");
  ASSERT_EQ(ended.wait_for(0ms), std::future_status::ready);
  EXPECT_EQ(ended.get(), Kind::cancelled);
}

TEST_F(HttpStreams, AnAnsweredStreamOccupiesNoThreadForTheRestOfItsBody) {
  settings.stream_threads_max = 1;
  handler.on_stream = [](Stream& stream) { stream.reply({403, {}, "no"}).value(); };
  serve();
  std::vector<RawClient> slow;
  for (int i = 0; i < 8; i++) {
    slow.push_back(client());
    slow.back().send("PUT /stream HTTP/1.1\r\nContent-Length: 1000\r\n\r\nabc");
    EXPECT_EQ(slow.back().receive().status, 403);
  }
  RawClient other = client();
  EXPECT_EQ(other.exchange("GET /stream HTTP/1.1\r\n\r\n").status, 403);
}

TEST_F(HttpStreams, ATenantsStreamsLeaveThreadsToOthers) {
  settings.stream_threads_per_tenant = 2;
  handler.on_choose = [](const RequestHead& head) {
    return Handler::Choice{Intake::streamed, 0, {}, std::string(head.query()), {}};
  };
  std::promise<void> open;
  const std::shared_future<void> gate = open.get_future().share();
  handler.on_stream = [gate](Stream& stream) {
    if (stream.head().query() == "hostile") gate.wait();
    stream.reply({200, {}, "done"}).value();
  };
  settings.stream_threads_max = 3;
  serve();
  std::vector<RawClient> held;
  for (int i = 0; i < 8; i++) {
    held.push_back(client());
    held.back().send("GET /stream?hostile HTTP/1.1\r\n\r\n");
  }
  RawClient other = client();
  for (int i = 0; i < 10; i++)
    EXPECT_EQ(other.exchange("GET /stream?other HTTP/1.1\r\n\r\n").body, "done");
  open.set_value();
  for (RawClient& client : held) EXPECT_EQ(client.receive().body, "done");
}

TEST_F(HttpStreams, StreamsBeyondTheThreadsWaitForOneToEnd) {
  settings.stream_threads_max = 2;
  std::atomic<int> inside = 0, most = 0;
  handler.on_stream = [&](Stream& stream) {
    const int now = ++inside;
    for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::yield();
    inside--;
    stream.reply({200, {}, "done"}).value();
  };
  serve();
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 8; t++)
    threads.emplace_back([&] {
      RawClient client = this->client();
      for (int i = 0; i < 20; i++)
        if (client.exchange("GET /stream HTTP/1.1\r\n\r\n").body == "done") right++;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 160);
  EXPECT_LE(most, 2);
}

}  // namespace
}  // namespace trainyard::net
