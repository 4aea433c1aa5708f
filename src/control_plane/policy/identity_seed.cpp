#include "policy/identity_seed.hpp"

#include <algorithm>
#include <set>

#include "base/fnv.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "policy/identity_changes.hpp"
#include "policy/managed.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy {
namespace {

constexpr std::string_view kAwsPolicies = "arn:aws:iam::aws:policy/";
constexpr size_t kNameBytesMax = 64;       // IAM's limit for users and roles
constexpr size_t kLongNameBytesMax = 128;  // IAM's limit for groups and policies

bool is_name(std::string_view name, size_t bytes_max) {
  return !name.empty() && name.size() <= bytes_max &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+=,.@-") ==
             std::string_view::npos;
}

Result<Document> document_of(const std::string& text, PolicyKind kind) {
  auto policy = TRY(parse_policy(text, kind));
  return Document{text, std::move(policy)};
}

// A name refers to the policy of the configuration file, or else to the AWS managed policy.
std::string arn_of(const Identities& identities, const std::string& policy) {
  if (policy.starts_with("arn:")) return policy;
  std::string own = identities.policy_arn("/", policy);
  return identities.find_policy(own) ? own : std::string(kAwsPolicies) + policy;
}

// An ARN of an unknown AWS managed policy is an error; other policies may be created later.
Result<std::string> known_arn(const Identities& identities, const std::string& policy) {
  std::string arn = arn_of(identities, policy);
  if (arn.starts_with(kAwsPolicies) && !identities.find_policy(arn))
    return invalid("unknown policy " + policy +
                   ": give the name of an AWS managed policy that this server has, "
                   "of a [[policy]] of this file, or an ARN");
  if (!arn.starts_with(kAwsPolicies) && !arn.starts_with(identities.policy_arn("/", "")))
    return invalid("invalid policy " + policy + ": expected " + identities.policy_arn("/", "NAME"));
  return arn;
}

Result<void> fill(const Identities& identities, const SeedEntity& seed, std::string_view prefix,
                  EntityKind kind, Entity& entity) {
  if (!is_name(seed.name, kind == EntityKind::group ? kLongNameBytesMax : kNameBytesMax))
    return invalid("invalid name: 1 to 64 letters, digits or any of +=,.@_-");
  entity.name = seed.name;
  entity.id = seed_id(prefix, seed.name);
  entity.from_config = true;
  for (const std::string& policy : seed.policies)
    entity.attached.push_back(TRY(known_arn(identities, policy)));
  for (const auto& [name, text] : seed.inline_) {
    if (!is_name(name, kLongNameBytesMax))
      return invalid("invalid policy name '" + shorten(name, 80) + "'");
    if (entity.inline_policies.contains(name))
      return invalid("the policy " + name + " is defined twice");
    entity.inline_policies.emplace(
        name, TRY(document_of(text, PolicyKind::identity).in("policy " + name)));
  }
  if (!seed.boundary.empty()) entity.boundary = TRY(known_arn(identities, seed.boundary));
  return {};
}

Result<void> add_policy(Identities& identities, const SeedPolicy& seed) {
  if (!is_name(seed.name, kLongNameBytesMax))
    return invalid("invalid name: 1 to 128 letters, digits or any of +=,.@_-");
  VersionedPolicy policy;
  policy.name = seed.name;
  policy.arn = identities.policy_arn("/", seed.name);
  policy.id = seed_id("ANPA", seed.name);
  policy.from_config = true;
  auto document = TRY(document_of(seed.document, PolicyKind::identity));
  policy.versions.push_back({1, std::move(document), {}});
  return add_managed_policy(identities, std::move(policy));
}

Result<void> add_seed_user(Identities& identities, const SeedEntity& seed) {
  User user;
  TRY(fill(identities, seed, "AIDA", EntityKind::user, user));
  for (const std::string& group : seed.groups) {
    // The API could not remove a membership in a group that the API created.
    if (!identities.find_group(group))
      return invalid("unknown group " + group + ": add a [[group]]");
    user.groups.insert(group);
  }
  return add_user(identities, std::move(user));
}

Result<void> add_seed_group(Identities& identities, const SeedEntity& seed) {
  Group group;
  TRY(fill(identities, seed, "AGPA", EntityKind::group, group));
  return add_group(identities, std::move(group));
}

Result<void> add_seed_role(Identities& identities, const SeedEntity& seed) {
  Role role;
  TRY(fill(identities, seed, "AROA", EntityKind::role, role));
  role.description = seed.description;
  role.max_session_seconds = seed.max_session_seconds;
  if (role.max_session_seconds < kSessionSecondsMin ||
      role.max_session_seconds > kSessionSecondsMax)
    return invalid("invalid max_session_seconds " + std::to_string(role.max_session_seconds) +
                   ": must be between " + std::to_string(kSessionSecondsMin) + " and " +
                   std::to_string(kSessionSecondsMax));
  const std::string trust = seed.trust.empty() ? built_in_trust(identities.account()) : seed.trust;
  role.trust = TRY(document_of(trust, PolicyKind::trust).in("trust"));
  return add_role(identities, std::move(role));
}

Result<void> add_seed_keys(Identities& identities, const std::vector<SeedKey>& keys) {
  for (const SeedKey& seed : keys) {
    AccessKey key;
    key.id = seed.id;
    key.secret = seed.secret;
    key.user = seed.user;
    key.owner = seed.user == keys.front().user;
    key.from_config = true;
    if (identities.find_key(key.id)) return invalid("access key " + key.id + " is defined twice");
    identities.put(std::move(key));
  }
  return {};
}

}  // namespace

std::string built_in_trust(const std::string& account) {
  const Json statement{
      {"Effect", "Allow"},
      {"Principal",
       {{"Service", {"sagemaker.amazonaws.com", "batch.amazonaws.com", "ecs-tasks.amazonaws.com"}},
        {"AWS", "arn:aws:iam::" + account + ":root"}}},
      {"Action", "sts:AssumeRole"}};
  return dump(Json{{"Version", "2012-10-17"}, {"Statement", {statement}}});
}

std::string seed_id(std::string_view prefix, std::string_view name) {
  // Two FNV-1a hashes: ids must be stable, not secret.
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  std::string id(prefix);
  const std::string text = id + std::string(name);
  uint64_t hash = fnv1a(text);
  for (int i = 0; i < 17; ++i) {
    hash = fnv1a_step(hash, uint64_t(i));
    id += kLetters[hash >> 32 & 31];
  }
  return id;
}

Result<Identities> identities_of(const std::string& account, const IdentitySeed& seed) {
  Identities identities(account);
  for (const auto& managed : managed_policies()) {
    VersionedPolicy policy;
    policy.name = managed.name;
    policy.arn = managed.arn();
    policy.id = seed_id("ANPA", policy.name);
    policy.description = managed.description;
    policy.aws_managed = true;
    policy.versions.push_back({1, {std::string(managed.document), managed.policy}, {}});
    identities.put(std::move(policy));
  }
  for (const SeedPolicy& each : seed.policies)
    TRY(add_policy(identities, each).in("policy " + each.name));
  for (const SeedEntity& each : seed.groups)
    TRY(add_seed_group(identities, each).in("group " + each.name));
  for (const SeedEntity& each : seed.users)
    TRY(add_seed_user(identities, each).in("user " + each.name));
  for (const SeedEntity& each : seed.roles)
    TRY(add_seed_role(identities, each).in("role " + each.name));
  TRY(add_seed_keys(identities, seed.keys));
  return identities;
}

std::vector<std::string> seed_warnings(const Identities& identities) {
  std::vector<std::string> warnings;
  std::set<std::string> warned;
  for (const auto& [id, key] : identities.keys()) {
    if (key->owner || !key->from_config || !warned.insert(key->user).second) continue;
    const User* user = identities.find_user(key->user);
    if (user && !identities.policies_of(*user).empty()) continue;
    warnings.push_back("the access key " + id + " of user " + key->user +
                       " may do nothing: the user has no policies; add [[user]] name = \"" +
                       key->user + "\" policies = [\"PowerUserAccess\"] to the configuration file");
  }
  const auto check = [&](const char* kind, const Entity& entity) {
    if (!entity.from_config) return;
    std::vector<std::string> arns = entity.attached;
    if (!entity.boundary.empty()) arns.push_back(entity.boundary);
    for (const std::string& arn : arns)
      if (!identities.find_policy(arn))
        warnings.push_back(std::string("the ") + kind + " " + entity.name +
                           " may do nothing: its policy " + arn +
                           " does not exist; make it with aws iam create-policy or [[policy]]");
  };
  for (const auto& [name, user] : identities.users()) check("user", *user);
  for (const auto& [name, group] : identities.groups()) check("group", *group);
  for (const auto& [name, role] : identities.roles()) check("role", *role);
  return warnings;
}

}  // namespace trainyard::policy
