// Sends signed requests to a handler without sockets, like the server, and stores the responses in
// memory. For tests.
//
//   auto reply = *send(*api, signed_request("GET", "/bucket/key", {}, "", "s3", clock.now()));
//   EXPECT_EQ(reply.status, 200);
//
// Threads: confined to the test's thread. Limits: none; bodies are small.
#pragma once

#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/json.hpp"
#include "base/random.hpp"
#include "net/http_server.hpp"
#include "operations/testing/fake_control.hpp"
#include "signing/signing.hpp"

namespace trainyard::api::in_memory {

struct Reply {
  int status = 0;
  net::Headers headers;
  std::string body;
  std::optional<uint64_t> content_length;  // of a streamed response
  bool answered = false;

  Json json() const { return *parse_json(body); }
  std::string code() const { return json().value("__type", ""); }
  std::string message() const { return json().value("message", ""); }
};

inline bool is_denied(const Reply& reply) {
  return reply.status != 200 &&
         reply.body.find("is not authorized to perform") != std::string::npos;
}

class MemoryStream final : public net::Stream {
 public:
  // `taken`: the number of bytes of the body that preface() has read.
  MemoryStream(net::Request request, Reply& reply, size_t piece_bytes, size_t taken = 0)
      : request_(std::move(request)), reply_(reply), piece_bytes_(piece_bytes), taken_(taken) {}
  const net::RequestHead& head() const override { return request_; }
  Result<size_t> read(std::span<char> buffer) override {
    const size_t count = std::min({buffer.size(), piece_bytes_, request_.body.size() - taken_});
    std::memcpy(buffer.data(), request_.body.data() + taken_, count);
    taken_ += count;
    return count;
  }
  Result<void> start(int status, const net::Headers& headers,
                     std::optional<uint64_t> content_length) override {
    CHECK(!reply_.answered, "start() is called once");
    reply_.answered = true;
    reply_.status = status;
    reply_.headers = headers;
    reply_.content_length = content_length;
    return ok();
  }
  Result<void> write(std::span<const char> bytes) override {
    CHECK(reply_.answered, "start() comes first");
    reply_.body.append(bytes.data(), bytes.size());
    return ok();
  }
  Result<void> reply(const net::Response& response) override {
    TRY(start(response.status, response.headers, response.body.size()));
    return write(response.body);
  }
  // The client sends nothing. The reply's body has the bytes that it receives.
  Result<std::unique_ptr<net::Upgraded>> upgrade(std::string_view protocol) override {
    if (request_.headers.get("upgrade") != protocol)
      return invalid("the request has no Upgrade to " + std::string(protocol));
    TRY(start(101, {}, {}));
    return std::unique_ptr<net::Upgraded>(new MemoryUpgraded(*this));
  }

 private:
  struct MemoryUpgraded final : net::Upgraded {
    explicit MemoryUpgraded(MemoryStream& stream) : stream(stream) {}
    Result<std::string> read(Duration, int) override { return unavailable("the client has left"); }
    Result<void> write(std::string_view bytes) override {
      return stream.write({bytes.data(), bytes.size()});
    }
    MemoryStream& stream;
  };

  const net::Request request_;
  Reply& reply_;
  const size_t piece_bytes_;
  size_t taken_;
};

struct MemoryResponder final : net::Responder {
  explicit MemoryResponder(std::shared_ptr<Reply> to) : reply_(std::move(to)) {}
  void reply(net::Response response) override {
    CHECK(!reply_->answered, "reply() is called once");
    *reply_ = {response.status, std::move(response.headers), std::move(response.body), {}, true};
  }
  std::shared_ptr<Reply> reply_;
};

// Passes `request` to the handler as the server does.
inline std::shared_ptr<Reply> send(net::Handler& handler, net::Request request,
                                   size_t piece_bytes = 7) {
  auto reply = std::make_shared<Reply>();
  if (!request.content_length) request.content_length = request.body.size();
  auto choice = handler.choose(request);
  request.finding = std::move(choice.finding);
  size_t taken = 0;
  if (choice.intake == net::Intake::prefaced) {
    for (std::optional<net::Handler::Choice> next; !next;) {
      const size_t piece = std::min(piece_bytes, request.body.size() - taken);
      taken += piece;
      const bool whole = taken == request.body.size();
      next = handler.preface(request, std::string_view(request.body).substr(taken - piece, piece),
                             whole);
      if (!next && whole)
        next = net::Handler::Choice{.refusal =
                                        net::Response{.status = 400, .headers = {}, .body = ""}};
      if (next) choice.refusal = std::move(next->refusal);
    }
    choice.intake = net::Intake::streamed;
  }
  if (choice.refusal) {
    MemoryResponder(reply).reply(std::move(*choice.refusal));
  } else if (choice.intake != net::Intake::streamed) {
    handler.handle(std::move(request), std::make_unique<MemoryResponder>(reply));
  } else {
    MemoryStream stream(std::move(request), *reply, piece_bytes, taken);
    handler.stream(stream);
  }
  return reply;
}

// The keys and the region of a signature.
struct Signing {
  signing::Keys keys{"AKIAOWNER", "owner-secret", ""};
  std::string region = "eu-west-1";
};

inline net::Request signed_request(std::string method, std::string target,
                                   signing::HeaderList headers, std::string body,
                                   const std::string& service, Instant now,
                                   const Signing& by = {}) {
  net::Request request;
  headers.emplace_back("Host", "127.0.0.1:4566");
  for (auto& field : signing::sign(method, target, headers, signing::sha256_hex(body), by.keys,
                                   {by.region, service}, now))
    headers.push_back(std::move(field));
  request.method = std::move(method);
  request.target = std::move(target);
  for (auto& [name, value] : headers) request.headers.add(std::move(name), std::move(value));
  request.body = std::move(body);
  return request;
}

}  // namespace trainyard::api::in_memory
