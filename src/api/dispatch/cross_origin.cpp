#include "dispatch/cross_origin.hpp"

#include "protocol/route.hpp"
#include "s3/cors.hpp"

namespace trainyard::api {
namespace {

Failure forbidden(std::string message) {
  return s3_failure(403, "AccessForbidden", "CORSResponse: " + std::move(message));
}

}  // namespace

bool CrossOrigin::find_rules(const net::RequestHead& head,
                             shapes::s3::CORSConfiguration& cors) const {
  const auto address = read_s3_address(head);
  const shapes::Shape& shape = *shapes::s3::PutBucketCors::shape().input->payload->shape;
  return address && settings_.read(address->bucket, s3::Setting::cors, shape, &cors);
}

Outcome<net::Response> CrossOrigin::answer_preflight(const net::RequestHead& head) const {
  const s3::CorsRequest request{head.headers.get("origin"),
                                head.headers.get("access-control-request-method"),
                                head.headers.get("access-control-request-headers")};
  if (request.origin.empty())
    return s3_failure(400, "BadRequest", "Insufficient information. Origin request header needed.");
  if (request.method.empty())
    return s3_failure(400, "BadRequest", "Invalid Access-Control-Request-Method: null");
  shapes::s3::CORSConfiguration cors;
  if (!find_rules(head, cors)) return forbidden("CORS is not enabled for this bucket.");
  const shapes::s3::CORSRule* rule = s3::find_rule(cors, request);
  if (!rule)
    return forbidden(
        "This CORS request is not allowed. This is usually because the evalution of Origin, "
        "request method / Access-Control-Request-Method or Access-Control-Request-Headers are not "
        "whitelisted by the resource's CORS spec.");
  net::Response response;
  for (auto& [name, value] : s3::cors_headers(*rule, request, true))
    response.headers.add(std::move(name), std::move(value));
  return response;
}

NameValues CrossOrigin::headers_for(const net::RequestHead& head) const {
  const s3::CorsRequest request{head.headers.get("origin"), head.method, ""};
  if (request.origin.empty()) return {};
  shapes::s3::CORSConfiguration cors;
  const shapes::s3::CORSRule* rule =
      find_rules(head, cors) ? s3::find_rule(cors, request) : nullptr;
  return rule ? s3::cors_headers(*rule, request, false) : NameValues();
}

void CrossOrigin::add_to(net::Response& response, const net::RequestHead& head) const {
  for (auto& [name, value] : headers_for(head))
    response.headers.add(std::move(name), std::move(value));
}

}  // namespace trainyard::api
