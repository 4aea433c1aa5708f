// Reads and writes the query protocol: requests are parameters of a form
// ("MetricData.member.1.Value=5"), responses are XML. EC2 has a variant: all lists are flattened
// ("Filter.1.Value.2=a"), and the response has no element around the output.
//
// Threads: pure functions. Errors: invalid, with a text for the client.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "protocol/rest_xml.hpp"
#include "shapes/shape.hpp"

namespace trainyard::api {

// Reads the parameters of a form body or a query string, decoded ('+' is a space), in order.
Result<NameValues> read_form(std::string_view form);

// Fills `structure` from parameters. Parameters that the shape does not have are ignored.
Result<void> read_query(const shapes::Shape& shape, const NameValues& parameters, void* structure);

// <OperationResponse>
//   <OperationResult>..</OperationResult><ResponseMetadata>..</ResponseMetadata>
// </OperationResponse>
// EC2: <OperationResponse><requestId>..</requestId>..</OperationResponse>
std::string write_query(const shapes::OperationShape& operation, const void* output,
                        std::string_view request_id);

}  // namespace trainyard::api
