// Reads arbitrary text as a form of the query protocol, for an operation that the first byte
// selects, and writes XML.
// decoder: src/api/protocol/query.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "protocol/query.hpp"
#include "protocol/xml.hpp"
#include "shapes/cloudwatch.hpp"
#include "shapes/ec2.hpp"
#include "shapes/sts.hpp"

using namespace trainyard;
using namespace trainyard::api;

namespace {

// Reads the parameters as an output of the operation, and writes it.
template <class Operation>
void read_and_write(const NameValues& parameters) {
  typename Operation::Output output;
  if (!read_query(*Operation::shape().output, parameters, &output)) return;
  CHECK(bool(parse_xml(write_query(Operation::shape(), &output, "id"))),
        "the response is valid XML");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto parameters = read_form({reinterpret_cast<const char*>(data + 1), size - 1});
  if (!parameters) return 0;
  switch (data[0] % 6) {
    case 0: {
      shapes::cloudwatch::PutMetricDataInput input;
      (void)read_query(*shapes::cloudwatch::PutMetricData::shape().input, *parameters, &input);
      (void)write_query(shapes::cloudwatch::PutMetricData::shape(), nullptr, "id");
      break;
    }
    case 1:
      read_and_write<shapes::cloudwatch::GetMetricStatistics>(*parameters);
      break;
    case 2:
      read_and_write<shapes::sts::GetCallerIdentity>(*parameters);
      break;
    case 3: {
      shapes::ec2::AuthorizeSecurityGroupIngressRequest input;
      (void)read_query(*shapes::ec2::AuthorizeSecurityGroupIngress::shape().input, *parameters,
                       &input);
      (void)write_query(shapes::ec2::DeleteVpc::shape(), nullptr, "id");
      break;
    }
    case 4:
      read_and_write<shapes::ec2::DescribeSecurityGroups>(*parameters);
      break;
    default:
      read_and_write<shapes::ec2::DescribeVpcs>(*parameters);
  }
  return 0;
}
