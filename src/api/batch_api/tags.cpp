// Implements the operations on the tags of all Batch resources.
#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch_api/requests.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;
using domain::JobKey;

// Checks that the resource exists in this account and region. Errors: ClientException.
Outcome<Done> check_resource(const Services& services, const Context& context,
                             const std::string& arn) {
  const auto is = [&](std::string_view kind) { return catalog::name_in_arn(arn, kind) != arn; };
  const auto named_as = [&](std::string_view kind) {
    return JobKey{context.region, std::string(catalog::name_in_arn(arn, kind))};
  };
  const auto parts = split(arn, ':');
  bool there = parts.size() > 5 && parts[2] == "batch" && parts[3] == context.region &&
               parts[4] == context.principal.account;
  if (there && is(catalog::kEnvironmentArn)) {
    there = services.control.batch_catalog()->environment(named_as(catalog::kEnvironmentArn)) !=
            nullptr;
  } else if (there && is(catalog::kQueueArn)) {
    there = services.control.batch_catalog()->queue(named_as(catalog::kQueueArn)) != nullptr;
  } else if (there && is(catalog::kPolicyArn)) {
    there = services.control.batch_catalog()->policies.contains(named_as(catalog::kPolicyArn));
  } else if (there && is(catalog::kServiceEnvironmentArn)) {
    there = services.control.batch_catalog()->service_environment(
        named_as(catalog::kServiceEnvironmentArn));
  } else if (there && is(catalog::kQuotaShareArn)) {
    there = services.control.batch_catalog()->quota_share(named_as(catalog::kQuotaShareArn));
  } else if (there && is(catalog::kResourceArn)) {
    there = services.control.batch_catalog()->resource(named_as(catalog::kResourceArn));
  } else if (there && is(catalog::kDefinitionArn)) {
    const DefinitionName which = definition_name_in(arn);
    ledger::DefinitionQuery query;
    query.region = context.region;
    query.name = which.name;
    query.revision = which.revision.value_or(0);
    there = !TRY(services.control.definitions(query)).empty();
  } else if (there && is(catalog::kServiceJobArn)) {
    const auto job = services.control.find(named_as(catalog::kServiceJobArn));
    there = job && (*job)->spec.queue && (*job)->spec.contract == domain::Contract::training;
  } else if (there && is(catalog::kJobArn)) {
    const auto job = services.control.find(named_as(catalog::kJobArn));
    there = job && (*job)->spec.contract == domain::Contract::plain;
  } else {
    there = false;
  }
  if (there) return Done{};
  return client_exception("Resource not found: " + shorten(arn, 256));
}

// The ARN under which the tags are stored: for a service job, that of its training job.
std::string tagged_arn(const Context& context, const std::string& arn) {
  const auto name = catalog::name_in_arn(arn, catalog::kServiceJobArn);
  if (name == arn) return arn;
  return control::job_arn(context.principal.account, {context.region, std::string(name)});
}

template <class Output>
void set_tags(const Services& services, const Context& context, const std::string& arn,
              std::vector<domain::Tag> add, std::vector<std::string> remove_keys,
              Answer<Output> answer) {
  auto there = check_resource(services, context, arn);
  if (!there) return answer(std::move(there).error());
  services.control.set_tags(tagged_arn(context, arn), std::move(add), std::move(remove_keys),
                            [answer = std::move(answer)](Result<std::vector<domain::Tag>> set) {
                              if (set) return answer(Output{});
                              answer(std::move(set).error());
                            });
}

void untag(const Services& services, const Context& context,
           const batch::UntagResourceRequest& request,
           Answer<batch::UntagResourceResponse> answer) {
  for (const auto& key : *request.tag_keys)
    if (to_lower(key).starts_with("aws:"))
      return answer(client_exception("Tag keys that begin with aws: are reserved: " + key));
  set_tags<batch::UntagResourceResponse>(services, context, *request.resource_arn, {},
                                         *request.tag_keys, std::move(answer));
}

}  // namespace

void add_tags(OperationTable& table, const Settings&, const Services& services) {
  table.add_later<batch::TagResource>(
      [&](const Context& context, batch::TagResourceRequest request, auto answer) {
        auto tags = batch_tags_in(request.tags);
        if (!tags) return answer(std::move(tags).error());
        set_tags<batch::TagResourceResponse>(services, context, *request.resource_arn,
                                             *std::move(tags), {}, std::move(answer));
      });
  table.add_later<batch::UntagResource>(
      [&](const Context& context, const batch::UntagResourceRequest& request, auto answer) {
        untag(services, context, request, std::move(answer));
      });
  table.add<batch::ListTagsForResource>(
      [&](const Context& context, const batch::ListTagsForResourceRequest& request)
          -> Outcome<batch::ListTagsForResourceResponse> {
        TRY(check_resource(services, context, *request.resource_arn));
        batch::ListTagsForResourceResponse out;
        out.tags =
            batch_tags_out(TRY(services.control.tags(tagged_arn(context, *request.resource_arn))));
        return out;
      });
}

}  // namespace trainyard::api::batch_api
