// Implements DescribeInstances, whose list is empty, since this server starts no machines. Tools
// call it in set-ups and waiters. The hosts of jobs are in DescribeTrainingJob and DescribeJobs.
#include "ec2/common.hpp"

namespace trainyard::api::ec2 {
namespace {

constexpr IdForm kInstanceId{"i-", "instance", "InvalidInstanceID.NotFound",
                             "InvalidInstanceID.Malformed", "instance ID"};
constexpr int64_t kResultsMin = 5, kResultsMax = 1'000;  // as AWS

// AWS's filters of this list. Of names with a dot, only the part before it is listed.
constexpr std::string_view kFilters[] = {
    "affinity",
    "architecture",
    "availability-zone",
    "availability-zone-id",
    "block-device-mapping",
    "boot-mode",
    "capacity-reservation-id",
    "capacity-reservation-specification",
    "client-token",
    "current-instance-boot-mode",
    "dns-name",
    "ebs-optimized",
    "ena-support",
    "enclave-options",
    "hibernation-options",
    "host-id",
    "hypervisor",
    "iam-instance-profile",
    "image-id",
    "instance",
    "instance-id",
    "instance-lifecycle",
    "instance-state-code",
    "instance-state-name",
    "instance-type",
    "ip-address",
    "ipv6-address",
    "kernel-id",
    "key-name",
    "launch-index",
    "launch-time",
    "maintenance-options",
    "metadata-options",
    "monitoring-state",
    "network-interface",
    "network-performance-options",
    "operator",
    "outpost-arn",
    "owner-id",
    "placement-group-name",
    "placement-partition-number",
    "platform",
    "platform-details",
    "private-dns-name",
    "private-dns-name-options",
    "private-ip-address",
    "product-code",
    "ramdisk-id",
    "reason",
    "requester-id",
    "reservation-id",
    "root-device-name",
    "root-device-type",
    "source-dest-check",
    "spot-instance-request-id",
    "state-reason-code",
    "state-reason-message",
    "subnet-id",
    "tenancy",
    "tpm-support",
    "usage-operation",
    "usage-operation-update-time",
    "virtualization-type",
    "vpc-id",
};

bool is_filter(std::string_view name) {
  return is_tag_filter(name) ||
         std::ranges::find(kFilters, name.substr(0, name.find('.'))) != std::end(kFilters);
}

Outcome<aws::DescribeInstancesResult> describe_instances(const Networks&, const Context&,
                                                         const aws::DescribeInstancesRequest& in) {
  const bool named = in.instance_ids && !in.instance_ids->empty();
  if (named && in.max_results)
    return ec2_failure("InvalidParameterCombination",
                       "The parameter instancesSet cannot be used with the parameter maxResults");
  if (in.max_results && (*in.max_results < kResultsMin || *in.max_results > kResultsMax))
    return invalid_parameter_value("Value ( " + std::to_string(*in.max_results) +
                                   " ) for parameter maxResults is invalid. Expecting a value "
                                   "between 5 and 1000.");
  TRY(check_filters(in.filters, is_filter));
  TRY(page_after(in.next_token));
  if (named) return invalid_id(kInstanceId, in.instance_ids->front());
  return aws::DescribeInstancesResult{.reservations = std::vector<aws::Reservation>()};
}

}  // namespace

void add_instances(OperationTable& table, const Store& store) {
  add_read<aws::DescribeInstances>(table, store, describe_instances);
}

}  // namespace trainyard::api::ec2
