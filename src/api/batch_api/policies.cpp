// Implements the operations on scheduling policies, and on the quota shares of queues.
#include <algorithm>

#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch_api/requests.hpp"
#include "domain/instance_type.hpp"
#include "domain/limits.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;
using domain::JobKey;
using trainyard::batch::QuotaShare;
using trainyard::batch::ResourceChange;
using trainyard::batch::SchedulingPolicy;

// -- scheduling policies

Outcome<Done> read_weights(const batch::FairsharePolicy& fair, SchedulingPolicy& policy) {
  for (const auto& each : fair.share_distribution.value_or(std::vector<batch::ShareAttributes>())) {
    const std::string& pattern = *each.share_identifier;
    TRY(check_share_identifier(pattern, "shareDistribution.shareIdentifier", true));
    const double weight = each.weight_factor.value_or(1);
    if (!(weight >= catalog::kWeightMin && weight <= catalog::kWeightMax))
      return client_exception("shareDistribution.weightFactor must be between 0.0001 and 999.9999");
    policy.weights.push_back({pattern, weight});
  }
  if (policy.weights.size() > catalog::kWeightsMax)
    return client_exception("shareDistribution has at most " +
                            std::to_string(catalog::kWeightsMax) + " share identifiers");
  if (const auto checked = catalog::check_weights(policy.weights); !checked)
    return client_exception(checked.error().message);
  return Done{};
}

// Makes the policy of a create or update request. Without both members it is fair share with equal
// weights.
Outcome<SchedulingPolicy> policy_of(const JobKey& key,
                                    const std::optional<batch::FairsharePolicy>& fair,
                                    const std::optional<batch::QuotaSharePolicy>& quotas) {
  SchedulingPolicy policy;
  policy.key = key;
  if (fair && quotas)
    return client_exception("fairsharePolicy and quotaSharePolicy cannot be given together");
  if (quotas) {
    policy.kind = SchedulingPolicy::Kind::quota_shares;
    return policy;
  }
  if (!fair) return policy;
  policy.decay_seconds = fair->share_decay_seconds.value_or(0);
  policy.reservation_percent = fair->compute_reservation.value_or(0);
  if (policy.decay_seconds < 0 || policy.decay_seconds > catalog::kDecaySecondsMax)
    return client_exception("fairsharePolicy.shareDecaySeconds must be between 0 and " +
                            std::to_string(catalog::kDecaySecondsMax));
  if (policy.reservation_percent < 0 ||
      policy.reservation_percent > catalog::kReservationPercentMax)
    return client_exception("fairsharePolicy.computeReservation must be between 0 and " +
                            std::to_string(catalog::kReservationPercentMax));
  TRY(read_weights(*fair, policy));
  return policy;
}

void create_policy(const Services& services, const Context& context,
                   const batch::CreateSchedulingPolicyRequest& request,
                   const Answer<batch::CreateSchedulingPolicyResponse>& answer) {
  const auto made = [&]() -> Outcome<SchedulingPolicy> {
    TRY(check_batch_name(*request.name, "name"));
    auto policy = TRY(policy_of({context.region, *request.name}, request.fairshare_policy,
                                request.quota_share_policy));
    policy.request = TRY(json_of<batch::CreateSchedulingPolicy>(request));
    policy.request.erase("tags");
    return policy;
  };
  batch::CreateSchedulingPolicyResponse out;
  out.name = request.name;
  change_named_resource(services, context, ResourceChange::create, catalog::kPolicyArn, made(),
                        request.tags, std::move(out), &batch::CreateSchedulingPolicyResponse::arn,
                        answer);
}

void update_policy(const Services& services, const Context& context,
                   const batch::UpdateSchedulingPolicyRequest& request,
                   Answer<batch::UpdateSchedulingPolicyResponse> answer) {
  const JobKey key = batch_resource_key(context, *request.arn, catalog::kPolicyArn);
  const auto stored = services.control.batch_catalog();
  const auto present = stored->policies.find(key);
  if (present == stored->policies.end())
    return answer(no_such_resource("scheduling policy", key.name));
  // Absent members are left unchanged.
  if (!request.fairshare_policy && !request.quota_share_policy)
    return answer(batch::UpdateSchedulingPolicyResponse{});
  const auto made = [&]() -> Outcome<SchedulingPolicy> {
    auto policy = TRY(policy_of(key, request.fairshare_policy, request.quota_share_policy));
    policy.request = TRY(json_of<batch::UpdateSchedulingPolicy>(request));
    policy.request.erase("arn");
    policy.request["name"] = key.name;
    return policy;
  };
  auto policy = made();
  if (!policy) return answer(std::move(policy).error());
  change_batch_resource<batch::UpdateSchedulingPolicyResponse>(
      services, ResourceChange::update, *std::move(policy), "", {},
      [](const auto&) { return batch::UpdateSchedulingPolicyResponse{}; }, std::move(answer));
}

Outcome<batch::DescribeSchedulingPoliciesResponse> describe_policies(
    const Services& services, const Context& context,
    const batch::DescribeSchedulingPoliciesRequest& request) {
  if (request.arns->size() > size_t(kPageMaxBatch))
    return client_exception("arns names at most " + std::to_string(kPageMaxBatch));
  batch::DescribeSchedulingPoliciesResponse out;
  out.scheduling_policies.emplace();
  const auto stored = services.control.batch_catalog();
  const auto& shape = element_of(batch::DescribeSchedulingPolicies::shape(), "schedulingPolicies");
  for (const auto& arn : *request.arns) {
    const auto found = stored->policies.find(batch_resource_key(context, arn, catalog::kPolicyArn));
    if (found == stored->policies.end()) continue;
    batch::SchedulingPolicyDetail detail;
    TRY(read_json_into(shape, found->second.request, &detail));
    detail.name = found->first.name;
    detail.arn = batch_resource_arn(context, catalog::kPolicyArn, found->first.name);
    detail.tags = batch_tags_out(TRY(services.control.tags(*detail.arn)));
    out.scheduling_policies->push_back(std::move(detail));
  }
  return out;
}

Outcome<batch::ListSchedulingPoliciesResponse> list_policies(
    const Services& services, const Context& context,
    const batch::ListSchedulingPoliciesRequest& request) {
  batch::ListSchedulingPoliciesResponse out;
  const auto results_max = TRY(results_max_of(request.max_results));
  const auto stored = services.control.batch_catalog();
  out.scheduling_policies = TRY((page_of<batch::SchedulingPolicyListingDetail, SchedulingPolicy>(
      context, stored->policies, [](const SchedulingPolicy&) { return true; }, results_max,
      request.next_token.value_or(""), out.next_token,
      [&](const SchedulingPolicy& policy) -> Outcome<batch::SchedulingPolicyListingDetail> {
        batch::SchedulingPolicyListingDetail detail;
        detail.arn = batch_resource_arn(context, catalog::kPolicyArn, policy.key.name);
        return detail;
      })));
  return out;
}

// -- quota shares

// Requires: `share.request` is complete.
Outcome<QuotaShare> checked(QuotaShare share) {
  const Json& request = share.request;
  share.enabled = request.value("state", "ENABLED") == "ENABLED";
  share.limits = TRY(capacity_limits_of(request.value("capacityLimits", Json::array())));
  const Json sharing = request.value("resourceSharingConfiguration", Json::object());
  const auto strategy = catalog::parse_strategy(sharing.value("strategy", ""));
  if (!strategy) return client_exception(strategy.error().message);
  share.strategy = *strategy;
  share.borrow_percent.reset();
  if (const auto limit = sharing.find("borrowLimit"); limit != sharing.end()) {
    if (share.strategy != QuotaShare::Strategy::lend_and_borrow)
      return client_exception("borrowLimit is for the strategy LEND_AND_BORROW only");
    const auto percent = limit->get<int64_t>();
    if (percent < -1 || percent > domain::kCountedMax)
      return client_exception("borrowLimit must be -1 (no limit) or a percentage of at most " +
                              std::to_string(domain::kCountedMax));
    if (percent >= 0) share.borrow_percent = percent;
  }
  share.preempts_within =
      request.value("preemptionConfiguration", Json::object()).value("inSharePreemption", "") ==
      "ENABLED";
  return share;
}

void create_share(const Services& services, const Context& context,
                  const batch::CreateQuotaShareRequest& request,
                  const Answer<batch::CreateQuotaShareResponse>& answer) {
  const std::string queue(catalog::name_in_arn(*request.job_queue, catalog::kQueueArn));
  const auto made = [&]() -> Outcome<QuotaShare> {
    TRY(check_batch_name(*request.quota_share_name, "quotaShareName"));
    QuotaShare share;
    share.key = {context.region, catalog::quota_share_name(queue, *request.quota_share_name)};
    share.request = TRY(json_of<batch::CreateQuotaShare>(request));
    for (const char* member : {"tags", "jobQueue"}) share.request.erase(member);
    return checked(std::move(share));
  };
  batch::CreateQuotaShareResponse out;
  out.quota_share_name = request.quota_share_name;
  change_named_resource(services, context, ResourceChange::create, catalog::kQuotaShareArn, made(),
                        request.tags, std::move(out),
                        &batch::CreateQuotaShareResponse::quota_share_arn, answer);
}

void update_share(const Services& services, const Context& context,
                  const batch::UpdateQuotaShareRequest& request,
                  const Answer<batch::UpdateQuotaShareResponse>& answer) {
  const JobKey key = batch_resource_key(context, *request.quota_share_arn, catalog::kQuotaShareArn);
  const auto stored = services.control.batch_catalog();
  const QuotaShare* present = stored->quota_share(key);
  if (!present) return answer(no_such_resource("quota share", key.name));
  const auto made = [&]() -> Outcome<QuotaShare> {
    QuotaShare share = *present;
    Json changes = TRY(json_of<batch::UpdateQuotaShare>(request));
    changes.erase("quotaShareArn");
    // Whole members are replaced, so that an old borrowLimit does not remain with a new strategy.
    for (auto& [member, value] : changes.items()) share.request[member] = value;
    return checked(std::move(share));
  };
  batch::UpdateQuotaShareResponse out;
  out.quota_share_name = present->name();
  change_named_resource(services, context, ResourceChange::update, catalog::kQuotaShareArn, made(),
                        {}, std::move(out), &batch::UpdateQuotaShareResponse::quota_share_arn,
                        answer);
}

// Sets the members that descriptions and lists share.
template <class Detail>
Result<void> show(const Context& context, const QuotaShare& share, const shapes::Shape& shape,
                  Detail& detail) {
  TRY(read_json_into(shape, share.request, &detail));
  detail.quota_share_name = share.name();
  detail.quota_share_arn = batch_resource_arn(context, catalog::kQuotaShareArn, share.key.name);
  detail.job_queue_arn = batch_resource_arn(context, catalog::kQueueArn, share.queue());
  detail.state = share.enabled ? "ENABLED" : "DISABLED";
  detail.status = "VALID";
  return ok();
}

Outcome<batch::DescribeQuotaShareResponse> describe_share(
    const Services& services, const Context& context,
    const batch::DescribeQuotaShareRequest& request) {
  const JobKey key = batch_resource_key(context, *request.quota_share_arn, catalog::kQuotaShareArn);
  const auto stored = services.control.batch_catalog();
  const QuotaShare* share = stored->quota_share(key);
  if (!share) return no_such_resource("quota share", key.name);
  batch::DescribeQuotaShareResponse out;
  TRY(show(context, *share, *batch::DescribeQuotaShare::shape().output, out));
  out.tags = batch_tags_out(TRY(services.control.tags(*out.quota_share_arn)));
  return out;
}

Outcome<batch::ListQuotaSharesResponse> list_shares(const Services& services,
                                                    const Context& context,
                                                    const batch::ListQuotaSharesRequest& request) {
  const JobKey queue = batch_resource_key(context, *request.job_queue, catalog::kQueueArn);
  const auto stored = services.control.batch_catalog();
  if (!stored->queue(queue)) return no_such_resource("job queue", queue.name);
  batch::ListQuotaSharesResponse out;
  const auto results_max = TRY(results_max_of(request.max_results));
  const auto& shape = element_of(batch::ListQuotaShares::shape(), "quotaShares");
  out.quota_shares = TRY((page_of<batch::QuotaShareDetail, QuotaShare>(
      context, stored->quota_shares,
      [&](const QuotaShare& share) { return share.queue() == queue.name; }, results_max,
      request.next_token.value_or(""), out.next_token,
      [&](const QuotaShare& share) -> Outcome<batch::QuotaShareDetail> {
        batch::QuotaShareDetail detail;
        TRY(show(context, share, shape, detail));
        return detail;
      })));
  return out;
}

}  // namespace

void add_policies(OperationTable& table, const Settings&, const Services& services) {
  table.add_later<batch::CreateSchedulingPolicy>(
      [&](const Context& context, batch::CreateSchedulingPolicyRequest request, auto answer) {
        create_policy(services, context, request, answer);
      });
  table.add_later<batch::UpdateSchedulingPolicy>(
      [&](const Context& context, batch::UpdateSchedulingPolicyRequest request, auto answer) {
        update_policy(services, context, request, std::move(answer));
      });
  table.add_later<batch::DeleteSchedulingPolicy>(
      [&](const Context& context, batch::DeleteSchedulingPolicyRequest request, auto answer) {
        const JobKey key = batch_resource_key(context, *request.arn, catalog::kPolicyArn);
        remove_batch_resource<SchedulingPolicy>(
            services, key, services.control.batch_catalog()->policies.contains(key), answer);
      });
  table.add<batch::DescribeSchedulingPolicies>(
      [&](const Context& context, const batch::DescribeSchedulingPoliciesRequest& request) {
        return describe_policies(services, context, request);
      });
  table.add<batch::ListSchedulingPolicies>(
      [&](const Context& context, const batch::ListSchedulingPoliciesRequest& request) {
        return list_policies(services, context, request);
      });
  table.add_later<batch::CreateQuotaShare>(
      [&](const Context& context, batch::CreateQuotaShareRequest request, auto answer) {
        create_share(services, context, request, answer);
      });
  table.add_later<batch::UpdateQuotaShare>(
      [&](const Context& context, batch::UpdateQuotaShareRequest request, auto answer) {
        update_share(services, context, request, answer);
      });
  table.add_later<batch::DeleteQuotaShare>(
      [&](const Context& context, batch::DeleteQuotaShareRequest request, auto answer) {
        const JobKey key =
            batch_resource_key(context, *request.quota_share_arn, catalog::kQuotaShareArn);
        remove_batch_resource<QuotaShare>(
            services, key, services.control.batch_catalog()->quota_share(key), answer);
      });
  table.add<batch::DescribeQuotaShare>(
      [&](const Context& context, const batch::DescribeQuotaShareRequest& request) {
        return describe_share(services, context, request);
      });
  table.add<batch::ListQuotaShares>(
      [&](const Context& context, const batch::ListQuotaSharesRequest& request) {
        return list_shares(services, context, request);
      });
}

}  // namespace trainyard::api::batch_api
