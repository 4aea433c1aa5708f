#include "config/principals.hpp"

#include "os/files.hpp"
#include "policy/policy.hpp"

namespace trainyard::config {
namespace {

constexpr double kRatePerSecondMax = 1e6;  // requests: far above the server's capacity
constexpr double kBurstSecondsMax = 3600;  // a larger burst would not limit anything

// Reads [posix_users]: NAME = "UID:GID".
Result<void> read_posix_users(const std::map<std::string, std::string>& texts,
                              domain::PosixUsers& users) {
  for (const auto& [name, text] : texts) {
    if (name != "*" && !is_user(name))
      return invalid("posix_users." + format_text(name) +
                     " must be named as a user, or \"*\" for all others");
    users[name] = TRY(domain::parse_posix_user(text).in("posix_users." + format_text(name)));
  }
  return {};
}

// Reads the limits for each principal: a user or a role.
Result<void> read_rate_limits(Table table, policy::RateLimits& limits) {
  const Range<double> range{0, kRatePerSecondMax, "no limit"};
  TRY(table.read("reads_per_second", limits.reads_per_second, range));
  TRY(table.read("changes_per_second", limits.changes_per_second, range));
  TRY(table.read("objects_per_second", limits.objects_per_second, range));
  TRY(table.read("burst_seconds", limits.burst_seconds));
  TRY(table.nothing_else());
  if (!(limits.burst_seconds > 0 && limits.burst_seconds <= kBurstSecondsMax))
    return table.refused("burst_seconds",
                         "greater than 0, and at most " + format_number(kBurstSecondsMax));
  return {};
}

// Reads a policy document: the text in `key`, or the file in KEY_file, next to the config. Returns
// "" if neither is given.
Result<std::string> read_document(Table& table, const std::string& key,
                                  const std::string& directory) {
  const std::string file_key = key + "_file";
  std::string text, file;
  TRY(table.read(key.c_str(), text));
  TRY(table.read(file_key.c_str(), file));
  if (!text.empty() && !file.empty())
    return invalid(table.name(key) + " and " + file_key + " exclude each other: give one of them");
  if (file.empty()) return text;
  if (!file.starts_with('/')) file.insert(0, directory);
  return os::read_file(file, policy::kDocumentBytesMax).in("reading " + table.name(file_key));
}

// Reads the keys that users, groups and roles share.
Result<policy::SeedEntity> read_entity(Table& table, const std::string& directory) {
  policy::SeedEntity entity;
  TRY(table.read("name", entity.name));
  TRY(table.read("policies", entity.policies));
  std::string document = TRY(read_document(table, "policy", directory));
  if (!document.empty()) entity.inline_.emplace_back("config", std::move(document));
  if (!is_user(entity.name)) return table.refused("name", kUserAccepted);
  return entity;
}

Result<void> read_identities(Table& root, const std::string& directory,
                             policy::IdentitySeed& seed) {
  TRY(root.each("user", [&](Table table) -> Result<void> {
    policy::SeedEntity user = TRY(read_entity(table, directory));
    TRY(table.read("groups", user.groups));
    TRY(table.read("boundary", user.boundary));
    seed.users.push_back(std::move(user));
    return table.nothing_else();
  }));
  TRY(root.each("group", [&](Table table) -> Result<void> {
    seed.groups.push_back(TRY(read_entity(table, directory)));
    return table.nothing_else();
  }));
  TRY(root.each("role", [&](Table table) -> Result<void> {
    policy::SeedEntity role = TRY(read_entity(table, directory));
    TRY(table.read("description", role.description));
    TRY(table.read("max_session_seconds", role.max_session_seconds,
                   {policy::kSessionSecondsMin, policy::kSessionSecondsMax}));
    TRY(table.read("boundary", role.boundary));
    role.trust = TRY(read_document(table, "trust", directory));
    seed.roles.push_back(std::move(role));
    return table.nothing_else();
  }));
  return root.each("policy", [&](Table table) -> Result<void> {
    policy::SeedPolicy policy;
    TRY(table.read("name", policy.name));
    policy.document = TRY(read_document(table, "document", directory));
    if (policy.document.empty())
      return invalid(table.name("document") + " or document_file must be given");
    seed.policies.push_back(std::move(policy));
    return table.nothing_else();
  });
}

Result<void> read_peers(Table& root, std::vector<policy::Peer>& peers) {
  return root.each("peer", [&](Table table) -> Result<void> {
    policy::Peer peer;
    TRY(table.read("access_key_id", peer.access_key_id));
    TRY(table.read("users", peer.users));
    TRY(table.read("roles", peer.roles));
    TRY(table.nothing_else());
    if (peer.access_key_id.empty())
      return table.refused("access_key_id",
                           "the access key of a user of this server, with which the peer signs");
    peers.push_back(std::move(peer));
    return {};
  });
}

Result<void> read_access_key(Table table, std::vector<policy::ConfiguredKey>& keys) {
  policy::ConfiguredKey key;
  TRY(table.read("id", key.id));
  TRY(table.read_secret("secret", key.secret));
  TRY(table.read("user", key.user));
  TRY(table.nothing_else());
  if (!is_user(key.user)) return table.refused("user", kUserAccepted);
  if (key.id.empty() || key.secret.empty())
    return invalid(table.name("id") + " and secret must both be given");
  keys.push_back(key);
  return {};
}

}  // namespace

bool is_user(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+=,.@_-") ==
             std::string::npos;
}

Result<void> read_sharing(Table& table, domain::FileSystem& file_system) {
  TRY(table.read("users", file_system.users));
  TRY(table.read("roles", file_system.roles));
  for (const auto& user : file_system.users)
    if (!is_user(user)) return table.refused_element("users", user, kUserAccepted);
  for (const auto& role : file_system.roles)
    if (role.empty()) return table.refused_element("roles", role, "the name or ARN of a role");
  return {};
}

Result<void> read_principals(Table& root, const std::string& directory, Config& config) {
  std::string roles = "closed";
  TRY(root.read("roles", roles));
  if (roles != "open" && roles != "closed")
    return root.refused("roles",
                        "\"closed\" (a role that is not defined may do what its job needs) or "
                        "\"open\" (everything)");
  config.open_roles = roles == "open";
  std::map<std::string, std::string> posix_users;
  TRY(root.read("posix_users", posix_users));
  TRY(read_posix_users(posix_users, config.posix_users));
  TRY(root.each("access_key",
                [&](Table table) { return read_access_key(table, config.access_keys); }));
  TRY(read_identities(root, directory, config.identities));
  TRY(root.each("rate_limits",
                [&](Table table) { return read_rate_limits(table, config.rate_limits); }));
  return read_peers(root, config.peers);
}

}  // namespace trainyard::config
