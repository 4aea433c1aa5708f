// Answers S3's requests from pages of other origins: preflights, which browsers send unsigned, and
// the headers of other responses. The rules are those of the bucket (s3/cors.hpp).
//
// Threads: callable from many threads at once; does not block. Lifetime: control outlives it.
#pragma once

#include <string>

#include "net/http_server.hpp"
#include "protocol/errors.hpp"
#include "protocol/rest_xml.hpp"
#include "s3/bucket_settings.hpp"
#include "shapes/s3.hpp"

namespace trainyard::api {

class CrossOrigin {
 public:
  explicit CrossOrigin(control::Control& control) : settings_(control) {}

  static bool is_preflight(const net::RequestHead& head) { return head.method == "OPTIONS"; }
  // The response to a preflight, without the request's id. Failures: S3's.
  Outcome<net::Response> answer_preflight(const net::RequestHead& head) const;

  // The headers to add to the response to any other request: none without a header Origin, and
  // none if no rule of the bucket allows the request.
  NameValues headers_for(const net::RequestHead& head) const;
  void add_to(net::Response& response, const net::RequestHead& head) const;

 private:
  bool find_rules(const net::RequestHead& head, shapes::s3::CORSConfiguration& cors) const;

  const s3::BucketSettings settings_;
};

}  // namespace trainyard::api
