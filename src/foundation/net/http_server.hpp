// One port for plain HTTP and TLS alike: the first byte of a connection tells (0x16 opens a TLS handshake).
//
// The server decodes heads and asks a Handler, by the head alone and before a byte of the body is read, to refuse the
// request or to say how to take its body:
//   buffered   the whole body is read first (up to a limit) by the I/O threads, handle() runs on an I/O thread and must
//              not block; it may answer later, from any thread, through its Responder. For the control plane's small
//              requests.
//   blocking   as buffered, but handle() runs on a thread of the pool and may block.
//   streamed   stream() runs on a thread of the pool and reads and writes the body with blocking calls through a
//              bounded buffer. For objects.
//   prefaced   the beginning of the body goes to preface() on an I/O thread, piece by piece, until that refuses the
//              request or has it streamed. For requests whose signature is in their body.
// Expect: 100-continue is answered when the body is first wanted. Keep-alive and pipelining as in HTTP/1.1.
//
// Slow peers: a request that is refused, and a buffered body however slowly it comes, hold no thread. Streams must move
// bytes_per_second_min in both directions (rate_floor.hpp). Threads of the pool are shared by tenants, connections by
// peers. Where connections are full, the oldest one that has not had a request accepted is ended for each new one.
//
// Threads: the handler is called from many threads at once. Lifetime: the handler must outlive the server;
// stop() ends accepting, lets requests under way finish until the deadline, and joins all threads. Errors:
// listening: conflict (address in use), denied. Malformed heads are answered 400, heads past head_bytes_max
// 431, bodies past the handler's limit 413, slow ones 408, by the server itself.
#pragma once

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
  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  void set(std::string_view name, std::string value);  // replaces all of that name
  // The first value; "" when there is none.
  std::string_view get(std::string_view name) const;
  bool has(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& fields() const { return fields_; }
  void reserve(size_t count) { fields_.reserve(count); }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

// What a handler found out about a request by its head alone: carried from choose() to handle() or stream().
struct Finding {
  virtual ~Finding() = default;
};

struct RequestHead {
  std::string method;  // as sent: "GET"
  std::string target;  // as sent, undecoded: "/bucket/a%20b?list-type=2"
  Headers headers;
  bool tls = false;
  std::string peer;  // "127.0.0.1:51234"
  std::optional<uint64_t> content_length;
  std::shared_ptr<Finding> finding = nullptr;  // of choose(); null: none

  std::string_view path() const;   // undecoded, before '?'
  std::string_view query() const;  // undecoded, after '?'; "" when there is none
};

struct Request : RequestHead {
  std::string body;
};

struct Response {
  int status = 200;
  // Content-Length, Date, Connection are added. "Connection: close" here ends the connection after this
  // answer; a Content-Length here is kept in an answer to HEAD. Control characters in values go out as
  // blanks.
  Headers headers;
  std::string body;
};

// Answers one buffered request, once, from any thread. Destroyed unanswered, it answers 500. It may outlive
// connection and server: then nobody hears it.
class Responder {
 public:
  virtual ~Responder() = default;
  virtual void reply(Response response) = 0;
};

// A connection after an upgrade: bytes of another protocol, both ways. Confined to the thread of its stream; ends with
// it.
class Upgraded {
 public:
  virtual ~Upgraded() = default;
  // Waits for the client's next bytes. "": none came, since the time is over or `wake` (a descriptor) became readable.
  // Errors: unavailable, cancelled: the connection has ended.
  virtual Result<std::string> read(Duration at_most, int wake) = 0;
  virtual Result<void> write(std::string_view bytes) = 0;
};

// One streamed request. Confined to the thread stream() runs on. Every call blocks for at most the idle
// limit.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual const RequestHead& head() const = 0;
  // The next bytes of the body (transfer coding removed); 0 at its end.
  virtual Result<size_t> read(std::span<char> buffer) = 0;
  // Sends the head (with the first bytes of the body, where its length is known). `content_length` unset:
  // chunked. Requires: once, before write().
  virtual Result<void> start(int status, const Headers& headers, std::optional<uint64_t> content_length) = 0;
  // Fewer bytes than were promised end the connection, so that the client sees that something is missing;
  // more are our own fault. In an answer to HEAD they are dropped.
  virtual Result<void> write(std::span<const char> bytes) = 0;
  // start + write of a whole response.
  virtual Result<void> reply(const Response& response) = 0;
  // In place of all that: answers 101 and goes over to that protocol. Errors: invalid (HTTP/1.0, a request with a body),
  // and those of writing. Requires: nothing was read or started.
  virtual Result<std::unique_ptr<Upgraded>> upgrade(std::string_view protocol) = 0;
};

enum class Intake { buffered, blocking, streamed, prefaced };

class Handler {
 public:
  virtual ~Handler() = default;
  // How to take this request's body, and for buffered and blocking ones how much of it at most.
  struct Choice {
    Intake intake = Intake::buffered;
    size_t body_bytes_max = 4 << 20;
    std::optional<Response> refusal = std::nullopt;  // answered at once; nothing of the body is read
    std::string tenant = "";                         // whose share of the threads it uses
    std::shared_ptr<Finding> finding = nullptr;      // goes into the head
  };
  // Called on an I/O thread: must not block.
  virtual Choice choose(const RequestHead& head) = 0;
  // Of prefaced requests: takes the next bytes of the body; `whole`: no more will come. Nothing: more are wanted. Otherwise
  // a refusal, or the tenant: then stream() is called, and reads on behind these bytes. Must not block.
  virtual std::optional<Choice> preface(const RequestHead& head, std::string_view bytes, bool whole) {
    static_cast<void>(head), static_cast<void>(bytes), static_cast<void>(whole);
    return Choice{.refusal = Response{.status = 500, .headers = {}, .body = ""}};
  }
  virtual void handle(Request request, std::unique_ptr<Responder> responder) = 0;
  virtual void stream(Stream& stream) = 0;
};

// Who may speak plain HTTP; others are answered 403 in words. Whoever connects from an address of this machine is on it.
enum class PlainHttp { everybody, this_machine, nobody };

struct HttpSettings {
  std::string listen = "127.0.0.1:4566";  // port 0: any free one
  PlainHttp plain_http = PlainHttp::everybody;
  std::string certificate_file;  // PEM; "" = no TLS
  std::string key_file;
  size_t io_threads = 2;
  size_t stream_threads_max = 256;         // streams beyond wait for one to end
  size_t stream_threads_per_tenant = 128;  // so that two tenants never wait for each other's slow clients
  size_t connections_max = 4096;
  // From one address (IPv6: from one /64 network). All jobs and clients of this machine are one peer.
  size_t connections_per_peer_max = 2048;
  size_t head_bytes_max = 64 << 10;
  size_t buffered_bytes_max = 256 << 20;  // bodies of all buffered requests together; beyond, 503
  // No byte for so long ends a connection, and so does a head that is not whole by then (looked at four times
  // in that time, or every second).
  Duration idle_limit = 60s;
  // What a stream must move in either direction, averaged over idle_limit. Enough to end whoever sends byte by byte, and
  // far below the slowest link in use.
  uint64_t bytes_per_second_min = 1 << 10;
  // Of connections that wait for no byte: an upgraded one in which nothing is said, a request that is still worked on.
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
  // Reads the files of certificate and key again, for connections that come from now on; others keep theirs. From any
  // thread. Errors: invalid: the certificate in use stays.
  virtual Result<void> renew_certificate() = 0;
  // Ends accepting, closes idle connections, lets requests under way finish for at most `grace`, cuts off the
  // rest, and joins all threads. Requires: not called from a handler.
  virtual void stop(Duration grace) = 0;
};

Result<std::unique_ptr<HttpServer>> serve_http(const HttpSettings& settings, Handler& handler);

}  // namespace trainyard::net
