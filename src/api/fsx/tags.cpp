// Implements the operations on the tags of all FSx resources.
#include "fsx/common.hpp"
#include "operations/fsx_tags.hpp"

namespace trainyard::api::fsx {
namespace {

Failure no_resource(const std::string& arn) {
  if (!arn.starts_with("arn:aws:fsx:"))
    return fsx_failure(
        "NotServiceResourceError",
        "The resource specified does not belong to Amazon FSx: " + shorten(arn, 256));
  return fsx_failure("ResourceNotFound",
                     "The resource specified by the Amazon Resource Name (ARN) "
                     "can't be found: " +
                         shorten(arn, 256));
}

// Finds the tags of a resource of the request's region and account.
template <class AnySnapshot>
auto* find(AnySnapshot& snapshot, const Context& context, const std::string& arn) {
  const bool here = arn.starts_with(fsx_arn(context.region, context.principal.account, "")) &&
                    arn.find('*') == std::string::npos;
  return here ? fsx_tags(snapshot, context.principal.account, arn) : nullptr;
}

template <class Edit>
Outcome<Done> change_tags(const Services& services, const Context& context, const std::string& arn,
                          const Edit& edit) {
  auto* all = TRY(file_systems_of(services));
  std::optional<Failure> failure;
  TRY(all->change([&](Snapshot& next) -> Result<void> {
    failure.reset();
    file_systems::Tags* tags = find(next, context, arn);
    if (!tags) {
      failure = no_resource(arn);
      return {};
    }
    file_systems::Tags changed = *tags;
    auto edited = edit(changed);
    if (edited)
      *tags = std::move(changed);
    else
      failure = edited.failure(aws::kService);
    return {};
  }));
  if (failure) return *failure;
  return Done{};
}

Outcome<aws::ListTagsForResourceResponse> list(const Services& services, const Context& context,
                                               const aws::ListTagsForResourceRequest& in) {
  const auto* all = TRY(file_systems_of(services));
  const auto present = all->snapshot();
  const file_systems::Tags* tags = find(*present, context, *in.resource_arn);
  if (!tags) return no_resource(*in.resource_arn);
  aws::ListTagsForResourceResponse out;
  out.tags.emplace();
  std::string after;
  if (in.next_token) {
    const auto text = from_base64(*in.next_token);
    if (!text) return bad_request("The pagination token is not valid");
    after = *text;
  }
  for (auto at = after.empty() ? tags->begin() : tags->upper_bound(after); at != tags->end();
       ++at) {
    if (int64_t(out.tags->size()) == in.max_results.value_or(kResultsMax)) {
      out.next_token = to_base64(*out.tags->back().key);
      break;
    }
    out.tags->push_back({.key = at->first, .value = at->second});
  }
  return out;
}

}  // namespace

void add_tag_operations(OperationTable& table, const Services& services) {
  table.add<aws::TagResource>(
      [&](const Context& context,
          const aws::TagResourceRequest& in) -> Outcome<aws::TagResourceResponse> {
        TRY(change_tags(services, context, *in.resource_arn,
                        [&](file_systems::Tags& tags) { return add_tags(tags, *in.tags); }));
        return aws::TagResourceResponse{};
      });
  table.add<aws::UntagResource>(
      [&](const Context& context,
          const aws::UntagResourceRequest& in) -> Outcome<aws::UntagResourceResponse> {
        TRY(change_tags(services, context, *in.resource_arn,
                        [&](file_systems::Tags& tags) -> Outcome<Done> {
                          for (const std::string& key : *in.tag_keys) tags.erase(key);
                          return Done{};
                        }));
        return aws::UntagResourceResponse{};
      });
  table.add<aws::ListTagsForResource>(
      [&](const Context& context, const aws::ListTagsForResourceRequest& in) {
        return list(services, context, in);
      });
}

}  // namespace trainyard::api::fsx
