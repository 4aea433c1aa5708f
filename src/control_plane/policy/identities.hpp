// Identities is a snapshot of the users, groups, roles, instance profiles, managed policies and
// access keys of the account.
//
// A snapshot contains the entities of the configuration file and those that requests to IAM have
// made. Entities are shared between snapshots, so a copy costs only pointers; it may be edited
// (identity_changes.hpp) before it is published.
//
// Threads:  immutable once published; read from anywhere.
// Errors:   none. A reference of the configuration file to a missing group or policy, and a stored
//           document that this version cannot parse, deny everything, since it is not known what
//           they would have denied.
// Lifetime: pointers that find_*() and policies_of() return are valid as long as the snapshot.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace trainyard::policy {

class Policy;

struct Tag {
  std::string key;
  std::string value;
  friend bool operator==(const Tag&, const Tag&) = default;
};

// The unchanged text of a policy document, with its parsed form.
struct Document {
  std::string text;
  std::shared_ptr<const Policy> policy;  // never nullptr
};

// The fields that users, groups and roles share.
struct Entity {
  std::string name;
  std::string path = "/";
  std::string id;  // "AIDA..", "AGPA..", "AROA..", "AIPA..": never reused
  Instant created;
  std::vector<Tag> tags;
  std::map<std::string, Document> inline_policies;  // by policy name
  std::vector<std::string> attached;  // ARNs of managed policies, in the order of their attachment
  std::string boundary;               // ARN of a managed policy; "" = none
  bool from_config = false;           // defined in the configuration file: read-only in the API
};

struct User : Entity {
  std::set<std::string> groups;
};

struct Group : Entity {};

struct Role : Entity {
  Document trust;
  std::string description;
  int64_t max_session_seconds = 3600;
};

// A name by which virtual machines would get a role (instance_profiles.hpp).
struct InstanceProfile : Entity {
  std::string role;  // name of the role; "" = none
};

struct PolicyVersion {
  int number = 1;  // shown as "v1"
  Document document;
  Instant created;
};

// A managed policy of the account, or a built-in policy (managed.hpp).
struct VersionedPolicy {
  std::string name;
  std::string path = "/";
  std::string arn;
  std::string id;  // "ANPA.."
  std::string description;
  Instant created;
  Instant updated;
  std::vector<Tag> tags;
  std::vector<PolicyVersion> versions;  // by number, oldest first; never empty
  int default_version = 1;
  int last_version = 1;      // the highest number so far; numbers are not reused
  bool aws_managed = false;  // arn:aws:iam::aws:policy/NAME, built into this server
  bool from_config = false;

  const PolicyVersion* version(int number) const;
  // Returns the default version; never nullptr.
  const PolicyVersion* default_document() const;
};

struct AccessKey {
  std::string id;  // "AKIA.."
  std::string user;
  std::string secret;  // in memory only
  // encrypted, as stored in the ledger; "" for keys of the configuration file
  std::string sealed_secret;
  bool owner = false;  // the key of the server's owner: allows everything, needs no user record
  bool active = true;
  Instant created;
  bool from_config = false;
};

// A BucketPolicy decides which principals may access a bucket and its objects.
struct BucketPolicy {
  std::string bucket;
  Document document;
  bool from_config = false;  // always false: only requests create bucket policies
};

class Identities {
 public:
  explicit Identities(std::string account) : account_(std::move(account)) {}

  const std::string& account() const { return account_; }

  // Return nullptr if not found. Names of roles and users are without their path.
  const AccessKey* find_key(std::string_view id) const;
  const User* find_user(std::string_view name) const;
  const Group* find_group(std::string_view name) const;
  const Role* find_role(std::string_view name) const;
  const InstanceProfile* find_instance_profile(std::string_view name) const;
  const VersionedPolicy* find_policy(std::string_view arn) const;
  const BucketPolicy* find_bucket_policy(std::string_view bucket) const;

  // Return the inline and attached policies that are in effect; for a user also those of groups.
  std::vector<const Policy*> policies_of(const User& user) const;
  std::vector<const Policy*> policies_of(const Group& group) const;
  std::vector<const Policy*> policies_of(const Role& role) const;
  // Returns nullptr if the entity has no boundary.
  const Policy* boundary_of(const Entity& entity) const;

  std::string arn_of(const User& user) const { return arn("user", user); }
  std::string arn_of(const Group& group) const { return arn("group", group); }
  std::string arn_of(const Role& role) const { return arn("role", role); }
  std::string arn_of(const InstanceProfile& profile) const {
    return arn("instance-profile", profile);
  }
  std::string policy_arn(std::string_view path, std::string_view name) const;

  template <class T>
  using Table = std::map<std::string, std::shared_ptr<const T>, std::less<>>;

  const Table<User>& users() const { return users_; }
  const Table<Group>& groups() const { return groups_; }
  const Table<Role>& roles() const { return roles_; }
  const Table<InstanceProfile>& instance_profiles() const { return instance_profiles_; }
  const Table<VersionedPolicy>& policies() const { return policies_; }             // by ARN
  const Table<AccessKey>& keys() const { return keys_; }                           // by id
  const Table<BucketPolicy>& bucket_policies() const { return bucket_policies_; }  // by bucket

  // Edit a copy that is not yet published. put() adds an entity or replaces that of the same name.
  void put(User user);
  void put(Group group);
  void put(Role role);
  void put(InstanceProfile profile);
  void put(VersionedPolicy policy);
  void put(AccessKey key);
  void put(BucketPolicy policy);
  void remove_user(std::string_view name);
  void remove_group(std::string_view name);
  void remove_role(std::string_view name);
  void remove_instance_profile(std::string_view name);
  void remove_policy(std::string_view arn);
  void remove_key(std::string_view id);
  void remove_bucket_policy(std::string_view bucket);

 private:
  std::string arn(std::string_view kind, const Entity& entity) const;
  const Policy* effective_policy(std::string_view arn) const;
  void add_policies(const Entity& entity, std::vector<const Policy*>& to) const;

  std::string account_;
  Table<User> users_;
  Table<Group> groups_;
  Table<Role> roles_;
  Table<InstanceProfile> instance_profiles_;
  Table<VersionedPolicy> policies_;
  Table<AccessKey> keys_;
  Table<BucketPolicy> bucket_policies_;
};

// Returns a policy that denies everything. It replaces documents that cannot be parsed.
const std::shared_ptr<const Policy>& deny_everything();

}  // namespace trainyard::policy
