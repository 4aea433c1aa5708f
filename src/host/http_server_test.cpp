#include "host/http_server.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "base/text.hpp"
#include "host/files.hpp"

namespace trainyard::host {
namespace {

// Answers by what a test hands it.
struct TestHandler : Handler {
  std::function<Choice(const RequestHead&)> on_choose = [](const RequestHead& head) {
    return Choice{head.path().starts_with("/stream") ? Intake::streamed : Intake::buffered, 1 << 20};
  };
  std::function<void(Request, std::unique_ptr<Responder>)> on_handle =
      [](Request request, std::unique_ptr<Responder> responder) {
        Headers headers;
        headers.add("X-Method", request.method);
        responder->reply({200, headers, request.target + "|" + request.body});
      };
  std::function<void(Stream&)> on_stream = [](Stream& stream) {
    stream.reply({200, {}, "streamed"}).value();
  };

  Choice choose(const RequestHead& head) override { return on_choose(head); }
  void handle(Request request, std::unique_ptr<Responder> responder) override {
    on_handle(std::move(request), std::move(responder));
  }
  void stream(Stream& stream) override { on_stream(stream); }
};

struct Answer {
  int status = 0;
  Headers headers;
  std::string body;
};

// A client that says exactly what it is told to, over a plain socket with blocking calls.
class RawClient {
 public:
  explicit RawClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in where = {};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.descriptor(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
    const timeval patience = {60, 0};  // so that a failing test ends
    ::setsockopt(socket_.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }

  // False when the server has closed.
  bool say(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(size_t(sent));
    }
    return true;
  }

  std::string hear_some() {
    std::string bytes(64 << 10, 0);
    const ssize_t got = ::recv(socket_.descriptor(), bytes.data(), bytes.size(), 0);
    bytes.resize(got > 0 ? size_t(got) : 0);
    return bytes;
  }

  bool fill() {
    const std::string more = hear_some();
    heard_ += more;
    return !more.empty();
  }

  // One whole answer; status 0 when the connection ended before it was whole.
  Answer hear(bool to_head = false) {
    Answer answer;
    size_t end;
    while ((end = heard_.find("\r\n\r\n")) == std::string::npos)
      if (!fill()) return {};
    const std::string head = heard_.substr(0, end);
    heard_.erase(0, end + 4);
    const std::vector<std::string_view> lines = split(head, '\n');
    answer.status = int(parse_int(lines[0].substr(9, 3)).value());
    for (size_t i = 1; i < lines.size(); i++) {
      const size_t colon = lines[i].find(':');
      answer.headers.add(std::string(lines[i].substr(0, colon)),
                         std::string(trim(lines[i].substr(colon + 1))));
    }
    if (to_head || answer.status == 100 || answer.status == 204 || answer.status == 304) return answer;
    if (answer.headers.get("Transfer-Encoding") == "chunked") {
      for (;;) {
        while ((end = heard_.find("\r\n")) == std::string::npos)
          if (!fill()) return {};
        const size_t size = std::stoul(heard_.substr(0, end), nullptr, 16);
        while (heard_.size() < end + 2 + size + 2)
          if (!fill()) return {};
        answer.body += heard_.substr(end + 2, size);
        heard_.erase(0, end + 2 + size + 2);
        if (size == 0) return answer;
      }
    }
    if (!answer.headers.has("Content-Length")) {
      while (fill()) {
      }
      answer.body = std::exchange(heard_, {});
      return answer;
    }
    const size_t size = size_t(parse_int(answer.headers.get("Content-Length")).value());
    while (heard_.size() < size)
      if (!fill()) return {};
    answer.body = heard_.substr(0, size);
    heard_.erase(0, size);
    return answer;
  }

  Answer ask(std::string_view request) {
    say(request);
    return hear();
  }
  // Whether the server has closed, and said nothing more.
  bool closed() { return heard_.empty() && hear_some().empty(); }
  void close() { socket_.close(); }
  int descriptor() const { return socket_.descriptor(); }

 private:
  File socket_;
  std::string heard_;
};

struct Http : testing::Test {
  TestHandler handler;
  HttpSettings settings{.listen = "127.0.0.1:0", .io_threads = 2};
  std::unique_ptr<HttpServer> server;

  void serve() {
    auto served = serve_http(settings, handler);
    ASSERT_TRUE(served) << served.error().message;
    server = std::move(*served);
  }
  RawClient client() { return RawClient(server->port()); }
};

TEST_F(Http, AnswersOneAfterAnotherOnOneConnection) {
  serve();
  RawClient client = this->client();
  for (int i = 0; i < 3; i++) {
    const Answer answer = client.ask("POST /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "/a%20b?x=1|hello");
    EXPECT_EQ(answer.headers.get("x-method"), "POST");
    EXPECT_TRUE(parse_http_date(answer.headers.get("Date")));
    EXPECT_FALSE(answer.headers.has("Connection"));
  }
  const Answer last = client.ask("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(last.headers.get("Connection"), "close");
  EXPECT_TRUE(client.closed());
}

TEST_F(Http, TellsTheHandlerWhatItKnows) {
  RequestHead seen;
  handler.on_handle = [&](Request request, std::unique_ptr<Responder> responder) {
    seen = request;
    responder->reply({});
  };
  serve();
  RawClient client = this->client();
  client.ask("PUT /p/q?a=b?c HTTP/1.1\r\nHost: h\r\nX-Twice: 1\r\nx-twice:  2 \r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(seen.method, "PUT");
  EXPECT_EQ(seen.path(), "/p/q");
  EXPECT_EQ(seen.query(), "a=b?c");
  EXPECT_EQ(seen.content_length, 0u);
  EXPECT_FALSE(seen.tls);
  EXPECT_TRUE(seen.peer.starts_with("127.0.0.1:"));
  EXPECT_EQ(seen.headers.get("X-TWICE"), "1");
  EXPECT_EQ(seen.headers.fields().at(2), std::pair(std::string("x-twice"), std::string("2")));
}

TEST_F(Http, PipelinedRequestsAreAnsweredInOrder) {
  serve();
  RawClient client = this->client();
  std::string all;
  for (int i = 0; i < 100; i++)
    all += "POST /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
  std::thread speaker([&] { client.say(all); });
  for (int i = 0; i < 100; i++) EXPECT_EQ(client.hear().body, "/" + std::to_string(i) + "|abc");
  speaker.join();
}

TEST_F(Http, ChunkedBodiesAreJoined) {
  serve();
  RawClient client = this->client();
  const std::string request =
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n";
  EXPECT_EQ(client.ask(request).body, "/c|abc0123456789");
  for (const char byte : request) client.say(std::string(1, byte));
  EXPECT_EQ(client.hear().body, "/c|abc0123456789");
  EXPECT_EQ(client.ask("POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").status, 400);
  EXPECT_TRUE(client.closed());
}

TEST_F(Http, ContinuesWhoAsksBeforeSending) {
  serve();
  RawClient client = this->client();
  client.say("PUT /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.hear().status, 100);
  EXPECT_EQ(client.ask("body").body, "/e|body");
  EXPECT_EQ(client.ask("PUT /e HTTP/1.1\r\nExpect: miracles\r\nContent-Length: 4\r\n\r\n").status, 417);
}

TEST_F(Http, AnswersFromAnotherThread) {
  std::vector<std::thread> threads;
  std::mutex mutex;
  handler.on_handle = [&](Request request, std::unique_ptr<Responder> responder) {
    const std::lock_guard lock(mutex);
    threads.emplace_back([request = std::move(request), responder = std::move(responder)] {
      responder->reply({201, {}, request.body});
    });
  };
  serve();
  RawClient client = this->client();
  for (int i = 0; i < 50; i++) {
    const Answer answer = client.ask("POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(answer.body, "x");
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Http, AResponderThatIsDroppedAnswers500) {
  handler.on_handle = [](Request, std::unique_ptr<Responder>) {};
  handler.on_stream = [](Stream&) {};
  serve();
  RawClient client = this->client();
  EXPECT_EQ(client.ask("GET / HTTP/1.1\r\n\r\n").status, 500);
  EXPECT_EQ(client.ask("GET /stream HTTP/1.1\r\n\r\n").status, 500);
}

TEST_F(Http, HeadSaysTheLengthAndNoBody) {
  handler.on_stream = [](Stream& stream) {
    stream.start(200, {}, 1000).value();
    stream.write(std::string(1000, 'x')).value();
  };
  serve();
  RawClient client = this->client();
  client.say(
      "HEAD /12345 HTTP/1.1\r\nHost: h\r\n\r\nHEAD /stream HTTP/1.1\r\nHost: h\r\n\r\nGET /after "
      "HTTP/1.1\r\n\r\n");
  EXPECT_EQ(client.hear(true).headers.get("Content-Length"), "7");
  EXPECT_EQ(client.hear(true).headers.get("Content-Length"), "1000");
  EXPECT_EQ(client.hear().body, "/after|");
}

TEST_F(Http, SmallStreams) {
  serve();
  RawClient client = this->client();
  for (int i = 0; i < 3; i++) EXPECT_EQ(client.ask("GET /stream HTTP/1.1\r\n\r\n").body, "streamed");
}

}  // namespace
}  // namespace trainyard::host
