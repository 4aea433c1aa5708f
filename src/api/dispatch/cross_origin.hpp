// CrossOrigin answers preflights of S3, which browsers send unsigned, and makes the CORS headers of
// other responses, by the rules of the bucket (s3/cors.hpp).
//
// It caches the parsed rules of the last requested buckets, since preflights are answered on the
// thread that serves all connections, for any client.
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

// The maximum of cached buckets, whose documents have at most 64 KiB.
inline constexpr size_t kParsedCorsMax = 256;

class CrossOrigin {
 public:
  explicit CrossOrigin(control::Control& control) : settings_(control) {}

  static bool is_preflight(const net::RequestHead& head) { return head.method == "OPTIONS"; }
  // Makes the response to a preflight, without the request's id. Failures: S3's.
  Outcome<net::Response> answer_preflight(const net::RequestHead& head) const;

  // Returns the headers to add to the response to any other request: none without a header Origin,
  // or if no rule of the bucket allows the request.
  NameValues headers_for(const net::RequestHead& head) const;
  void add_to(net::Response& response, const net::RequestHead& head) const;

  using Rules = std::shared_ptr<const shapes::s3::CORSConfiguration>;
  // Returns the rules of a bucket: the same object until they are changed; nullptr = none.
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
