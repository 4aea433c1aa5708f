#include "net/tls_client.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "net/certificates.hpp"
#include "net/testing/http_test_client.hpp"
#include "net/testing/test_socket.hpp"

namespace trainyard::net {
namespace {

// Carries the bytes of a client over a socket.
struct TlsClientTest : Http {
  void SetUp() override {
    with_tls();
    serve();
  }
  std::unique_ptr<TlsClient> make(const std::string& name) {
    auto made = tls_clients(*os::read_file(authority), name);
    EXPECT_TRUE(made) << made.error().message;
    return (*made)->make();
  }
  void send_output(TlsClient& client) {
    const std::string bytes = client.take_output();
    ASSERT_EQ(::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              ssize_t(bytes.size()));
  }
  // Feeds up to `bytes_max` bytes of the server. Returns false at their end.
  bool feed(TlsClient& client, size_t bytes_max) {
    std::string bytes(bytes_max, 0);
    const ssize_t got = ::recv(socket.descriptor(), bytes.data(), bytes.size(), 0);
    if (got > 0) client.feed({bytes.data(), size_t(got)});
    return got > 0;
  }
  Result<bool> shake_hands(TlsClient& client, size_t bytes_max) {
    for (;;) {
      auto done = client.shake_hands();
      send_output(client);
      if (!done || *done) return done;
      if (!feed(client, bytes_max)) return unavailable("closed by the server");
    }
  }
  const os::File& connect() { return socket = test::connect_to(server->port()); }
  os::File socket;
};

TEST_F(TlsClientTest, ExchangesBytesInPartsOfAnySize) {
  for (const size_t part : {1, 7, 4096}) {
    connect();
    const auto client = make("127.0.0.1");
    const auto done = shake_hands(*client, part);
    ASSERT_TRUE(done && *done) << done.error().message;
    ASSERT_TRUE(client->encrypt("GET /x HTTP/1.1\r\nConnection: close\r\n\r\n"));
    ASSERT_TRUE(client->encrypt(""));
    send_output(*client);
    std::string answer;
    for (bool more = true; more && feed(*client, part);) more = client->decrypt(answer).value();
    EXPECT_TRUE(answer.ends_with("/x|")) << answer;
  }
}

TEST_F(TlsClientTest, RejectsOtherNamesAndAuthorities) {
  connect();
  const auto other_name = make("127.0.0.2");
  EXPECT_EQ(shake_hands(*other_name, 4096).error().kind, Kind::denied);
  os::TemporaryDirectory elsewhere;
  const auto paths = ensure_certificates(elsewhere.path(), {"127.0.0.1"}, os::MachineClock().now());
  connect();
  const auto other = (*tls_clients(*os::read_file(paths->authority), "127.0.0.1"))->make();
  const auto refused = shake_hands(*other, 4096);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Kind::denied) << refused.error().message;
  EXPECT_EQ(tls_clients("garbage", "127.0.0.1").error().kind, Kind::invalid);
}

TEST_F(TlsClientTest, ReportsChangedBytes) {
  connect();
  const auto client = make("127.0.0.1");
  ASSERT_TRUE(shake_hands(*client, 4096));
  client->feed(std::string("\x17\x03\x03\0\x20", 5) + std::string(32, 'x'));
  std::string plain;
  EXPECT_EQ(client->decrypt(plain).error().kind, Kind::corrupt);
  EXPECT_EQ(plain, "");
}

TEST_F(TlsClientTest, ReportsServersWithoutTls) {
  const auto client = make("127.0.0.1");
  EXPECT_FALSE(client->shake_hands().value());
  client->feed("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(client->shake_hands().error().kind, Kind::corrupt);
}

}  // namespace
}  // namespace trainyard::net
