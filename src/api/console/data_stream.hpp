// DataStream forwards S3's response to a page: the bytes unchanged, and the headers of
// data_request.hpp instead of S3's.
//
// Threads: confined to one, as net::Stream. Lifetime: the page's stream outlives it.
#pragma once

#include <utility>

#include "console/data_request.hpp"
#include "net/http_server.hpp"

namespace trainyard::api::console {

class DataStream final : public net::Stream {
 public:
  // `head`: the signed request of S3.
  DataStream(net::Stream& page, const DataRequest& request, const net::RequestHead& head)
      : page_(page), request_(request), head_(head) {}

  const net::RequestHead& head() const override { return head_; }
  Result<size_t> read(std::span<char>) override { return size_t(0); }  // there is no body
  Result<void> start(int status, const net::Headers& headers,
                     std::optional<uint64_t> content_length) override {
    return page_.start(status, data_headers(request_, status, headers), content_length);
  }
  Result<void> write(std::span<const char> bytes) override { return page_.write(bytes); }
  Result<void> reply(const net::Response& response) override {
    return page_.reply({response.status, data_headers(request_, response.status, response.headers),
                        response.body});
  }
  Result<std::unique_ptr<net::Upgraded>> upgrade(std::string_view) override {
    return invalid("objects are not upgraded");
  }

 private:
  net::Stream& page_;
  const DataRequest& request_;
  const net::RequestHead& head_;
};

}  // namespace trainyard::api::console
