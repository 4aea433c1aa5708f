// Serves plain HTTP and TLS on one port: the first byte of a connection decides (0x16 opens a TLS
// handshake).
//
// The server decodes heads and calls a Handler, with the head alone and before a byte of the body
// is read, which refuses the request or chooses an intake of its body:
//   buffered   the whole body is read first (up to a limit) by the I/O threads, handle() runs on an
//              I/O thread and must not block; it may answer later, from any thread, through its
//              Responder. For the control plane's small requests.
//   blocking   as buffered, but handle() runs on a thread of the pool and may block.
//   streamed   stream() runs on a thread of the pool and reads and writes the body with blocking
//              calls through a bounded buffer. For objects.
//   prefaced   the beginning of the body goes to preface() on an I/O thread, piece by piece, until
//              it refuses the request or chooses streaming. For requests with a signature in their
//              body.
// Expect: 100-continue is answered when the body is first read. Keep-alive and pipelining as in
// HTTP/1.1.
//
// Slow peers: a refused request, and a buffered body of any speed, occupy no thread. Streams must
// move bytes_per_second_min in both directions (rate_floor.hpp). Tenants share the threads of the
// pool, and peers the connections. When connections are used up, each new one ends the oldest one
// without an accepted request, or else the oldest one that waits for its next request.
//
// Threads: the handler is called from many threads at once. Lifetime: the handler must outlive the
// server; stop() stops accepting, lets current requests finish until the deadline, and joins all
// threads. Errors: listening: conflict (address in use), denied. The server itself answers
// malformed heads with 400, heads past head_bytes_max with 431, bodies past the handler's limit
// with 413, and slow ones with 408.
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

// Header fields in the order of arrival; names are compared ignoring case.
class Headers {
 public:
  void add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  void set(std::string_view name, std::string value);  // replaces all of that name
  // The first value; "" when there is none.
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
  std::any finding = {};  // what choose() found, in a type of the handler's own

  std::string_view path() const;   // undecoded, before '?'
  std::string_view query() const;  // undecoded, after '?'; "" when there is none
};

struct Request : RequestHead {
  std::string body;
};

struct Response {
  int status = 200;
  // Content-Length, Date, Connection are added. "Connection: close" here ends the connection after
  // this answer; a Content-Length here is kept in an answer to HEAD. Control characters in values
  // are sent as blanks.
  Headers headers;
  std::string body;
};

// Answers one buffered request, once, from any thread. Destroyed unanswered, it answers 500. It may
// outlive connection and server: then the answer is dropped.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void reply(Response response) = 0;
};

// A connection after an upgrade: bytes of another protocol, in both directions. Confined to the
// thread of its stream; ends with it.
class Upgraded {
 public:
  virtual ~Upgraded() = default;
  // Waits for the client's next bytes. "": the time is over or `wake` (a descriptor) became
  // readable. Errors: unavailable, cancelled: the connection has ended.
  virtual Result<std::string> read(Duration at_most, int wake) = 0;
  virtual Result<void> write(std::string_view bytes) = 0;
};

// One streamed request. Confined to the thread of stream(). Every call blocks for at most the idle
// limit.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual const RequestHead& head() const = 0;
  // Reads the next bytes of the body (transfer coding removed); 0 at its end.
  virtual Result<size_t> read(std::span<char> buffer) = 0;
  // Sends the head (with the first bytes of the body, if its length is known). `content_length`
  // unset: chunked.
  // Requires: once, before write().
  virtual Result<void> start(int status, const Headers& headers,
                             std::optional<uint64_t> content_length) = 0;
  // Fewer bytes than the declared length end the connection, so that the client notices; more are a
  // bug. In an answer to HEAD they are dropped.
  virtual Result<void> write(std::span<const char> bytes) = 0;
  // Calls start and write for a whole response.
  virtual Result<void> reply(const Response& response) = 0;
  // Answers 101 instead, and switches to that protocol. Errors: invalid (HTTP/1.0, a request with a
  // body), and those of writing. Requires: nothing was read or started.
  virtual Result<std::unique_ptr<Upgraded>> upgrade(std::string_view protocol) = 0;
};

enum class Intake { buffered, blocking, streamed, prefaced };

class Handler {
 public:
  virtual ~Handler() = default;
  // Chooses the intake of a request's body, and the maximum size of buffered and blocking ones.
  struct Choice {
    Intake intake = Intake::buffered;
    size_t body_bytes_max = 4 << 20;
    std::optional<Response> refusal = std::nullopt;  // answered at once; the body is not read
    // counted against the tenant's share of threads
    std::string tenant = "";
    std::any finding = {};  // added to the head, for preface(), handle() and stream()
    // False: the client proves who it is with the body. Until handle() has answered without an
    // error, its connection is one that may be closed for another client.
    bool authenticated = true;
  };
  // Called on an I/O thread: must not block.
  virtual Choice choose(const RequestHead& head) = 0;
  // For prefaced requests: takes the next bytes of the body; `whole`: they are the last. Returns
  // nothing to get more bytes; otherwise a refusal, or the tenant: then stream() is called, and
  // reads on behind these bytes. Must not block.
  virtual std::optional<Choice> preface(const RequestHead& head, std::string_view bytes,
                                        bool whole) {
    static_cast<void>(head), static_cast<void>(bytes), static_cast<void>(whole);
    return Choice{.refusal = Response{.status = 500, .headers = {}, .body = ""}};
  }
  virtual void handle(Request request, std::unique_ptr<Responder> responder) = 0;
  virtual void stream(Stream& stream) = 0;
};

// Clients that may use plain HTTP; others are answered 403. A client with an address of this
// machine is on it.
enum class PlainHttp { all, this_machine, none };

struct HttpSettings {
  std::string listen = "127.0.0.1:4566";  // port 0: any free one
  PlainHttp plain_http = PlainHttp::all;
  std::string certificate_file;  // PEM; "" = no TLS
  std::string key_file;
  size_t io_threads = 2;
  size_t stream_threads_max = 256;  // further streams wait until one ends
  // so that two tenants never wait for each other's slow clients
  size_t stream_threads_per_tenant = 128;
  size_t connections_max = 4096;
  // Per address (IPv6: per /64 network). All jobs and clients of this machine are one peer.
  size_t connections_per_peer_max = 2048;
  size_t head_bytes_max = 64 << 10;
  // Bodies of all buffered requests together; beyond, 503. Requests that are not authenticated by
  // their heads have a quarter of it, in addition.
  size_t buffered_bytes_max = 256 << 20;
  // A connection ends without a byte within this time, or if its head is incomplete by then
  // (checked four times in that time, or every second).
  Duration idle_limit = 60s;
  // The lowest rate of a stream in either direction, averaged over idle_limit. It ends clients that
  // send byte by byte, and is far below the slowest link in use.
  uint64_t bytes_per_second_min = 1 << 10;
  // For connections that wait for no byte: an idle upgraded one, or a request that is still being
  // processed.
  DeadPeerLimits dead_peer = {};
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;  // stops without grace
  virtual uint16_t port() const = 0;
  struct Load {
    size_t connections = 0;
    size_t streams_running = 0;
    size_t streams_waiting = 0;  // for a thread, since their tenant uses its share
  };
  virtual Load load() const = 0;
  // Reads the certificate and key files again, for new connections; others keep theirs. From any
  // thread. Errors: invalid: the certificate in use stays.
  virtual Result<void> renew_certificate() = 0;
  // Stops accepting, closes idle connections, lets current requests finish for at most `grace`,
  // cuts off the rest, and joins all threads. Requires: not called from a handler.
  virtual void stop(Duration grace) = 0;
};

Result<std::unique_ptr<HttpServer>> serve_http(const HttpSettings& settings, Handler& handler);

}  // namespace trainyard::net
