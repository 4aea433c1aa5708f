// Sends any bytes as a client, and checks that the server answers, rejects or closes, does not
// hang, and passes no more bytes to the handler than were sent.
//
// decoder: src/foundation/net/http_decoder.cpp
//
// The first byte of an input is the number of parts in which the rest is sent. Paths that start
// with /s are streamed.
#include <arpa/inet.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <string_view>

#include "base/check.hpp"
#include "net/http_server.hpp"
#include "os/files.hpp"

namespace {

using namespace trainyard;

struct Echo : net::Handler {
  Choice choose(const net::RequestHead& head) override {
    return {head.path().starts_with("/s") ? net::Intake::streamed : net::Intake::buffered, 2000};
  }
  void handle(net::Request request, std::unique_ptr<net::Responder> responder) override {
    CHECK(request.body.size() <= 2000, "buffered bodies have a limit");
    CHECK(!request.content_length || *request.content_length == request.body.size(),
          "a body is as long as announced");
    net::Headers headers;
    for (const auto& [name, value] : request.headers.fields()) headers.add(name, value);
    responder->reply({200, headers, request.body});
  }
  void stream(net::Stream& stream) override {
    std::array<char, 100> buffer;
    if (!stream.start(200, {}, std::nullopt)) return;
    for (;;) {
      const auto got = stream.read(buffer);
      if (!got || *got == 0) return;
      if (!stream.write({buffer.data(), *got})) return;
    }
  }
};

struct Listening {
  Echo echo;
  std::unique_ptr<net::HttpServer> server;
  Listening() {
    auto made =
        net::serve_http({.listen = "127.0.0.1:0", .io_threads = 1, .head_bytes_max = 2000}, echo);
    CHECK(made, "one can listen on some port");
    server = std::move(*made);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Listening listening;
  if (size == 0) return 0;
  const size_t parts = 1 + data[0] % 4;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);

  const os::File socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(listening.server->port());
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(socket.descriptor(), reinterpret_cast<sockaddr*>(&where), sizeof where) == 0,
        "the server is there");
  // Resets the connection at the end instead of leaving thousands in TIME_WAIT.
  const linger at_once = {1, 0};
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  const timeval timeout = {20, 0};
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);

  const size_t step = bytes.size() / parts + 1;
  for (size_t place = 0; place < bytes.size(); place += step)
    if (::send(socket.descriptor(), bytes.data() + place, std::min(step, bytes.size() - place),
               MSG_NOSIGNAL) < 0)
      break;
  ::shutdown(socket.descriptor(), SHUT_WR);
  std::array<char, 16 << 10> answer;
  ssize_t got;
  do got = ::recv(socket.descriptor(), answer.data(), answer.size(), 0);
  while (got > 0);
  CHECK(got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK),
        "the server ends every connection whose client did");
  return 0;
}
