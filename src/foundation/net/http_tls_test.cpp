// Tests HTTP and TLS on one port, and the renewal of the certificate.
#include <gtest/gtest.h>

#include "net/certificates.hpp"
#include "net/http_server.hpp"
#include "net/testing/http_test_client.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"

namespace trainyard::net {
namespace {

TEST_F(Http, ServesHttpAndTlsOnOnePort) {
  with_tls();
  handler.on_handle = [](Request request, std::unique_ptr<Responder> responder) {
    responder->reply({200, {}, request.tls ? "secret" : "open"});
  };
  serve();
  RawClient plain = client(), tls = client();
  ASSERT_TRUE(tls.start_tls(authority));
  for (int i = 0; i < 3; i++) {
    EXPECT_EQ(plain.exchange("GET / HTTP/1.1\r\n\r\n").body, "open");
    EXPECT_EQ(tls.exchange("GET / HTTP/1.1\r\n\r\n").body, "secret");
  }
  EXPECT_EQ(tls.exchange("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").body, "secret");
  EXPECT_TRUE(tls.closed());
}

// The clock is a parameter: a certificate that was made a year ago ends today.
TEST_F(Http, RenewsItsCertificateWhileItRuns) {
  const Instant now = os::MachineClock().now();
  with_tls(now - 380 * 24h);
  serve();
  RawClient before = client();
  ASSERT_TRUE(before.start_tls(authority));
  const std::string first = before.certificate();
  ASSERT_TRUE(server->renew_certificate());
  RawClient same = client();
  ASSERT_TRUE(same.start_tls(authority));
  EXPECT_EQ(same.certificate(), first) << "the files have not changed";

  ASSERT_TRUE(ensure_certificates(tls_directory->path(), {"127.0.0.1"}, now));
  ASSERT_TRUE(server->renew_certificate());
  RawClient after = client();
  ASSERT_TRUE(after.start_tls(authority));
  EXPECT_NE(after.certificate(), first);
  EXPECT_EQ(before.exchange("GET /x HTTP/1.1\r\n\r\n").body, "/x|")
      << "existing connections continue";

  ASSERT_TRUE(os::write_file_durably(settings.certificate_file, "nonsense", 0644));
  EXPECT_EQ(server->renew_certificate().error().kind, Kind::invalid);
  RawClient still = client();
  ASSERT_TRUE(still.start_tls(authority));
  EXPECT_EQ(still.certificate(), after.certificate());
}

TEST_F(Http, RejectsPlainHttpWithAnExplanationIfOnlyTlsIsAllowed) {
  with_tls();
  settings.plain_http = PlainHttp::none;
  serve();
  RawClient plain = client(), tls = client();
  const Answer answer = plain.exchange("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(answer.status, 403);
  EXPECT_NE(answer.body.find("https://"), std::string::npos);
  EXPECT_TRUE(plain.closed());
  ASSERT_TRUE(tls.start_tls(authority));
  EXPECT_EQ(tls.exchange("GET /x HTTP/1.1\r\n\r\n").body, "/x|");
}

TEST_F(Http, AllowsPlainHttpOnlyToThisMachine) {
  with_tls();
  settings.plain_http = PlainHttp::this_machine;
  serve();
  EXPECT_EQ(client().exchange("GET /x HTTP/1.1\r\n\r\n").body, "/x|");
}

TEST_F(Http, AnInvalidHandshakeEndsOnlyItsConnection) {
  with_tls();
  serve();
  for (const std::string_view garbage : {"\x16", "\x16\x03\x01\xff\xff garbage", "\x16\x03\x01"}) {
    RawClient client = this->client();
    client.send(garbage);
  }
  RawClient late = client();
  EXPECT_EQ(late.exchange("GET /x HTTP/1.1\r\n\r\n").body, "/x|");
}

TEST_F(Http, TlsWithoutACertificateIsClosed) {
  serve();
  RawClient client = this->client();
  client.send("\x16\x03\x01\x02");
  EXPECT_TRUE(client.closed());
}

}  // namespace
}  // namespace trainyard::net
