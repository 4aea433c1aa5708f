#include "dispatch/s3_exchange.hpp"

#include <future>

#include "base/check.hpp"
#include "base/log.hpp"
#include "protocol/replies.hpp"

namespace trainyard::api {
namespace {

constexpr std::string_view kDeclaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

}  // namespace

void set_sandbox_headers(net::Headers& headers) {
  headers.set("Content-Security-Policy", "sandbox");
  headers.set("X-Content-Type-Options", "nosniff");
}

Result<void> S3Exchange::start_erased(const void* output, std::optional<uint64_t> content_length,
                                      int status) {
  CHECK(!started(), "a reply starts once");
  S3Reply made = s3_reply(operation_, output, request_id_);
  status_ = status == 0 ? made.response.status : status;
  return stream_.start(status_, with_headers(std::move(made.response.headers)), content_length);
}

net::Headers S3Exchange::with_headers(net::Headers headers) const {
  set_sandbox_headers(headers);
  for (const auto& [name, value] : headers_) headers.add(name, value);
  return headers;
}

void S3Exchange::run_long(const std::function<void()>& work) {
  auto done = std::async(std::launch::async, work);
  // The work continues after the client disconnects, since the client will retry.
  while (done.wait_for(blank_interval_) == std::future_status::timeout) {
    if (client_left_) continue;
    if (auto sent = send_blank(); !sent) {
      client_left_ = true;
      log(Level::debug, "api", "the client disconnected before the response",
          {{"request", request_id_}, {"why", sent.error().message}});
    }
  }
  done.get();
}

Result<void> S3Exchange::send_blank() {
  if (head_sent_) return stream_.write(std::string_view(" "));
  head_sent_ = true;
  TRY(stream_.start(200, with_headers(s3_document_headers(request_id_)), std::nullopt));
  return stream_.write(kDeclaration);
}

Result<void> S3Exchange::write_rest(std::string_view document) {
  if (document.starts_with(kDeclaration)) document.remove_prefix(kDeclaration.size());
  return stream_.write(document);
}

}  // namespace trainyard::api
