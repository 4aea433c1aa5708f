#include "dispatch/cross_origin.hpp"

#include "protocol/route.hpp"
#include "s3/cors.hpp"

namespace trainyard::api {
namespace {

Failure forbidden(std::string message) {
  return s3_failure(403, "AccessForbidden", "CORSResponse: " + std::move(message));
}

}  // namespace

CrossOrigin::Rules CrossOrigin::rules_of(const std::string& bucket) const {
  const auto record = settings_.find(bucket, s3::Setting::cors);
  {
    const MutexLock lock(mutex_);
    const auto found = parsed_.find(bucket);
    if (found != parsed_.end() && found->second.from == record) return found->second.rules;
    if (found != parsed_.end()) parsed_.erase(found);
  }
  if (!record) return nullptr;
  const shapes::Shape& shape = *shapes::s3::PutBucketCors::shape().input->payload->shape;
  auto rules = std::make_shared<shapes::s3::CORSConfiguration>();
  if (!s3::BucketSettings::read(*record, bucket, s3::Setting::cors, shape, rules.get()))
    rules = nullptr;
  const MutexLock lock(mutex_);
  if (parsed_.size() >= kParsedCorsMax) parsed_.clear();
  parsed_[bucket] = {record, rules};
  return rules;
}

size_t CrossOrigin::parsed() const {
  const MutexLock lock(mutex_);
  return parsed_.size();
}

CrossOrigin::Rules CrossOrigin::find_rules(const net::RequestHead& head) const {
  const auto address = read_s3_address(head);
  return address ? rules_of(address->bucket) : nullptr;
}

Outcome<net::Response> CrossOrigin::answer_preflight(const net::RequestHead& head) const {
  const s3::CorsRequest request{head.headers.get("origin"),
                                head.headers.get("access-control-request-method"),
                                head.headers.get("access-control-request-headers")};
  if (request.origin.empty())
    return s3_failure(400, "BadRequest", "Insufficient information. Origin request header needed.");
  if (request.method.empty())
    return s3_failure(400, "BadRequest", "Invalid Access-Control-Request-Method: null");
  const Rules cors = find_rules(head);
  if (!cors) return forbidden("CORS is not enabled for this bucket.");
  const shapes::s3::CORSRule* rule = s3::find_rule(*cors, request);
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
  const Rules cors = find_rules(head);
  const shapes::s3::CORSRule* rule = cors ? s3::find_rule(*cors, request) : nullptr;
  return rule ? s3::cors_headers(*rule, request, false) : NameValues();
}

void CrossOrigin::add_to(net::Response& response, const net::RequestHead& head) const {
  for (auto& [name, value] : headers_for(head))
    response.headers.add(std::move(name), std::move(value));
}

}  // namespace trainyard::api
