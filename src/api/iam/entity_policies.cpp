// Implements the operations on the policies of users, groups and roles: inline policies, and
// attached managed policies.
#include "base/text.hpp"
#include "iam/common.hpp"

namespace trainyard::api::iam {
namespace {

// Names the operations of a kind of entity, and the member with the entity's name.
struct UserPolicies {
  static constexpr EntityKind kKind = EntityKind::user;
  using Put = iam::PutUserPolicy;
  using Get = iam::GetUserPolicy;
  using Delete = iam::DeleteUserPolicy;
  using List = iam::ListUserPolicies;
  using Attach = iam::AttachUserPolicy;
  using Detach = iam::DetachUserPolicy;
  using ListAttached = iam::ListAttachedUserPolicies;
  static auto& name(auto& shape) { return shape.user_name; }
};
struct GroupPolicies {
  static constexpr EntityKind kKind = EntityKind::group;
  using Put = iam::PutGroupPolicy;
  using Get = iam::GetGroupPolicy;
  using Delete = iam::DeleteGroupPolicy;
  using List = iam::ListGroupPolicies;
  using Attach = iam::AttachGroupPolicy;
  using Detach = iam::DetachGroupPolicy;
  using ListAttached = iam::ListAttachedGroupPolicies;
  static auto& name(auto& shape) { return shape.group_name; }
};
struct RolePolicies {
  static constexpr EntityKind kKind = EntityKind::role;
  using Put = iam::PutRolePolicy;
  using Get = iam::GetRolePolicy;
  using Delete = iam::DeleteRolePolicy;
  using List = iam::ListRolePolicies;
  using Attach = iam::AttachRolePolicy;
  using Detach = iam::DetachRolePolicy;
  using ListAttached = iam::ListAttachedRolePolicies;
  static auto& name(auto& shape) { return shape.role_name; }
};

// An undefined role is not an error: it has no policies.
template <class Of>
Result<policy::Entity> entity_named(const Identities& identities, const std::string& name) {
  if (Of::kKind == EntityKind::role)
    return static_cast<policy::Entity>(role_or_undefined(identities, name));
  return *TRY(policy::entity_of(identities, Of::kKind, name));
}

template <class Of>
void add_inline_policies(OperationTable& table, const Services& services) {
  using Put = typename Of::Put;
  using Get = typename Of::Get;
  using Delete = typename Of::Delete;
  using List = typename Of::List;
  add_edit<Put>(table, services, false,
                [](Identities& next, const Context&,
                   const typename Put::Input& in) -> Outcome<typename Put::Output> {
                  auto document = TRY(document_in(*in.policy_document, policy::PolicyKind::identity,
                                                  policy::kDocumentBytesMax));
                  TRY(policy::put_inline_policy(next, Of::kKind, *Of::name(in), *in.policy_name,
                                                std::move(document)));
                  return typename Put::Output{};
                });
  add_read<Get>(table, services,
                [](const Identities& identities, const Context&,
                   const typename Get::Input& in) -> Result<typename Get::Output> {
                  typename Get::Output out;
                  const auto* document = TRY(policy::inline_policy_of(
                      identities, Of::kKind, *Of::name(in), *in.policy_name));
                  Of::name(out) = *Of::name(in);
                  out.policy_name = *in.policy_name;
                  out.policy_document = percent_encode(document->text);
                  return out;
                });
  add_change<Delete>(table, services, [](Identities& next, const typename Delete::Input& in) {
    return policy::remove_inline_policy(next, Of::kKind, *Of::name(in), *in.policy_name);
  });
  add_read<List>(table, services,
                 [](const Identities& identities, const Context&,
                    const typename List::Input& in) -> Result<typename List::Output> {
                   std::vector<std::string> names;
                   for (const auto& [name, document] :
                        TRY(entity_named<Of>(identities, *Of::name(in))).inline_policies)
                     names.push_back(name);
                   typename List::Output out;
                   out.policy_names = TRY(page_of(in, std::move(names), std::identity(), out));
                   return out;
                 });
}

template <class Of>
void add_attachments(OperationTable& table, const Services& services) {
  using Attach = typename Of::Attach;
  using Detach = typename Of::Detach;
  using ListAttached = typename Of::ListAttached;
  add_change<Attach>(table, services, [](Identities& next, const typename Attach::Input& in) {
    return policy::attach_policy(next, Of::kKind, *Of::name(in), *in.policy_arn);
  });
  add_change<Detach>(table, services, [](Identities& next, const typename Detach::Input& in) {
    return policy::detach_policy(next, Of::kKind, *Of::name(in), *in.policy_arn);
  });
  add_read<ListAttached>(
      table, services,
      [](const Identities& identities, const Context&,
         const typename ListAttached::Input& in) -> Result<typename ListAttached::Output> {
        std::vector<iam::AttachedPolicy> all;
        for (const std::string& arn : TRY(entity_named<Of>(identities, *Of::name(in))).attached) {
          const auto* managed = identities.find_policy(arn);
          const std::string path = managed ? managed->path : "/";
          if (!has_prefix(path, in.path_prefix)) continue;
          all.push_back({.policy_name = arn.substr(arn.rfind('/') + 1), .policy_arn = arn});
        }
        typename ListAttached::Output out;
        out.attached_policies = TRY(page_of(
            in, std::move(all), [](const iam::AttachedPolicy& each) { return *each.policy_arn; },
            out));
        return out;
      });
}

}  // namespace

void add_entity_policies(OperationTable& table, const Services& services) {
  add_inline_policies<UserPolicies>(table, services);
  add_inline_policies<GroupPolicies>(table, services);
  add_inline_policies<RolePolicies>(table, services);
  add_attachments<UserPolicies>(table, services);
  add_attachments<GroupPolicies>(table, services);
  add_attachments<RolePolicies>(table, services);
}

}  // namespace trainyard::api::iam
