// Implements the operations on the access keys of users. Only CreateAccessKey's response contains
// the secret.
#include "iam/common.hpp"

namespace trainyard::api::iam {
namespace {

constexpr std::string_view kActive = "Active", kInactive = "Inactive";

// Returns the user in the request, or the caller.
Outcome<std::string> user_in(const Context& context, const std::optional<std::string>& name) {
  if (name) return *name;
  if (!context.principal.role_arn.empty())
    return Failure{400, "ValidationError",
                   "Must specify userName when calling with non-User credentials"};
  return context.principal.name;
}

std::string status_of(const policy::AccessKey& key) {
  return std::string(key.active ? kActive : kInactive);
}

Outcome<iam::CreateAccessKeyResponse> create_key(IdentityStore& store, Identities& next,
                                                 const Context& context,
                                                 const iam::CreateAccessKeyRequest& in) {
  policy::AccessKey key = store.make_key(TRY(user_in(context, in.user_name)), context.now);
  iam::CreateAccessKeyResponse out;
  out.access_key = iam::AccessKey{.user_name = key.user,
                                  .access_key_id = key.id,
                                  .status = status_of(key),
                                  .secret_access_key = key.secret,
                                  .create_date = key.created};
  TRY(policy::add_key(next, std::move(key)));
  return out;
}

Outcome<iam::ListAccessKeysResponse> list_keys(const Services& services, const Context& context,
                                               const iam::ListAccessKeysRequest& in) {
  const auto identities = services.identities->snapshot();
  const std::string user = TRY(user_in(context, in.user_name));
  const auto keys = policy::keys_of(*identities, user);
  // Keys in the configuration file may belong to users without a record.
  if (keys.empty())
    if (const auto known = policy::user_of(*identities, user); !known)
      return iam_failure(known.error());
  std::vector<iam::AccessKeyMetadata> all;
  for (const policy::AccessKey* key : keys)
    all.push_back({.user_name = key->user,
                   .access_key_id = key->id,
                   .status = status_of(*key),
                   .create_date = key->created});
  iam::ListAccessKeysResponse out;
  auto page = page_of(
      in, std::move(all), [](const auto& key) { return *key.access_key_id; }, out);
  if (!page) return iam_failure(page.error());
  out.access_key_metadata = *std::move(page);
  return out;
}

Outcome<iam::GetAccessKeyLastUsedResponse> last_used(const Services& services,
                                                     const iam::GetAccessKeyLastUsedRequest& in) {
  const auto identities = services.identities->snapshot();
  const auto key = policy::key_of(*identities, *in.access_key_id);
  if (!key) return iam_failure(key.error());
  iam::GetAccessKeyLastUsedResponse out;
  out.user_name = (*key)->user;
  out.access_key_last_used = iam::AccessKeyLastUsed{.service_name = "N/A", .region = "N/A"};
  if (const auto use = services.identities->last_use((*key)->id))
    out.access_key_last_used = iam::AccessKeyLastUsed{
        .last_used_date = use->at, .service_name = use->service, .region = use->region};
  return out;
}

}  // namespace

void add_keys(OperationTable& table, const Services& services) {
  add_edit<iam::CreateAccessKey>(
      table, services, false,
      [&services](Identities& next, const Context& context, const iam::CreateAccessKeyRequest& in) {
        return create_key(*services.identities, next, context, in);
      });
  table.add<iam::ListAccessKeys>(
      [&services](const Context& context, const iam::ListAccessKeysRequest& in) {
        return list_keys(services, context, in);
      });
  add_edit<iam::UpdateAccessKey>(
      table, services, false,
      [](Identities& next, const Context& context,
         const iam::UpdateAccessKeyRequest& in) -> Outcome<iam::UpdateAccessKey::Output> {
        const std::string user = TRY(user_in(context, in.user_name));
        TRY(policy::set_key_active(next, user, *in.access_key_id, *in.status == kActive));
        return iam::UpdateAccessKey::Output{};
      });
  add_edit<iam::DeleteAccessKey>(
      table, services, true,
      [](Identities& next, const Context& context,
         const iam::DeleteAccessKeyRequest& in) -> Outcome<iam::DeleteAccessKey::Output> {
        const std::string user = TRY(user_in(context, in.user_name));
        TRY(policy::remove_key(next, user, *in.access_key_id));
        return iam::DeleteAccessKey::Output{};
      });
  table.add<iam::GetAccessKeyLastUsed>(
      [&services](const Context&, const iam::GetAccessKeyLastUsedRequest& in) {
        return last_used(services, in);
      });
}

}  // namespace trainyard::api::iam
