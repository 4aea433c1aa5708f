#include "log_routing/destinations.hpp"

namespace trainyard::log_routing {
namespace {

constexpr auto kKind = observe::DefinitionKind::destination;

}  // namespace

Result<void> LogDestinations::store(const std::string& region, const std::string& name,
                                    const LogDestination& destination) {
  return definitions_.put(region, kKind, {"", name, destination.text(), destination.created},
                          kDestinationsMax);
}

Result<LogDestination> LogDestinations::put(const std::string& region, const std::string& name,
                                            LogDestination destination) {
  if (targets_.is_destination(name))
    return invalid("The configuration of this server defines the destination " + name + ".");
  const std::string& arn = destination.target_arn;
  // The target of a destination must not be another destination, nor a webhook's in another region.
  const auto target = targets_.find(arn);
  if (!target || targets_.is_destination(target->webhook))
    return invalid(
        "Could not deliver test message to specified destination. Check if the destination is "
        "valid. (The target must be a log group of this server, or a stream in stands_for of a "
        "webhook of its configuration.)");
  const MutexLock lock(changing_);
  const auto before = find(region, name);
  if (!before && before.error().kind != Kind::not_found) return before.error();
  if (before) {
    destination.access_policy = before->access_policy;
    destination.created = before->created;
    if (destination.tags.empty()) destination.tags = before->tags;
  }
  TRY(store(region, name, destination));
  return destination;
}

Result<LogDestination> LogDestinations::find(const std::string& region, const std::string& name) {
  const auto found = TRY(definitions_.find(region, kKind, "", name));
  if (!found) return not_found("The specified destination does not exist.");
  return LogDestination::from(found->body);
}

Result<std::vector<std::pair<std::string, LogDestination>>> LogDestinations::list(
    const std::string& region) {
  std::vector<std::pair<std::string, LogDestination>> out;
  for (const auto& each : TRY(definitions_.list(region, kKind, "")))
    out.emplace_back(each.name, TRY(LogDestination::from(each.body)));
  return out;
}

Result<void> LogDestinations::remove(const std::string& region, const std::string& name) {
  const MutexLock lock(changing_);
  TRY(find(region, name));
  return definitions_.remove(region, kKind, "", name);
}

Result<void> LogDestinations::change(const std::string& region, const std::string& name,
                                     const Change& change) {
  const MutexLock lock(changing_);
  auto destination = TRY(find(region, name));
  TRY(change(destination));
  return store(region, name, destination);
}

}  // namespace trainyard::log_routing
