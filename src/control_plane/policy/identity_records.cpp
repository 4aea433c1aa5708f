#include "policy/identity_records.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>

#include "base/complete_record.hpp"
#include "base/text.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy {
namespace {

// -- forms --------------------------------------------------------------------------------------

// Parses a stored document. A document of another version that cannot be parsed denies everything.
Document stored_document(std::string text, PolicyKind kind) {
  auto parsed = parse_policy(text, kind);
  return {std::move(text), parsed ? *std::move(parsed) : deny_everything()};
}

struct DocumentForm {
  using Value = Document;
  PolicyKind kind;

  static Json write(const Document& document) { return document.text; }
  Result<void> read_into(const Json& json, Document& document) const {
    if (!json.is_string()) return invalid("a policy document must be a string");
    document = stored_document(json.get<std::string>(), kind);
    return {};
  }
};
constexpr DocumentForm kIdentityPolicy{PolicyKind::identity};
constexpr DocumentForm kTrustPolicy{PolicyKind::trust};
constexpr DocumentForm kResourcePolicy{PolicyKind::resource};

// The documents by policy name.
struct InlinePoliciesForm {
  using Value = std::map<std::string, Document>;
  static Json write(const Value& policies) {
    Json json = Json::object();
    for (const auto& [name, document] : policies) json[name] = kIdentityPolicy.write(document);
    return json;
  }
  static Result<void> read_into(const Json& json, Value& policies) {
    if (!json.is_object()) return invalid("inline policies must be an object");
    for (const auto& [name, text] : json.items())
      TRY(kIdentityPolicy.read_into(text, policies[name]).in(name));
    return {};
  }
};

struct GroupNamesForm {
  using Value = std::set<std::string>;
  static Json write(const Value& names) { return names; }
  static Result<void> read_into(const Json& json, Value& names) {
    if (!json.is_array()) return invalid("group names must be a list");
    for (const Json& name : json) {
      if (!name.is_string()) return invalid("a group name must be a string");
      names.insert(name.get<std::string>());
    }
    return {};
  }
};

// -- records ------------------------------------------------------------------------------------

constexpr auto kTag = complete(json_record<Tag>("tag", [](auto& side, auto& tag) {
  side("key", tag.key);
  side("value", tag.value);
}));

constexpr auto kDescribeEntity = [](auto& side, auto& entity) {
  side("id", entity.id);
  side("path", entity.path);
  side("created", entity.created);
  side.if_set("tags", entity.tags, kTag);
  side.if_set("attached", entity.attached);
  side.if_set("boundary", entity.boundary);
  side.if_set("inline", entity.inline_policies, InlinePoliciesForm());
};

constexpr auto kUser = json_record<User>("user", [](auto& side, auto& user) {
  kDescribeEntity(side, user);
  side.if_set("groups", user.groups, GroupNamesForm());
});

constexpr auto kGroup = json_record<Group>("group", kDescribeEntity);

constexpr auto kRole = json_record<Role>("role", [](auto& side, auto& role) {
  kDescribeEntity(side, role);
  side("trust", role.trust, kTrustPolicy);
  side("description", role.description);
  side("max_session_seconds", role.max_session_seconds);
});

constexpr auto kInstanceProfile =
    json_record<InstanceProfile>("instance_profile", [](auto& side, auto& profile) {
      side("id", profile.id);
      side("path", profile.path);
      side("created", profile.created);
      side.if_set("tags", profile.tags, kTag);
      side.if_set("role", profile.role);
    });

constexpr auto kVersion = json_record<PolicyVersion>("version", [](auto& side, auto& version) {
  side("number", version.number);
  side("document", version.document, kIdentityPolicy);
  side("created", version.created);
});

constexpr auto kPolicy = json_record<VersionedPolicy>("policy", [](auto& side, auto& policy) {
  side("id", policy.id);
  side("name", policy.name);
  side("path", policy.path);
  side("description", policy.description);
  side("created", policy.created);
  side("updated", policy.updated);
  side("default_version", policy.default_version);
  side("last_version", policy.last_version);
  side.if_set("tags", policy.tags, kTag);
  side.if_set("versions", policy.versions, kVersion);
});

constexpr auto kAccessKey = json_record<AccessKey>("access_key", [](auto& side, auto& key) {
  side("user", key.user);
  side("sealed_secret", key.sealed_secret);
  side("active", key.active);
  side("created", key.created);
});

constexpr auto kBucketPolicy =
    complete(json_record<BucketPolicy>("bucket_policy", [](auto& side, auto& policy) {
      side("document", policy.document, kResourcePolicy);
    }));

Json json_of(const User& user) { return kUser.write(user); }
Json json_of(const Group& group) { return kGroup.write(group); }
Json json_of(const Role& role) { return kRole.write(role); }
Json json_of(const InstanceProfile& profile) { return kInstanceProfile.write(profile); }
Json json_of(const VersionedPolicy& policy) { return kPolicy.write(policy); }
Json json_of(const AccessKey& key) { return kAccessKey.write(key); }
Json json_of(const BucketPolicy& policy) { return kBucketPolicy.write(policy); }

// -- changes ------------------------------------------------------------------------------------

bool built_in(const VersionedPolicy& policy) { return policy.aws_managed || policy.from_config; }
template <class T>
bool built_in(const T& entity) {
  return entity.from_config;
}

template <class T>
void compare(std::string_view kind, const Identities::Table<T>& before,
             const Identities::Table<T>& after, std::vector<RecordChange>& changes) {
  for (const auto& [name, entity] : before)
    if (!built_in(*entity) && !after.contains(name))
      changes.push_back({{std::string(kind), name}, std::nullopt});
  for (const auto& [name, entity] : after) {
    const auto found = before.find(name);
    const bool same = found != before.end() && found->second == entity;
    if (!built_in(*entity) && !same)
      changes.push_back({{std::string(kind), name}, json_of(*entity)});
  }
}

// -- reading ------------------------------------------------------------------------------------

// Checks that a record has the members without default values.
Result<void> check_has(const Json& json, std::initializer_list<const char*> members) {
  for (const char* member : members)
    if (const auto found = json.find(member); found == json.end() || found->is_null())
      return invalid(std::string(member) + " is missing");
  return {};
}

template <class T>
bool in_config(const Identities::Table<T>& table, const std::string& name) {
  return std::ranges::any_of(table, [&](const auto& each) {
    return built_in(*each.second) && equals_ignoring_case(each.first, name);
  });
}

// Adds a user, group, role or instance profile; `T` is an Entity.
template <class T, class Record>
Result<void> add_entity_record(Identities& identities, const Identities::Table<T>& table,
                               const Record& record, const std::string& name, const Json& json) {
  if (in_config(table, name)) return {};
  T entity = TRY(record.read(json));
  TRY(check_has(json, {"path"}));
  entity.name = name;
  identities.put(std::move(entity));
  return {};
}

Result<void> add_role_record(Identities& identities, const std::string& name, const Json& json) {
  TRY(check_has(json, {"trust"}));
  return add_entity_record(identities, identities.roles(), kRole, name, json);
}

Result<void> add_policy_record(Identities& identities, const std::string& arn, const Json& json) {
  VersionedPolicy policy = TRY(kPolicy.read(json));
  TRY(check_has(json, {"name", "path", "versions"}));
  for (const Json& version : json["versions"]) TRY(check_has(version, {"number", "document"}));
  if (const VersionedPolicy* other = identities.find_policy(arn); other && built_in(*other))
    return {};
  policy.arn = arn;
  if (!policy.version(policy.default_version)) return invalid("the default version does not exist");
  identities.put(std::move(policy));
  return {};
}

Result<void> add_key_record(Identities& identities, const std::string& id, const Json& json,
                            const Unseal& unseal) {
  if (const AccessKey* other = identities.find_key(id); other && other->from_config) return {};
  AccessKey key = TRY(kAccessKey.read(json));
  TRY(check_has(json, {"user", "sealed_secret", "active"}));
  key.id = id;
  key.secret = TRY(unseal(key.sealed_secret, id));
  identities.put(std::move(key));
  return {};
}

Result<void> add_bucket_policy_record(Identities& identities, const std::string& bucket,
                                      const Json& json) {
  BucketPolicy policy = TRY(kBucketPolicy.read(json));
  policy.bucket = bucket;
  identities.put(std::move(policy));
  return {};
}

}  // namespace

std::vector<RecordChange> difference(const Identities& before, const Identities& after) {
  std::vector<RecordChange> changes;
  compare(kUserRecord, before.users(), after.users(), changes);
  compare(kGroupRecord, before.groups(), after.groups(), changes);
  compare(kRoleRecord, before.roles(), after.roles(), changes);
  compare(kInstanceProfileRecord, before.instance_profiles(), after.instance_profiles(), changes);
  compare(kPolicyRecord, before.policies(), after.policies(), changes);
  compare(kKeyRecord, before.keys(), after.keys(), changes);
  compare(kBucketPolicyRecord, before.bucket_policies(), after.bucket_policies(), changes);
  return changes;
}

Result<void> add_record(Identities& identities, const RecordName& name, const Json& document,
                        const Unseal& unseal) {
  const auto& [kind, each] = name;
  if (kind == kUserRecord)
    return add_entity_record(identities, identities.users(), kUser, each, document);
  if (kind == kGroupRecord)
    return add_entity_record(identities, identities.groups(), kGroup, each, document);
  if (kind == kRoleRecord) return add_role_record(identities, each, document);
  if (kind == kInstanceProfileRecord)
    return add_entity_record(identities, identities.instance_profiles(), kInstanceProfile, each,
                             document);
  if (kind == kPolicyRecord) return add_policy_record(identities, each, document);
  if (kind == kKeyRecord) return add_key_record(identities, each, document, unseal);
  if (kind == kBucketPolicyRecord) return add_bucket_policy_record(identities, each, document);
  return {};
}

}  // namespace trainyard::policy
