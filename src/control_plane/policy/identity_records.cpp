#include "policy/identity_records.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy {
namespace {

// -- writing ------------------------------------------------------------------------------------

Json tags_json(const std::vector<Tag>& tags) {
  Json list = Json::array();
  for (const Tag& tag : tags) list.push_back({{"key", tag.key}, {"value", tag.value}});
  return list;
}

Json entity_json(const Entity& entity) {
  Json json{{"id", entity.id}, {"path", entity.path}, {"created", to_milliseconds(entity.created)}};
  if (!entity.tags.empty()) json["tags"] = tags_json(entity.tags);
  if (!entity.attached.empty()) json["attached"] = entity.attached;
  if (!entity.boundary.empty()) json["boundary"] = entity.boundary;
  for (const auto& [name, document] : entity.inline_policies) json["inline"][name] = document.text;
  return json;
}

Json json_of(const User& user) {
  Json json = entity_json(user);
  if (!user.groups.empty()) json["groups"] = user.groups;
  return json;
}
Json json_of(const Group& group) { return entity_json(group); }
Json json_of(const Role& role) {
  Json json = entity_json(role);
  json["trust"] = role.trust.text;
  json["description"] = role.description;
  json["max_session_seconds"] = role.max_session_seconds;
  return json;
}
Json json_of(const VersionedPolicy& policy) {
  Json json{{"id", policy.id},
            {"name", policy.name},
            {"path", policy.path},
            {"description", policy.description},
            {"created", to_milliseconds(policy.created)},
            {"updated", to_milliseconds(policy.updated)},
            {"default_version", policy.default_version},
            {"last_version", policy.last_version}};
  if (!policy.tags.empty()) json["tags"] = tags_json(policy.tags);
  for (const PolicyVersion& version : policy.versions)
    json["versions"].push_back({{"number", version.number},
                                {"document", version.document.text},
                                {"created", to_milliseconds(version.created)}});
  return json;
}
Json json_of(const AccessKey& key) {
  return {{"user", key.user},
          {"sealed_secret", key.sealed_secret},
          {"active", key.active},
          {"created", to_milliseconds(key.created)}};
}

Json json_of(const BucketPolicy& policy) { return {{"document", policy.document.text}}; }

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

Result<std::string> text_at(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) return std::string();
  if (!found->is_string()) return invalid(std::string(name) + " must be a string");
  return found->get<std::string>();
}

Result<int64_t> number_at(const Json& json, const char* name, int64_t otherwise) {
  const auto found = json.find(name);
  if (found == json.end()) return otherwise;
  if (!found->is_number_integer()) return invalid(std::string(name) + " must be an integer");
  return found->get<int64_t>();
}

Result<std::vector<std::string>> texts_at(const Json& json, const char* name) {
  std::vector<std::string> texts;
  const auto found = json.find(name);
  if (found == json.end()) return texts;
  if (!found->is_array()) return invalid(std::string(name) + " must be a list");
  for (const Json& each : *found) {
    if (!each.is_string()) return invalid(std::string(name) + " must hold strings");
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

Result<std::vector<Tag>> tags_at(const Json& json) {
  std::vector<Tag> tags;
  const auto found = json.find("tags");
  if (found == json.end()) return tags;
  if (!found->is_array()) return invalid("tags must be a list");
  for (const Json& each : *found)
    tags.push_back({TRY(string_at(each, "key")), TRY(string_at(each, "value"))});
  return tags;
}

// A document of an earlier version that is not understood denies everything.
Document stored_document(std::string text, PolicyKind kind) {
  auto parsed = parse_policy(text, kind);
  return {std::move(text), parsed ? *std::move(parsed) : deny_everything()};
}

Result<void> read_entity(const Json& json, Entity& entity) {
  entity.id = TRY(text_at(json, "id"));
  entity.path = TRY(string_at(json, "path"));
  entity.created = from_milliseconds(TRY(number_at(json, "created", 0)));
  entity.tags = TRY(tags_at(json));
  entity.attached = TRY(texts_at(json, "attached"));
  entity.boundary = TRY(text_at(json, "boundary"));
  const auto found = json.find("inline");
  if (found == json.end()) return {};
  if (!found->is_object()) return invalid("inline must be an object");
  for (const auto& [name, text] : found->items()) {
    if (!text.is_string()) return invalid("inline must hold strings");
    entity.inline_policies.emplace(name,
                                   stored_document(text.get<std::string>(), PolicyKind::identity));
  }
  return {};
}

template <class T>
bool in_config(const Identities::Table<T>& table, const std::string& name) {
  return std::ranges::any_of(table, [&](const auto& each) {
    return built_in(*each.second) && equals_ignoring_case(each.first, name);
  });
}

Result<void> add_user_record(Identities& identities, const std::string& name, const Json& json) {
  if (in_config(identities.users(), name)) return {};
  User user;
  user.name = name;
  TRY(read_entity(json, user));
  for (std::string& group : TRY(texts_at(json, "groups"))) user.groups.insert(std::move(group));
  identities.put(std::move(user));
  return {};
}

Result<void> add_group_record(Identities& identities, const std::string& name, const Json& json) {
  if (in_config(identities.groups(), name)) return {};
  Group group;
  group.name = name;
  TRY(read_entity(json, group));
  identities.put(std::move(group));
  return {};
}

Result<void> add_role_record(Identities& identities, const std::string& name, const Json& json) {
  if (in_config(identities.roles(), name)) return {};
  Role role;
  role.name = name;
  TRY(read_entity(json, role));
  role.trust = stored_document(TRY(string_at(json, "trust")), PolicyKind::trust);
  role.description = TRY(text_at(json, "description"));
  role.max_session_seconds = TRY(number_at(json, "max_session_seconds", role.max_session_seconds));
  identities.put(std::move(role));
  return {};
}

Result<void> add_policy_record(Identities& identities, const std::string& arn, const Json& json) {
  VersionedPolicy policy;
  policy.arn = arn;
  policy.name = TRY(string_at(json, "name"));
  policy.path = TRY(string_at(json, "path"));
  if (const VersionedPolicy* other = identities.find_policy(arn); other && built_in(*other))
    return {};
  policy.id = TRY(text_at(json, "id"));
  policy.description = TRY(text_at(json, "description"));
  policy.created = from_milliseconds(TRY(number_at(json, "created", 0)));
  policy.updated = from_milliseconds(TRY(number_at(json, "updated", 0)));
  policy.tags = TRY(tags_at(json));
  policy.default_version = int(TRY(number_at(json, "default_version", 1)));
  policy.last_version = int(TRY(number_at(json, "last_version", 1)));
  const auto versions = json.find("versions");
  if (versions == json.end() || !versions->is_array()) return invalid("versions must be a list");
  for (const Json& each : *versions)
    policy.versions.push_back(
        {int(TRY(int_at(each, "number"))),
         stored_document(TRY(string_at(each, "document")), PolicyKind::identity),
         from_milliseconds(TRY(number_at(each, "created", 0)))});
  if (!policy.version(policy.default_version)) return invalid("the default version does not exist");
  identities.put(std::move(policy));
  return {};
}

Result<void> add_key_record(Identities& identities, const std::string& id, const Json& json,
                            const Unseal& unseal) {
  if (const AccessKey* other = identities.find_key(id); other && other->from_config) return {};
  AccessKey key;
  key.id = id;
  key.user = TRY(string_at(json, "user"));
  key.sealed_secret = TRY(string_at(json, "sealed_secret"));
  key.secret = TRY(unseal(key.sealed_secret, id));
  key.active = TRY(bool_at(json, "active"));
  key.created = from_milliseconds(TRY(number_at(json, "created", 0)));
  identities.put(std::move(key));
  return {};
}

Result<void> add_bucket_policy_record(Identities& identities, const std::string& bucket,
                                      const Json& json) {
  identities.put(BucketPolicy{
      bucket, stored_document(TRY(string_at(json, "document")), PolicyKind::resource)});
  return {};
}

}  // namespace

std::vector<RecordChange> difference(const Identities& before, const Identities& after) {
  std::vector<RecordChange> changes;
  compare(kUserRecord, before.users(), after.users(), changes);
  compare(kGroupRecord, before.groups(), after.groups(), changes);
  compare(kRoleRecord, before.roles(), after.roles(), changes);
  compare(kPolicyRecord, before.policies(), after.policies(), changes);
  compare(kKeyRecord, before.keys(), after.keys(), changes);
  compare(kBucketPolicyRecord, before.bucket_policies(), after.bucket_policies(), changes);
  return changes;
}

Result<void> add_record(Identities& identities, const RecordName& name, const Json& document,
                        const Unseal& unseal) {
  const auto& [kind, each] = name;
  if (kind == kUserRecord) return add_user_record(identities, each, document);
  if (kind == kGroupRecord) return add_group_record(identities, each, document);
  if (kind == kRoleRecord) return add_role_record(identities, each, document);
  if (kind == kPolicyRecord) return add_policy_record(identities, each, document);
  if (kind == kKeyRecord) return add_key_record(identities, each, document, unseal);
  if (kind == kBucketPolicyRecord) return add_bucket_policy_record(identities, each, document);
  return {};
}

}  // namespace trainyard::policy
