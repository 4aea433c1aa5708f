#include "console/api_call.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "auth/temporary_keys.hpp"
#include "protocol/route.hpp"
#include "shapes/services.hpp"
#include "signing/signing.hpp"

namespace trainyard::api::console {
namespace {

// The operations that pages may call: those that only read, those of the form for new jobs, and
// those that change the keys and attached policies of users. A page of another origin cannot call
// them (page_request.hpp).
constexpr std::pair<std::string_view, std::string_view> kPageOperations[] = {
    {"trainyard", "ListJobs"},
    {"trainyard", "DescribeJob"},
    {"trainyard", "ExplainJob"},
    {"trainyard", "DescribeJobTime"},
    {"trainyard", "GetJobTimeline"},
    {"sagemaker", "DescribeTrainingJob"},
    {"trainyard", "ListMachines"},
    {"trainyard", "DescribeRegion"},
    {"batch", "DescribeJobQueues"},
    {"batch", "DescribeComputeEnvironments"},
    {"batch", "DescribeServiceEnvironments"},
    {"batch", "DescribeSchedulingPolicies"},
    {"batch", "ListQuotaShares"},
    {"batch", "GetJobQueueSnapshot"},
    {"service-quotas", "ListServiceQuotas"},
    {"cloudwatch", "GetMetricStatistics"},
    {"logs", "GetLogEvents"},
    {"trainyard", "PreviewJob"},
    {"sagemaker", "CreateTrainingJob"},
    {"sagemaker", "ListTags"},
    {"trainyard", "ListJobTemplates"},
    {"trainyard", "PutJobTemplate"},
    {"trainyard", "DeleteJobTemplate"},
    {"trainyard", "ListCampaigns"},
    {"trainyard", "DescribeCampaign"},
    {"cloudwatch", "DescribeAlarms"},
    {"cloudwatch", "DescribeAlarmHistory"},
    {"cloudwatch", "GetMetricData"},
    {"cloudwatch", "ListDashboards"},
    {"cloudwatch", "GetDashboard"},
    {"iam", "ListUsers"},
    {"iam", "GetUser"},
    {"iam", "ListAccessKeys"},
    {"iam", "GetAccessKeyLastUsed"},
    {"iam", "ListGroupsForUser"},
    {"iam", "ListUserPolicies"},
    {"iam", "GetUserPolicy"},
    {"iam", "ListAttachedUserPolicies"},
    {"iam", "ListGroupPolicies"},
    {"iam", "GetGroupPolicy"},
    {"iam", "ListAttachedGroupPolicies"},
    {"iam", "ListPolicies"},
    {"iam", "GetPolicy"},
    {"iam", "GetPolicyVersion"},
    {"iam", "ListRoles"},
    {"iam", "SimulatePrincipalPolicy"},
    {"iam", "CreateAccessKey"},
    {"iam", "UpdateAccessKey"},
    {"iam", "DeleteAccessKey"},
    {"iam", "AttachUserPolicy"},
    {"iam", "DetachUserPolicy"},
};
constexpr Duration kKeysLifetime = 1min;  // the request is made at once
constexpr size_t kRegionBytesMax = 64;

}  // namespace

const shapes::OperationShape* find_page_operation(std::string_view service,
                                                  std::string_view operation) {
  if (std::ranges::find(kPageOperations, std::pair(service, operation)) ==
      std::end(kPageOperations))
    return nullptr;
  for (const shapes::Service* each : all_services())
    if (each->name == service) return find_operation(*each, operation);
  return nullptr;
}

bool is_region(std::string_view text) {
  return !text.empty() && text.size() <= kRegionBytesMax && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

Delegation delegation_for(const SignedIn& who, const net::RequestHead& from) {
  Delegation out = who.delegation;
  out.source_ip = from.peer_address();
  out.secure = from.tls;
  return out;
}

Result<net::Request> sign_call(PageCall call, const SignedIn& who, const net::RequestHead& from,
                               const std::string& sealing_secret, Instant now, Random& random) {
  if (!is_region(call.region)) return invalid("invalid region: " + call.region);
  const shapes::Service& service = *call.operation.service;
  const TemporaryKeys keys =
      issue_delegated_keys(sealing_secret, TRY(format_delegation(delegation_for(who, from))), now,
                           kKeysLifetime, random);
  const bool by_path = uses_rest_json(service);
  net::Request out;
  out.method = by_path ? std::string(call.operation.method) : "POST";
  out.target = by_path ? std::string(call.operation.uri) : "/";
  signing::HeaderList headers{{"Host", "console"}};
  if (by_path) {
    headers.emplace_back("Content-Type", "application/json");
  } else {
    const std::string_view version = service.json_version.empty() ? "1.1" : service.json_version;
    headers.emplace_back("Content-Type", "application/x-amz-json-" + std::string(version));
    headers.emplace_back("X-Amz-Target", std::string(target_prefix_of(service)) + "." +
                                             std::string(call.operation.name));
  }
  for (auto& field : signing::sign(out.method, out.target, headers, signing::sha256_hex(call.body),
                                   {keys.access_key_id, keys.secret_access_key, keys.session_token},
                                   {call.region, std::string(service.scope)}, now))
    headers.push_back(std::move(field));
  for (auto& [name, value] : headers) out.headers.add(std::move(name), std::move(value));
  out.headers.add("User-Agent", std::string(from.headers.get("user-agent")));
  out.peer = from.peer;
  out.tls = from.tls;
  out.content_length = call.body.size();
  out.body = std::move(call.body);
  return out;
}

}  // namespace trainyard::api::console
