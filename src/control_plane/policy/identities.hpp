// Holds the users, groups, roles, instance profiles, managed policies and access keys of the
// account, in an immutable snapshot.
//
// A snapshot joins what the configuration file defines with what `aws iam` has made. Entities are
// shared between snapshots, so a copy costs some pointers and may be edited (identity_changes.hpp)
// before it is published.
//
// Threads:  immutable once published; read from anywhere.
// Errors:   none. A reference to a group or policy that does not exist (a line of the configuration
//           file), and a stored document that this version cannot parse, deny everything: what they
//           would have denied is not known.
// Lifetime: pointers that find_*() and policies_of() give live as long as the snapshot.
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

// A policy document as its author wrote it, with its parsed form.
struct Document {
  std::string text;
  std::shared_ptr<const Policy> policy;  // never nullptr
};

// The fields that users, groups and roles share.
struct Entity {
  std::string name;
  std::string path = "/";
  std::string id;  // "AIDA..", "AGPA..", "AROA..", "AIPA..": never given twice
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

// A name under which virtual machines would be given a role (instance_profiles.hpp).
struct InstanceProfile : Entity {
  std::string role;  // its name; "" = none
};

struct PolicyVersion {
  int number = 1;  // shown as "v1"
  Document document;
  Instant created;
};

// A managed policy: of the account, or built in (managed.hpp).
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
  int last_version = 1;      // the highest number ever given: numbers are not reused
  bool aws_managed = false;  // arn:aws:iam::aws:policy/NAME, built into this server
  bool from_config = false;

  const PolicyVersion* version(int number) const;
  // Never nullptr.
  const PolicyVersion* default_document() const;
};

struct AccessKey {
  std::string id;  // "AKIA.."
  std::string user;
  std::string secret;  // in memory only
  // encrypted, as the ledger keeps it; "" for keys of the configuration file
  std::string sealed_secret;
  bool owner = false;  // the server's owner: may do everything, needs no user record
  bool active = true;
  Instant created;
  bool from_config = false;
};

// A policy that belongs to a bucket: which principals may access the bucket and its objects.
struct BucketPolicy {
  std::string bucket;
  Document document;
  bool from_config = false;  // never: only the API makes them
};

class Identities {
 public:
  explicit Identities(std::string account) : account_(std::move(account)) {}

  const std::string& account() const { return account_; }

  // nullptr: not found. Role and user names are looked up without their path.
  const AccessKey* find_key(std::string_view id) const;
  const User* find_user(std::string_view name) const;
  const Group* find_group(std::string_view name) const;
  const Role* find_role(std::string_view name) const;
  const InstanceProfile* find_instance_profile(std::string_view name) const;
  const VersionedPolicy* find_policy(std::string_view arn) const;
  const BucketPolicy* find_bucket_policy(std::string_view bucket) const;

  // Inline and attached policies in effect; those of a user include the groups'.
  std::vector<const Policy*> policies_of(const User& user) const;
  std::vector<const Policy*> policies_of(const Group& group) const;
  std::vector<const Policy*> policies_of(const Role& role) const;
  // nullptr: the entity has no boundary.
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

  // Editing of a copy that is not published yet. Replaces the one of that name.
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
  const Policy* in_effect(std::string_view arn) const;
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

// A policy that denies everything: stands for a document that cannot be read.
const std::shared_ptr<const Policy>& deny_everything();

}  // namespace trainyard::policy
