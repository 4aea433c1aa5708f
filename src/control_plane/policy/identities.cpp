#include "policy/identities.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "policy/policy.hpp"

namespace trainyard::policy {
namespace {

template <class T>
const T* find(const Identities::Table<T>& table, std::string_view name) {
  const auto found = table.find(name);
  return found == table.end() ? nullptr : found->second.get();
}

template <class T>
void remove(Identities::Table<T>& table, std::string_view name) {
  if (const auto found = table.find(name); found != table.end()) table.erase(found);
}

}  // namespace

const PolicyVersion* VersionedPolicy::version(int number) const {
  const auto found = std::ranges::find(versions, number, &PolicyVersion::number);
  return found == versions.end() ? nullptr : &*found;
}

const PolicyVersion* VersionedPolicy::default_document() const {
  const PolicyVersion* found = version(default_version);
  CHECK(found, "the default version of a managed policy exists");
  return found;
}

const AccessKey* Identities::find_key(std::string_view id) const { return find(keys_, id); }
const User* Identities::find_user(std::string_view name) const { return find(users_, name); }
const Group* Identities::find_group(std::string_view name) const { return find(groups_, name); }
const Role* Identities::find_role(std::string_view name) const { return find(roles_, name); }
const InstanceProfile* Identities::find_instance_profile(std::string_view name) const {
  return find(instance_profiles_, name);
}
const VersionedPolicy* Identities::find_policy(std::string_view arn) const {
  return find(policies_, arn);
}

const BucketPolicy* Identities::find_bucket_policy(std::string_view bucket) const {
  return find(bucket_policies_, bucket);
}

const Policy* Identities::effective_policy(std::string_view arn) const {
  const VersionedPolicy* managed = find_policy(arn);
  return managed ? managed->default_document()->document.policy.get() : deny_everything().get();
}

void Identities::add_policies(const Entity& entity, std::vector<const Policy*>& to) const {
  for (const auto& [name, document] : entity.inline_policies) to.push_back(document.policy.get());
  for (const std::string& arn : entity.attached) to.push_back(effective_policy(arn));
}

std::vector<const Policy*> Identities::policies_of(const User& user) const {
  std::vector<const Policy*> all;
  add_policies(user, all);
  for (const std::string& name : user.groups)
    if (const Group* group = find_group(name))
      add_policies(*group, all);
    else
      all.push_back(deny_everything().get());
  return all;
}

std::vector<const Policy*> Identities::policies_of(const Group& group) const {
  std::vector<const Policy*> all;
  add_policies(group, all);
  return all;
}

std::vector<const Policy*> Identities::policies_of(const Role& role) const {
  std::vector<const Policy*> all;
  add_policies(role, all);
  return all;
}

const Policy* Identities::boundary_of(const Entity& entity) const {
  return entity.boundary.empty() ? nullptr : effective_policy(entity.boundary);
}

std::string Identities::arn(std::string_view kind, const Entity& entity) const {
  return std::string("arn:aws:iam::")
      .append(account_)
      .append(":")
      .append(kind)
      .append(entity.path)
      .append(entity.name);
}

std::string Identities::policy_arn(std::string_view path, std::string_view name) const {
  return std::string("arn:aws:iam::").append(account_).append(":policy").append(path).append(name);
}

void Identities::put(User user) {
  std::string name = user.name;
  users_[std::move(name)] = std::make_shared<const User>(std::move(user));
}
void Identities::put(Group group) {
  std::string name = group.name;
  groups_[std::move(name)] = std::make_shared<const Group>(std::move(group));
}
void Identities::put(Role role) {
  std::string name = role.name;
  roles_[std::move(name)] = std::make_shared<const Role>(std::move(role));
}
void Identities::put(InstanceProfile profile) {
  std::string name = profile.name;
  instance_profiles_[std::move(name)] = std::make_shared<const InstanceProfile>(std::move(profile));
}
void Identities::put(VersionedPolicy policy) {
  std::string arn = policy.arn;
  policies_[std::move(arn)] = std::make_shared<const VersionedPolicy>(std::move(policy));
}
void Identities::put(AccessKey key) {
  std::string id = key.id;
  keys_[std::move(id)] = std::make_shared<const AccessKey>(std::move(key));
}
void Identities::put(BucketPolicy policy) {
  std::string bucket = policy.bucket;
  bucket_policies_[std::move(bucket)] = std::make_shared<const BucketPolicy>(std::move(policy));
}
void Identities::remove_user(std::string_view name) { remove(users_, name); }
void Identities::remove_group(std::string_view name) { remove(groups_, name); }
void Identities::remove_role(std::string_view name) { remove(roles_, name); }
void Identities::remove_instance_profile(std::string_view name) {
  remove(instance_profiles_, name);
}
void Identities::remove_policy(std::string_view arn) { remove(policies_, arn); }
void Identities::remove_key(std::string_view id) { remove(keys_, id); }
void Identities::remove_bucket_policy(std::string_view bucket) { remove(bucket_policies_, bucket); }

const std::shared_ptr<const Policy>& deny_everything() {
  static const std::shared_ptr<const Policy> policy =
      parse_policy(
          R"({"Version":"2012-10-17","Statement":{"Effect":"Deny","Action":"*","Resource":"*"}})",
          PolicyKind::identity)
          .value();
  return policy;
}

}  // namespace trainyard::policy
