#include "client/curl.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

namespace trainyard::client {
namespace {

// Accepts one connection, sends prepared pieces after the request, and then waits until the client
// has closed the connection, or closes it.
class OneAnswer {
 public:
  OneAnswer(std::vector<std::string> pieces, bool closes) : pieces_(std::move(pieces)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/watch";
    thread_ = std::thread([this, closes] { serve(closes); });
  }
  ~OneAnswer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  OneAnswer(const OneAnswer&) = delete;

  const std::string& url() const { return url_; }

 private:
  void serve(bool closes) {
    const int connection = ::accept(listener_, nullptr, nullptr);
    if (connection < 0) return;
    char buffer[4096];
    std::string request;
    while (request.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = ::read(connection, buffer, sizeof buffer);
      if (got <= 0) break;
      request.append(buffer, size_t(got));
    }
    for (const std::string& piece : pieces_)
      if (::send(connection, piece.data(), piece.size(), MSG_NOSIGNAL) < 0) break;
    while (!closes && ::read(connection, buffer, sizeof buffer) > 0) {
    }
    ::close(connection);
  }

  const std::vector<std::string> pieces_;
  int listener_ = -1;
  std::string url_;
  std::thread thread_;
};

constexpr const char* kEndlessHeader = "HTTP/1.1 200 OK\r\n\r\n";

class CurlStreamTest : public testing::Test {
 protected:
  CurlStreamTest() {
    limits_.connect_limit = 10s;
    streaming_.answer_limit = 60s;
    streaming_.receive = [this](std::string_view piece) {
      received_ += piece;
      ++pieces_;
      return true;
    };
  }

  Result<Answer> get(const std::string& url) {
    Curl curl(limits_);
    return curl.stream("GET", url, {{"Accept", "application/json"}}, "", streaming_);
  }

  CurlLimits limits_;
  Streaming streaming_;
  std::string received_;
  int pieces_ = 0;
};

TEST_F(CurlStreamTest, ReceivesAnAnswerWhileItArrives) {
  // The receiver ends the request: the server would never end its answer.
  const OneAnswer server({kEndlessHeader, "first\n", "second\n"}, false);
  streaming_.receive = [&](std::string_view piece) {
    if (pieces_++ == 0) {
      EXPECT_EQ(piece, "") << "the answer begins";
    }
    received_ += piece;
    return received_ != "first\nsecond\n";
  };
  const auto answer = get(server.url());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "");
  EXPECT_EQ(received_, "first\nsecond\n");
}

TEST_F(CurlStreamTest, EndsWithTheServersAnswer) {
  const OneAnswer server({kEndlessHeader, "all\n"}, true);
  const auto answer = get(server.url());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(received_, "all\n");
}

TEST_F(CurlStreamTest, ReadsAnAnswerOfAnotherStatusWhole) {
  const OneAnswer server({"HTTP/1.1 410 Gone\r\nContent-Length: 3\r\n\r\nold"}, true);
  const auto answer = get(server.url());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 410);
  EXPECT_EQ(answer->body, "old");
  EXPECT_EQ(pieces_, 0);
}

TEST_F(CurlStreamTest, FailsWhenAnAnswerBreaksOff) {
  const OneAnswer server({"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"}, true);
  const auto answer = get(server.url());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Kind::unavailable);
  EXPECT_EQ(received_, "part");
}

TEST_F(CurlStreamTest, EndsAnAnswerThatLastsTooLong) {
  const OneAnswer server({kEndlessHeader, "part"}, false);
  streaming_.answer_limit = 50ms;
  const auto answer = get(server.url());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Kind::unavailable);
}

TEST_F(CurlStreamTest, EndsAtTheInterrupt) {
  const OneAnswer server({kEndlessHeader, "part"}, false);
  streaming_.interrupt_descriptor = ::eventfd(0, EFD_CLOEXEC);
  ASSERT_GE(streaming_.interrupt_descriptor, 0);
  streaming_.receive = [&](std::string_view piece) {
    received_ += piece;
    // While the answer arrives, as another thread would.
    if (received_ == "part") {
      EXPECT_EQ(::eventfd_write(streaming_.interrupt_descriptor, 1), 0);
    }
    return true;
  };
  const auto answer = get(server.url());
  ::close(streaming_.interrupt_descriptor);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Kind::cancelled);
  EXPECT_EQ(received_, "part");
}

TEST_F(CurlStreamTest, ReadsAWholeAnswerWithoutAReceiver) {
  const OneAnswer server({"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlist"}, true);
  streaming_.receive = {};
  const auto answer = get(server.url());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "list");
}

}  // namespace
}  // namespace trainyard::client
