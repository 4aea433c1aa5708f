// Serves plain HTTP and TLS on one port. The first byte of a connection determines the protocol
// (0x16 starts a TLS handshake).
//
// The server decodes the header of a request and calls the Handler before it reads the body. The
// handler rejects the request, or chooses the intake of its body:
//   buffered   the I/O threads read the whole body first (up to a limit); handle() runs on an I/O
//              thread and must not block. It may answer later, from any thread, through its
//              Responder. For small requests to the control plane.
//   blocking   as buffered, but handle() runs on a thread of the pool and may block.
//   streamed   stream() runs on a thread of the pool, and reads and writes the body with blocking
//              calls through a bounded buffer. For objects.
//   prefaced   the start of the body is passed to preface() on an I/O thread, piece by piece, until
//              it rejects the request or chooses streaming. For requests with a signature in their
//              body.
// Expect: 100-continue is answered when the body is first read. Keep-alive and pipelining work as
// in HTTP/1.1.
//
// Slow peers: a rejected request and a buffered body occupy no thread of the pool, even if they are
// slow. Streams must transfer at least bytes_per_second_min in each direction (rate_floor.hpp).
// Tenants share the threads of the pool, and peers share the connections. If all connections are in
// use, each new one ends the oldest connection without an accepted request or, if there is none,
// the oldest one that waits for its next request.
//
// Threads: the handler is called from many threads at once. Lifetime: the handler must outlive the
// server; stop() stops accepting, lets current requests finish until the deadline, and joins all
// threads. Errors: of listening: conflict (address in use), denied. The server itself answers
// malformed headers with 400, headers longer than head_bytes_max with 431, bodies longer than the
// handler's limit with 413, and slow ones with 408.
#pragma once

#include <any>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "net/dead_peer.hpp"

namespace trainyard::net {

// Header fields in the order of arrival. Names are compared without regard to case.
class Headers {
 public:
  void add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  void set(std::string_view name, std::string value);  // replaces all values of this name
  // Returns the first value; "" if there is none.
  std::string_view get(std::string_view name) const;
  bool has(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }
  void reserve(size_t count) { fields_.reserve(count); }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

struct RequestHead {
  std::string method;  // as sent: "GET"
  std::string target;  // as sent, undecoded: "/bucket/a%20b?list-type=2"
  Headers headers;
  bool tls = false;
  std::string peer;  // "127.0.0.1:51234"
  std::optional<uint64_t> content_length;
  std::any finding = {};  // the finding of choose(), in a type of the handler

  std::string_view path() const;     // undecoded, before '?'
  std::string_view query() const;    // undecoded, after '?'; "": none
  std::string peer_address() const;  // without port and brackets: "127.0.0.1", "::1"
};

struct Request : RequestHead {
  std::string body;
};

struct Response {
  int status = 200;
  // The server adds Content-Length, Date and Connection. "Connection: close" here ends the
  // connection after this answer. A Content-Length here is kept in an answer to HEAD. Control
  // characters in values are sent as blanks.
  Headers headers;
  std::string body;
};

// A Responder answers one buffered request once, from any thread. If it is destroyed without an
// answer, it answers 500. It may outlive connection and server; the answer is then dropped.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void reply(Response response) = 0;
};

// An Upgraded is a connection after an upgrade: it transfers bytes of another protocol in both
// directions. Confined to the thread of its stream, which it must not outlive.
class Upgraded {
 public:
  virtual ~Upgraded() = default;
  // Waits for the next bytes of the client. Returns "" if `at_most` has passed or the descriptor
  // `wake` is readable. Errors: unavailable or cancelled, if the connection has ended.
  virtual Result<std::string> read(Duration at_most, int wake) = 0;
  virtual Result<void> write(std::string_view bytes) = 0;
};

// A Stream is one streamed request. Confined to the thread of stream(). Every call blocks for at
// most the idle limit.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual const RequestHead& head() const = 0;
  // Reads the next bytes of the body (transfer coding removed); 0 at its end.
  virtual Result<size_t> read(std::span<char> buffer) = 0;
  // Sends the status and the headers (if the length is known, together with the first bytes of the
  // body). If `content_length` is unset, the body is chunked. Requires: called once, before
  // write().
  virtual Result<void> start(int status, const Headers& headers,
                             std::optional<uint64_t> content_length) = 0;
  // Sends bytes of the body. Fewer bytes than the declared length end the connection, so that the
  // client detects it; more bytes are a bug. In an answer to HEAD they are dropped.
  virtual Result<void> write(std::span<const char> bytes) = 0;
  // Calls start() and write() for a whole response.
  virtual Result<void> reply(const Response& response) = 0;
  // Answers 101 and switches to `protocol`. Errors: invalid (HTTP/1.0, a request with a body), and
  // those of writing. Requires: neither read() nor start() was called.
  virtual Result<std::unique_ptr<Upgraded>> upgrade(std::string_view protocol) = 0;
};

enum class Intake { buffered, blocking, streamed, prefaced };

class Handler {
 public:
  virtual ~Handler() = default;
  // The intake of a request's body, and the limit of buffered and blocking bodies.
  struct Choice {
    Intake intake = Intake::buffered;
    size_t body_bytes_max = 4 << 20;
    std::optional<Response> refusal = std::nullopt;  // answered at once; the body is not read
    // the tenant to whose share of threads the request counts
    std::string tenant = "";
    std::any finding = {};  // added to the head, for preface(), handle() and stream()
    // false: the client is authenticated only by the body. Until handle() has answered without an
    // error, the connection may be closed in favour of another client.
    bool authenticated = true;
  };
  // Called on an I/O thread: must not block.
  virtual Choice choose(const RequestHead& head) = 0;
  // Called for prefaced requests with the next bytes of the body; `whole`: they are the last bytes.
  // Returns nullopt to receive more bytes, a refusal, or a Choice with the tenant: stream() is then
  // called, and reads the bytes after these. Must not block.
  virtual std::optional<Choice> preface(const RequestHead& head, std::string_view bytes,
                                        bool whole) {
    static_cast<void>(head), static_cast<void>(bytes), static_cast<void>(whole);
    return Choice{.refusal = Response{.status = 500, .headers = {}, .body = ""}};
  }
  virtual void handle(Request request, std::unique_ptr<Responder> responder) = 0;
  virtual void stream(Stream& stream) = 0;
};

// The clients that may use plain HTTP; others are answered with 403. this_machine: clients with an
// address of this machine.
enum class PlainHttp { all, this_machine, none };

struct HttpSettings {
  std::string listen = "127.0.0.1:4566";  // port 0: any free port
  PlainHttp plain_http = PlainHttp::all;
  std::string certificate_file;  // PEM; "" = no TLS
  std::string key_file;
  size_t io_threads = 2;
  size_t stream_threads_max = 256;  // further streams wait until one ends
  // half of them, so that two tenants never wait for each other's slow clients
  size_t stream_threads_per_tenant = 128;
  size_t connections_max = 4096;
  // Limit per address (IPv6: per /64 network). All jobs and clients of this machine are one peer.
  size_t connections_per_peer_max = 2048;
  size_t head_bytes_max = 64 << 10;
  // Limit of the bodies of all buffered requests together; beyond it requests are answered with
  // 503. Requests that are not authenticated by their headers have an additional quarter of it.
  size_t buffered_bytes_max = 256 << 20;
  // A connection ends if no byte arrives within this time, or if a header is incomplete after it.
  // Checked four times in this time, and at least every second.
  Duration idle_limit = 60s;
  // The minimum rate of a stream in each direction, averaged over idle_limit. It ends clients that
  // send byte by byte, and is far below the rate of the slowest link in use.
  uint64_t bytes_per_second_min = 1 << 10;
  // Applies to connections that wait for no bytes: idle upgraded ones, or requests that are still
  // being processed.
  DeadPeerLimits dead_peer = {};
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;  // stops without grace
  virtual uint16_t port() const = 0;
  struct Load {
    size_t connections = 0;
    size_t streams_running = 0;
    size_t streams_waiting = 0;  // wait for a thread, because their tenant uses its share
  };
  virtual Load load() const = 0;
  // Reads the files of certificate and key again, for new connections. Callable from any thread.
  // Errors: invalid; the current certificate is then still used.
  virtual Result<void> renew_certificate() = 0;
  // Stops accepting, closes idle connections, lets current requests finish for at most `grace`,
  // ends the other requests, and joins all threads. Requires: not called from a handler.
  virtual void stop(Duration grace) = 0;
};

Result<std::unique_ptr<HttpServer>> serve_http(const HttpSettings& settings, Handler& handler);

}  // namespace trainyard::net
