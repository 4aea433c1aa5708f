#include "logs/common.hpp"

#include "base/text.hpp"

namespace trainyard::api::logs {

std::variant<Failure, Error> translated(Error error) {
  if (error.kind == Kind::not_found)
    return resource_not_found(error.is(observe::LogResource::group)
                                  ? kNoGroup
                                  : "The specified log stream does not exist.");
  if (error.kind == Kind::conflict)
    return resource_already_exists(error.is(observe::LogResource::group)
                                       ? "The specified log group already exists"
                                       : "The specified log stream already exists");
  if (error.kind == Kind::invalid) return invalid_parameter(std::move(error.message));
  return error;
}

Failure limit_exceeded(std::string message) {
  return {400, "LimitExceededException", std::move(message)};
}

std::string group_arn(const Context& context, const std::string& group) {
  return "arn:aws:logs:" + context.region + ":" + context.principal.account + ":log-group:" + group;
}

std::string arn_of(const Context& context, std::string_view kind, const std::string& name) {
  return "arn:aws:logs:" + context.region + ":" + context.principal.account + ":" +
         std::string(kind) + ":" + name;
}

std::optional<std::string> name_in_arn(const Context& context, std::string_view kind,
                                       const std::string& arn) {
  const std::string start = arn_of(context, kind, "");
  if (!arn.starts_with(start)) return {};
  return arn.substr(start.size());
}

std::variant<Failure, Error> delivery_failure(Error error) {
  if (error.detail.as<observe::LogResource>()) return translated(std::move(error));
  if (error.kind == Kind::invalid) return validation_exception(std::move(error.message));
  if (error.kind == Kind::not_found) return resource_not_found(std::move(error.message));
  if (error.kind == Kind::conflict)
    return Failure{400, "ConflictException", std::move(error.message)};
  if (error.kind == Kind::exhausted)
    return Failure{400, "ServiceQuotaExceededException", std::move(error.message)};
  return error;
}

Outcome<std::string> group_of(const Context& context, const std::optional<std::string>& name,
                              const std::optional<std::string>& identifier) {
  if (name && identifier)
    return invalid_parameter("LogGroupName and LogGroupIdentifier cannot both be specified.");
  if (name) return *name;
  if (!identifier)
    return invalid_parameter("Either logGroupName or logGroupIdentifier must be specified.");
  if (!identifier->starts_with("arn:")) return *identifier;
  const std::string prefix = group_arn(context, "");
  if (!identifier->starts_with(prefix)) return resource_not_found(kNoGroup);
  std::string group = identifier->substr(prefix.size());
  if (group.ends_with(":*")) group.resize(group.size() - 2);
  return group;
}

std::string list_token(const ListPosition& place) {
  return to_base64(std::to_string(place.at) + " " + place.name);
}

Outcome<ListPosition> list_position(const std::string& token) {
  const auto text = from_base64(token);
  const size_t blank = text ? text->find(' ') : std::string::npos;
  if (blank == std::string::npos) return invalid_parameter(kBadToken);
  const auto at = parse_int(std::string_view(*text).substr(0, blank));
  if (!at) return invalid_parameter(kBadToken);
  return ListPosition{*at, text->substr(blank + 1)};
}

}  // namespace trainyard::api::logs
