// Reads arbitrary text as a form of the query protocol, for an operation that the first byte
// selects, and writes XML.
// decoder: src/api/protocol/query.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "protocol/query.hpp"
#include "protocol/xml.hpp"
#include "shapes/cloudwatch.hpp"
#include "shapes/sts.hpp"

using namespace trainyard;
using namespace trainyard::api;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto parameters = read_form({reinterpret_cast<const char*>(data + 1), size - 1});
  if (!parameters) return 0;
  if (data[0] % 3 == 0) {
    shapes::cloudwatch::PutMetricDataInput input;
    (void)read_query(*shapes::cloudwatch::PutMetricData::shape().input, *parameters, &input);
    (void)write_query(shapes::cloudwatch::PutMetricData::shape(), nullptr, "id");
  } else if (data[0] % 3 == 1) {
    shapes::cloudwatch::GetMetricStatisticsOutput output;
    if (!read_query(*shapes::cloudwatch::GetMetricStatistics::shape().output, *parameters, &output))
      return 0;
    const std::string text =
        write_query(shapes::cloudwatch::GetMetricStatistics::shape(), &output, "id");
    CHECK(bool(parse_xml(text)), "what is written is XML");
  } else {
    shapes::sts::GetCallerIdentityResponse output;
    if (!read_query(*shapes::sts::GetCallerIdentity::shape().output, *parameters, &output))
      return 0;
    CHECK(bool(parse_xml(write_query(shapes::sts::GetCallerIdentity::shape(), &output, "id"))),
          "what is written is XML");
  }
  return 0;
}
