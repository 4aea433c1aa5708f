#include "dispatch/remote.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "auth/delegation.hpp"
#include "base/text.hpp"
#include "dispatch/s3_exchange.hpp"
#include "signing/signing.hpp"

namespace trainyard::api {
namespace {

// in a forwarded request: a request's maximum age
constexpr Duration kPassedSessionLifetime = 15min;

// of a whole response; a page of log lines has some MiB
constexpr size_t kAnswerBytesMax = 64 << 20;

// The path-style target of an S3 request, without the parameters of the old signature.
std::string target_of(const S3Address& address) {
  std::string target = "/";
  if (!address.bucket.empty()) target += percent_encode(address.bucket);
  if (!address.key.empty()) target += "/" + percent_encode(address.key, true);
  char separator = '?';
  for (const auto& [name, value] : address.query) {
    if (to_lower(name).starts_with("x-amz-") && !equals_ignoring_case(name, "x-amz-id")) continue;
    target += separator + percent_encode(name) + (value.empty() ? "" : "=" + percent_encode(value));
    separator = '&';
  }
  return target;
}

// Encodes a body as aws-chunked again: the trailers (checksums) are known only after the whole
// body.
class ChunkedAgain {
 public:
  explicit ChunkedAgain(Body& body) : body_(body) {}

  Result<size_t> read(std::span<char> buffer) {
    while (at_ == framed_.size()) {
      if (ended_) return size_t(0);
      TRY(next());
    }
    const size_t count = std::min(buffer.size(), framed_.size() - at_);
    std::memcpy(buffer.data(), framed_.data() + at_, count);
    at_ += count;
    return count;
  }

 private:
  Result<void> next() {
    constexpr size_t kChunkBytes = 64 << 10;
    chunk_.resize(kChunkBytes);
    const size_t got = TRY(body_.read(chunk_));
    at_ = 0;
    if (got == 0) {
      framed_ = "0\r\n";
      for (const auto& [name, value] : body_.trailers()) framed_ += name + ":" + value + "\r\n";
      framed_ += "\r\n";
      ended_ = true;
      return {};
    }
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", got);
    framed_ = size;
    framed_.append(chunk_.data(), got).append("\r\n");
    return {};
  }

  Body& body_;
  std::string chunk_, framed_;
  size_t at_ = 0;
  bool ended_ = false;
};

net::Headers to_headers(const client::Fields& fields) {
  net::Headers headers;
  for (const auto& [name, value] : fields)
    if (name != "content-length") headers.add(name, value);
  return headers;
}

// Removes a client's own kDelegationHeader: only this server may set it.
client::Fields headers_for(const client::Fields& headers, const std::string& on_behalf) {
  client::Fields passed = client::forwarded_headers(headers);
  std::erase_if(passed, [](const auto& field) { return field.first == kDelegationHeader; });
  if (!on_behalf.empty()) passed.emplace_back(kDelegationHeader, on_behalf);
  return passed;
}

}  // namespace

Result<std::string> on_behalf_of(const Context& context) {
  if (context.principal.owner()) return std::string();
  Delegation delegation = delegation_of(context);
  RoleSession& session = delegation.session;
  // This server has checked that the job's attempt runs. The other server does not have the job.
  if (context.principal.job && !session.assumed)
    session.expires = context.now + kPassedSessionLifetime;
  session.job_region.clear();
  session.job_name.clear();
  return to_base64(TRY(format_delegation(delegation)));
}

bool is_global(const shapes::Service* service) {
  return !service || service->name == "sts" || service->name == "iam";
}

bool Remotes::is_for_another(const Route& route, const std::string& region) const {
  return !is_global(route.service) && regions_.count(region) > 0;
}

Result<net::Response> Remotes::pass(const net::RequestHead& head, const std::string& body,
                                    const Route& route, const std::string& region,
                                    const std::string& on_behalf) {
  client::ForwardedRequest request;
  request.method = head.method;
  request.target = head.target;
  request.headers = headers_for(head.headers.fields(), on_behalf);
  request.scope = {region, std::string(route.service->scope)};
  request.payload_sha256 = signing::sha256_hex(body);
  request.body_bytes = body.size();
  size_t sent = 0;
  if (head.method != "GET" && head.method != "DELETE")
    request.read = [&](std::span<char> buffer) -> Result<size_t> {
      const size_t count = std::min(buffer.size(), body.size() - sent);
      std::memcpy(buffer.data(), body.data() + sent, count);
      sent += count;
      return count;
    };
  net::Response response;
  client::Receiver receiver;
  receiver.start = [&](int status, const client::Fields& headers) {
    response.status = status;
    response.headers = to_headers(headers);
    return ok();
  };
  receiver.write = [&](std::span<const char> bytes) -> Result<void> {
    if (response.body.size() + bytes.size() > kAnswerBytesMax)
      return exhausted("the answer of the region " + region + " exceeds " +
                       std::to_string(kAnswerBytesMax) + " bytes");
    response.body.append(bytes.data(), bytes.size());
    return {};
  };
  TRY(forwarder_.forward(regions_.at(region), request, receiver)
          .in("the region " + region + " does not answer"));
  return response;
}

Result<void> Remotes::pass_s3(net::Stream& stream, const S3Address& address, Body& body,
                              const std::string& region, const std::string& on_behalf,
                              Streamed& streamed) {
  const net::RequestHead& head = stream.head();
  client::ForwardedRequest request;
  request.method = head.method;
  request.target = target_of(address);
  request.headers = headers_for(without_chunked_encoding(head.headers.fields()), on_behalf);
  request.scope = {region, "s3"};
  request.payload_sha256 = signing::kUnsignedPayload;
  ChunkedAgain chunked(body);
  const auto trailer = head.headers.get("x-amz-trailer");
  if (!trailer.empty()) {
    request.payload_sha256 = "STREAMING-UNSIGNED-PAYLOAD-TRAILER";
    request.headers.emplace_back("x-amz-trailer", trailer);
    if (const auto bytes = body.bytes())
      request.headers.emplace_back("x-amz-decoded-content-length", std::to_string(*bytes));
    std::string coding = "aws-chunked";
    std::erase_if(request.headers, [&](const auto& field) {
      if (field.first != "content-encoding") return false;
      coding = field.second + ",aws-chunked";
      return true;
    });
    request.headers.emplace_back("content-encoding", coding);
    request.read = [&](std::span<char> buffer) { return chunked.read(buffer); };
  } else if (head.method == "PUT" || head.method == "POST") {
    request.body_bytes = body.bytes();
    request.read = [&](std::span<char> buffer) { return body.read(buffer); };
  }
  client::Receiver receiver;
  receiver.start = [&](int status, const client::Fields& fields) {
    streamed.started = true;
    streamed.status = status;
    std::optional<uint64_t> length;
    for (const auto& [name, value] : fields)
      if (name == "content-length")
        if (const auto number = parse_int(value); number && *number >= 0)
          length = uint64_t(*number);
    if (!length && (status == 204 || status == 304)) length = 0;
    net::Headers headers = to_headers(fields);
    set_sandbox_headers(headers);
    return stream.start(status, headers, length);
  };
  receiver.write = [&](std::span<const char> bytes) { return stream.write(bytes); };
  return forwarder_.forward(regions_.at(region), request, receiver)
      .in("the region " + region + " does not answer");
}

}  // namespace trainyard::api
