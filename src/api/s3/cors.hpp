// Decides by a bucket's CORS rules which pages of other origins may use the bucket. Browsers
// enforce the decision: a request without a matching rule is still processed.
//
// Threads: pure functions. Errors: none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shapes/s3.hpp"

namespace trainyard::api::s3 {

// CorsRequest is what a browser requests for a page.
struct CorsRequest {
  std::string_view origin;   // "https://notebook.example"
  std::string_view method;   // of the request that the page makes
  std::string_view headers;  // names, separated by commas: Access-Control-Request-Headers
};

// Finds the first rule that allows the origin, the method and every header; nullptr = none.
const shapes::s3::CORSRule* find_rule(const shapes::s3::CORSConfiguration& cors,
                                      const CorsRequest& request);

// Makes the headers of the response to a request that the rule allows. `preflight`: with those that
// answer Access-Control-Request-*.
std::vector<std::pair<std::string, std::string>> cors_headers(const shapes::s3::CORSRule& rule,
                                                              const CorsRequest& request,
                                                              bool preflight);

}  // namespace trainyard::api::s3
