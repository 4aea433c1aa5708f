// An S3Exchange reads the body of one S3 request and sends its response, which may begin before the
// operation ends.
//
// A long operation keeps its client connected as S3 does. After `blank_interval` the head with
// status 200 and the beginning of the XML document are sent, then a space at each further interval.
// The rest of the document is the result: the output, or <Error>, which clients check for.
//
// Threads: confined to the stream's thread; the work of run_long() runs on another thread, which
// must not use the exchange.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "dispatch/body.hpp"
#include "net/http_server.hpp"
#include "operations/table.hpp"
#include "protocol/rest_xml.hpp"

namespace trainyard::api {

// Sets the headers that make browsers show a response of S3 without scripts and in an opaque
// origin. The response comes from the console's origin, so a script in an object could use the
// session of the person who opens it.
void set_sandbox_headers(net::Headers& headers);

class S3Exchange final : public ExchangeEnds {
 public:
  // `headers`: added to the response's head. Lifetime: all other arguments outlive it.
  S3Exchange(const net::RequestHead& head, const shapes::OperationShape& operation,
             const std::string& request_id, Duration blank_interval, net::Stream& stream,
             Body& body, NameValues headers = {})
      : head_(head),
        operation_(operation),
        request_id_(request_id),
        blank_interval_(blank_interval),
        stream_(stream),
        body_(body),
        headers_(std::move(headers)) {}

  const net::RequestHead& head() const override { return head_; }
  Result<size_t> read(std::span<char> buffer) override { return body_.read(buffer); }
  std::optional<uint64_t> body_bytes() const override { return body_.bytes(); }
  const std::map<std::string, std::string>& trailers() const override { return body_.trailers(); }
  Result<void> start_erased(const void* output, std::optional<uint64_t> content_length,
                            int status) override;
  Result<void> write(std::span<const char> bytes) override { return stream_.write(bytes); }
  void run_long(const std::function<void()>& work) override;

  // Returns whether the operation has sent its own response.
  bool started() const { return status_ != 0; }
  int status() const { return status_; }
  // Returns whether run_long() has sent the head. write_rest() then sends the rest of the document.
  bool head_sent() const { return head_sent_; }
  Result<void> write_rest(std::string_view document);

 private:
  Result<void> send_blank();
  net::Headers with_headers(net::Headers headers) const;

  const net::RequestHead& head_;
  const shapes::OperationShape& operation_;
  const std::string& request_id_;
  const Duration blank_interval_;
  net::Stream& stream_;
  Body& body_;
  const NameValues headers_;
  int status_ = 0;
  bool head_sent_ = false;
  bool client_left_ = false;
};

}  // namespace trainyard::api
