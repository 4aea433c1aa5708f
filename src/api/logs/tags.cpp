// Implements the operations on tags of log groups, destinations, delivery sources, delivery
// destinations and deliveries.
#include <map>

#include "log_routing/deliveries.hpp"
#include "log_routing/router.hpp"
#include "logs/common.hpp"
#include "shapes/logs.hpp"

namespace trainyard::api::logs {
namespace {

namespace aws = shapes::logs;
using observe::DefinitionKind;

using Tags = std::map<std::string, std::string>;
using ChangeTags = std::function<Result<void>(Tags&)>;

// The resource with tags that an ARN names.
struct Tagged {
  std::optional<DefinitionKind> kind;  // unset = a log group
  std::string name;
};

constexpr std::pair<std::string_view, DefinitionKind> kKinds[] = {
    {"destination", DefinitionKind::destination},
    {"delivery-source", DefinitionKind::delivery_source},
    {"delivery-destination", DefinitionKind::delivery_destination},
    {"delivery", DefinitionKind::delivery}};

log_routing::Deliveries* deliveries_of(const Services& services) {
  return services.log_router ? services.log_router->deliveries() : nullptr;
}

Failure no_resource() { return resource_not_found("The specified resource does not exist."); }

Outcome<Tagged> tagged_by(const Context& context, const std::string& arn) {
  for (const auto& [text, kind] : kKinds)
    if (auto name = name_in_arn(context, text, arn)) return Tagged{kind, *std::move(name)};
  if (!name_in_arn(context, "log-group", arn)) return no_resource();
  // The ARN of a group may end with ":*".
  auto group = TRY(group_of(context, {}, arn));
  return Tagged{{}, std::move(group)};
}

Outcome<aws::Nothing> change_tags(const Services& services, const Context& context,
                                  const Tagged& tagged, const ChangeTags& change) {
  const auto& kind = tagged.kind;
  const auto& name = tagged.name;
  bool too_many = false;
  const auto limited = [&](Tags& tags) -> Result<void> {
    TRY(change(tags));
    too_many = tags.size() > kTagsMax;
    return too_many ? Result<void>(exhausted("a resource has at most 50 tags")) : ok();
  };
  const auto changed = [&]() -> Result<void> {
    if (!kind)
      return services.logs.change_group(
          context.region, name,
          [&](observe::LogGroupSettings& settings) { return limited(settings.tags); });
    if (*kind == DefinitionKind::destination && services.log_router)
      return services.log_router->destinations().change(
          context.region, name,
          [&](log_routing::LogDestination& each) { return limited(each.tags); });
    if (*kind != DefinitionKind::destination && deliveries_of(services))
      return deliveries_of(services)->catalogue().change_tags(context.region, *kind, name, limited);
    return not_found("unknown resource '" + name + "'");
  }();
  if (too_many)
    return Failure{400, "TooManyTagsException",
                   "A resource can have at most " + std::to_string(kTagsMax) + " tags."};
  if (kind && !changed && changed.error().kind == Kind::not_found) return no_resource();
  TRY_LOGS(changed);
  return aws::Nothing{};
}

Outcome<Tags> tags_of(const Services& services, const Context& context, const Tagged& tagged) {
  const auto& kind = tagged.kind;
  const auto& name = tagged.name;
  if (!kind) return TRY_LOGS(services.logs.group(context.region, name)).settings.tags;
  const auto found = [&]() -> Result<Tags> {
    if (*kind == DefinitionKind::destination && services.log_router)
      return TRY(services.log_router->destinations().find(context.region, name)).tags;
    if (*kind != DefinitionKind::destination && deliveries_of(services))
      return deliveries_of(services)->catalogue().tags(context.region, *kind, name);
    return not_found("unknown resource '" + name + "'");
  }();
  if (!found && found.error().kind == Kind::not_found) return no_resource();
  return TRY_LOGS(found);
}

ChangeTags adding(const Tags& added) {
  return [&added](Tags& tags) -> Result<void> {
    for (const auto& [key, value] : added) tags.insert_or_assign(key, value);
    return ok();
  };
}

ChangeTags removing(const std::vector<std::string>& keys) {
  return [&keys](Tags& tags) -> Result<void> {
    for (const std::string& key : keys) tags.erase(key);
    return ok();
  };
}

}  // namespace

void add_tags(OperationTable& table, const Services& services) {
  table.add<aws::TagLogGroup>(
      [services](const Context& context, const aws::TagLogGroupRequest& in) {
        return change_tags(services, context, {{}, *in.log_group_name}, adding(*in.tags));
      });
  table.add<aws::UntagLogGroup>(
      [services](const Context& context, const aws::UntagLogGroupRequest& in) {
        return change_tags(services, context, {{}, *in.log_group_name}, removing(*in.tags));
      });
  table.add<aws::ListTagsLogGroup>(
      [services](const Context& context,
                 const aws::ListTagsLogGroupRequest& in) -> Outcome<aws::ListTagsLogGroupResponse> {
        auto tags = TRY(tags_of(services, context, {{}, *in.log_group_name}));
        return aws::ListTagsLogGroupResponse{.tags = std::move(tags)};
      });
  table.add<aws::TagResource>(
      [services](const Context& context,
                 const aws::TagResourceRequest& in) -> Outcome<aws::Nothing> {
        const auto tagged = TRY(tagged_by(context, *in.resource_arn));
        return change_tags(services, context, tagged, adding(*in.tags));
      });
  table.add<aws::UntagResource>(
      [services](const Context& context,
                 const aws::UntagResourceRequest& in) -> Outcome<aws::Nothing> {
        const auto tagged = TRY(tagged_by(context, *in.resource_arn));
        return change_tags(services, context, tagged, removing(*in.tag_keys));
      });
  table.add<aws::ListTagsForResource>(
      [services](
          const Context& context,
          const aws::ListTagsForResourceRequest& in) -> Outcome<aws::ListTagsForResourceResponse> {
        const auto tagged = TRY(tagged_by(context, *in.resource_arn));
        auto tags = TRY(tags_of(services, context, tagged));
        return aws::ListTagsForResourceResponse{.tags = std::move(tags)};
      });
}

}  // namespace trainyard::api::logs
