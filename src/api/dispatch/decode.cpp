#include "dispatch/decode.hpp"

#include "base/xml.hpp"
#include "dispatch/body.hpp"
#include "protocol/json.hpp"
#include "protocol/rest_xml.hpp"
#include "protocol/route.hpp"
#include "protocol/xml.hpp"

namespace trainyard::api {
namespace {

Result<void> read_rest_json(const shapes::OperationShape& operation, const net::RequestHead& head,
                            const std::string& body, void* input) {
  const auto labels = TRY(read_labels(operation, head));
  const auto query = TRY(read_query_parameters(head.query()));
  TRY(read_rest(*operation.input, {labels, query, head.headers.fields(), ""}, input));
  return read_json(*operation.input, body, input);
}

// EC2's text names only one missing parameter, by its name in requests.
std::optional<Failure> missing_in_ec2(const shapes::OperationShape& operation, const void* input) {
  if (!operation.service->ec2_query) return {};
  for (const auto& member : operation.input->members)
    if (member.required && !member.find(input))
      return missing_parameter("The request must contain the parameter " +
                               std::string(member.query_name));
  return {};
}

// The operations on deliveries have another error code than the rest of CloudWatch Logs.
Failure constraint_failure(const shapes::OperationShape& operation, std::string violations) {
  if (operation.service->name == "logs" && operation.name.find("Deliver") != std::string_view::npos)
    return validation_exception(std::move(violations));
  return validation(*operation.service, std::move(violations));
}

}  // namespace

std::optional<Failure> decode_input(Protocol protocol, const shapes::OperationShape& operation,
                                    const net::RequestHead& head, const std::string& body,
                                    const NameValues& parameters, const Constraints& constraints,
                                    void* input) {
  if (!operation.input) return {};
  const auto read = protocol == Protocol::query ? read_query(*operation.input, parameters, input)
                    : protocol == Protocol::rest_json ? read_rest_json(operation, head, body, input)
                                                      : read_json(*operation.input, body, input);
  if (!read) return unreadable_body(*operation.service, read.error().message);
  if (auto missing = missing_in_ec2(operation, input)) return missing;
  if (auto violations = constraints.check(*operation.input, input))
    return constraint_failure(operation, std::move(*violations));
  return {};
}

std::optional<Failure> decode_s3_input(const Match& route, const net::RequestHead& head,
                                       const std::string& body, S3Part part, void* input) {
  const shapes::OperationShape& operation = *route.operation;
  const S3Address& address = route.address;
  const shapes::Shape* shape = operation.input;
  if (!shape) return {};
  const NameValues headers = without_chunked_encoding(head.headers.fields());
  // As on S3, unknown elements are errors: a rule with a misspelled filter would apply to all
  // objects.
  const RestRequest request{{{"Bucket", address.bucket}, {"Key", address.key}},
                            address.query,
                            headers,
                            body,
                            operation.name.starts_with("Put")};
  if (auto read = read_rest(*shape, request, input); !read)
    return read.error().is(XmlFault::not_well_formed) ||
                   read.error().is(XmlShapeFault::outside_of_shape)
               ? unreadable_body(
                     *operation.service,
                     "The XML you provided was not well-formed or did not validate against our "
                     "published schema")
               : invalid_argument(read.error().message);
  for (const auto& member : shape->members)
    if (member.required && !member.find(input) && !member.streaming &&
        !(part == S3Part::head && member.location == shapes::Location::body))
      return member.location == shapes::Location::body
                 ? Failure{400, "MissingRequestBodyError", "Request Body is empty"}
                 : invalid_request("Missing required member: " + std::string(member.wire_name));
  return {};
}

}  // namespace trainyard::api
