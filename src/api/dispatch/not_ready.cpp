#include "dispatch/not_ready.hpp"

#include "protocol/errors.hpp"
#include "protocol/replies.hpp"
#include "protocol/route.hpp"
#include "shapes/services.hpp"

namespace trainyard::api {

net::Response not_ready(const net::RequestHead& head, std::string_view request_id,
                        const std::string& why) {
  const Route where = route(all_services(), head);
  const shapes::Service& service = where.service ? *where.service : *all_services()[0];
  const Failure failure = failure_of(service, unavailable(why));
  net::Response response =
      where.protocol == Protocol::rest_xml ? s3_failure_reply(head, failure, request_id)
      : where.protocol == Protocol::query  ? query_failure(where.service, failure, request_id)
                                           : json_failure(where.service, failure, request_id);
  response.headers.set("Retry-After", "1");
  return response;
}

}  // namespace trainyard::api
