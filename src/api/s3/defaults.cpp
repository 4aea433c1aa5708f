// Implements the operations on settings that this server's buckets and objects cannot have. Reads
// return what S3 returns for a new bucket: infrastructure tools read all settings before they
// change a bucket.
#include "s3/common.hpp"

namespace trainyard::api::s3 {
namespace {

namespace s3 = shapes::s3;

// Checks that the bucket, and the object if the request names one, exist.
template <class Input>
std::optional<Failure> check_target(objects::Objects& objects, const Context& context,
                                    const Input& in) {
  if (auto failure = check_owner(context, in.expected_bucket_owner)) return failure;
  if constexpr (requires { in.key; }) {
    if (auto failure = check_version(in.version_id)) return failure;
    if (const auto info = objects.head(*in.bucket, *in.key); !info)
      return s3_failure_of(info.error(), *in.bucket, *in.key);
  } else if (const auto info = objects.head_bucket(*in.bucket); !info) {
    return s3_failure_of(info.error(), *in.bucket, "");
  }
  return std::nullopt;
}

// Adds a read that returns the same for every bucket or object.
template <class Operation>
void add_constant(OperationTable& table, objects::Objects& objects,
                  typename Operation::Output output = {}) {
  table.add<Operation>(
      [&objects, output](
          const Context& context,
          const typename Operation::Input& in) -> Outcome<typename Operation::Output> {
        if (auto failure = check_target(objects, context, in)) return *failure;
        return output;
      });
}

// Adds a read of a setting whose absence is an error on S3.
template <class Operation>
void add_absent(OperationTable& table, objects::Objects& objects, int status, std::string code,
                std::string message) {
  Failure absent = s3_failure(status, std::move(code), std::move(message));
  table.add<Operation>(
      [&objects, absent](
          const Context& context,
          const typename Operation::Input& in) -> Outcome<typename Operation::Output> {
        if (auto failure = check_target(objects, context, in)) return *failure;
        Failure failure = absent;
        failure.resource = *in.bucket;
        return failure;
      });
}

// Returns the access list of a bucket or an object: full control for the account.
template <class Operation>
void add_owners_acl(OperationTable& table, objects::Objects& objects) {
  table.add<Operation>([&objects](const Context& context, const typename Operation::Input& in)
                           -> Outcome<typename Operation::Output> {
    if (auto failure = check_target(objects, context, in)) return *failure;
    const std::string& account = context.principal.account;
    typename Operation::Output out;
    out.owner = s3::Owner{.id = account};
    out.grants.emplace().push_back({.grantee = s3::Grantee{.id = account, .type = "CanonicalUser"},
                                    .permission = "FULL_CONTROL"});
    return out;
  });
}

// Checks a write of an access list: it may give access to the owner only.
template <class Operation>
void add_acl_check(OperationTable& table, objects::Objects& objects) {
  table.add<Operation>(
      [&objects](const Context& context,
                 const typename Operation::Input& in) -> Outcome<typename Operation::Output> {
        if (auto failure = check_target(objects, context, in)) return *failure;
        const bool by_header = in.grant_full_control || in.grant_read || in.grant_read_acp ||
                               in.grant_write || in.grant_write_acp;
        if (is_of_others(in.acl) || by_header || in.access_control_policy)
          return acl_not_supported();
        return typename Operation::Output{};
      });
}

void add_object_defaults(OperationTable& table, objects::Objects& objects) {
  add_owners_acl<s3::GetObjectAcl>(table, objects);
  add_acl_check<s3::PutObjectAcl>(table, objects);
  const std::string no_lock = "Bucket is missing Object Lock Configuration";
  add_absent<s3::GetObjectLegalHold>(table, objects, 400, "InvalidRequest", no_lock);
  add_absent<s3::GetObjectRetention>(table, objects, 400, "InvalidRequest", no_lock);
}

}  // namespace

void add_defaults(OperationTable& table, objects::Objects& objects) {
  add_object_defaults(table, objects);
  add_owners_acl<s3::GetBucketAcl>(table, objects);
  add_acl_check<s3::PutBucketAcl>(table, objects);
  add_constant<s3::GetBucketVersioning>(table, objects);
  add_absent<s3::GetBucketReplication>(table, objects, 404, "ReplicationConfigurationNotFoundError",
                                       "The replication configuration was not found");
  add_absent<s3::GetObjectLockConfiguration>(
      table, objects, 404, "ObjectLockConfigurationNotFoundError",
      "Object Lock configuration does not exist for this bucket");
}

}  // namespace trainyard::api::s3
