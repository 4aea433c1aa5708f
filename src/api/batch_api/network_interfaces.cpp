#include "batch_api/network_interfaces.hpp"

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "reconcile/state.hpp"

namespace trainyard::api::batch_api {
namespace {

// The groups of digits in the id of an attachment: a UUID, as on AWS.
constexpr size_t kAttachmentGroups[] = {8, 4, 4, 4, 12};

std::string attachment_id(std::string_view task_arn) {
  const std::string digits = to_hex(bytes_of(sha256(task_arn)));
  std::string id;
  size_t at = 0;
  for (const size_t count : kAttachmentGroups) {
    id += (id.empty() ? "" : "-") + digits.substr(at, count);
    at += count;
  }
  return id;
}

}  // namespace

std::vector<shapes::batch::NetworkInterface> network_interfaces_of(const domain::Job& job,
                                                                   const domain::Attempt& attempt,
                                                                   domain::HostIndex host) {
  if (host >= attempt.hosts.size() || attempt.hosts[host].address.empty()) return {};
  const std::string& address = attempt.hosts[host].address;
  shapes::batch::NetworkInterface interface;
  interface.attachment_id = attachment_id(reconcile::task_arn(job, attempt, host));
  if (address.find(':') == std::string::npos)
    interface.private_ipv4_address = address;
  else
    interface.ipv6_address = address;
  return {interface};
}

}  // namespace trainyard::api::batch_api
