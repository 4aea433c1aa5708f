// Answers S3's requests from pages of other origins: preflights, which browsers send unsigned, and
// the headers of other responses. The bucket has the rules (s3/cors.hpp).
//
// The rules of the last requested buckets are cached in parsed form: preflights are unsigned,
// and are answered on the thread that serves all connections.
//
// Threads: callable from many threads at once; does not block. Lifetime: control outlives it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/thread_safety.hpp"
#include "net/http_server.hpp"
#include "protocol/errors.hpp"
#include "protocol/rest_xml.hpp"
#include "s3/bucket_settings.hpp"
#include "shapes/s3.hpp"

namespace trainyard::api {

// Documents of CORS have at most 64 KiB.
inline constexpr size_t kParsedCorsMax = 256;

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

  // The rules of a bucket, the same until they are changed; nullptr: none.
  using Rules = std::shared_ptr<const shapes::s3::CORSConfiguration>;
  Rules rules_of(const std::string& bucket) const;
  size_t parsed() const;

 private:
  struct Parsed {
    std::shared_ptr<const domain::Record> from;
    Rules rules;
  };
  Rules find_rules(const net::RequestHead& head) const;

  const s3::BucketSettings settings_;
  mutable Mutex mutex_;
  mutable std::map<std::string, Parsed> parsed_ GUARDED_BY(mutex_);
};

}  // namespace trainyard::api
