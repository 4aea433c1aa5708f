// Declares the helpers of EC2's operations: reading and changing the networks of the request's
// region, finding resources by id, and tags.
//
// Threads: pure functions; the registered operations run on stream threads.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ec2/failures.hpp"
#include "ec2/listing.hpp"
#include "ec2/network_store.hpp"
#include "ec2/networks.hpp"
#include "operations/services.hpp"
#include "operations/table.hpp"
#include "operations/tags.hpp"
#include "shapes/ec2.hpp"

namespace trainyard::api::ec2 {

// -- operations

// Shared by all operations; the table, which is destroyed last, is the last owner.
using Store = std::shared_ptr<NetworkStore>;

// Edit gives an operation the networks of its region, to change.
struct Edit {
  Networks& networks;
  const Context& context;
  const MakeId& make_id;
};

// A dry run ends after the principal's permission has been checked, as on AWS.
template <class In>
std::optional<Failure> dry_run(const In& in) {
  if constexpr (requires { in.dry_run; })
    if (in.dry_run.value_or(false))
      return Failure{412, "DryRunOperation",
                     "Request would have succeeded, but DryRun flag is set."};
  return std::nullopt;
}

// `read`: (const Networks&, const Context&, const Input&) -> Outcome<Output>.
template <class Operation, class Read>
void add_read(OperationTable& table, const Store& store, Read read) {
  table.add<Operation>(
      [store, read = std::move(read)](
          const Context& context,
          const typename Operation::Input& in) -> Outcome<typename Operation::Output> {
        if (auto dry = dry_run(in)) return *std::move(dry);
        return read(*store->snapshot(context.region), context, in);
      });
}

// `change`: (const Edit&, const Input&) -> Outcome<Output>.
template <class Operation, class Change>
void add_change(OperationTable& table, const Store& store, Change change) {
  table.add<Operation>([store, change = std::move(change)](const Context& context,
                                                           const typename Operation::Input& in)
                           -> Outcome<typename Operation::Output> {
    if (auto dry = dry_run(in)) return *std::move(dry);
    std::optional<Outcome<typename Operation::Output>> outcome;
    const auto changed =
        store->change(context.region, [&](Networks& next, const MakeId& make_id) -> Result<void> {
          outcome.emplace(change(Edit{next, context, make_id}, in));
          if (!*outcome) return cancelled("the change was rejected");
          return {};
        });
    if (*outcome && !changed) return changed.error();
    return *std::move(outcome);
  });
}

// -- resources by id

template <class T>
Outcome<T*> find(ById<T>& all, const IdForm& form, const std::string& id) {
  const auto found = all.find(id);
  if (found == all.end()) return invalid_id(form, id);
  return &found->second;
}
template <class T>
Outcome<const T*> find(const ById<T>& all, const IdForm& form, const std::string& id) {
  const auto found = all.find(id);
  if (found == all.end()) return invalid_id(form, id);
  return &found->second;
}

using Ids = std::optional<std::vector<std::string>>;

// Returns whether a Describe request selects the item: it names the item, or it names none.
inline bool is_wanted(const Ids& ids, const std::string& id) {
  return !ids || ids->empty() || std::ranges::find(*ids, id) != ids->end();
}

// Returns the resources that a Describe request names, or all if it names none.
template <class T>
Outcome<std::vector<const T*>> named(const ById<T>& all, const IdForm& form, const Ids& ids) {
  std::vector<const T*> found;
  if (!ids || ids->empty()) {
    for (const auto& [id, each] : all) found.push_back(&each);
    return found;
  }
  for (const std::string& id : *ids) {
    const T* each = TRY(find(all, form, id));
    if (std::ranges::find(found, each) == found.end()) found.push_back(each);
  }
  return found;
}

std::string arn_of(const Context& context, std::string_view type, const std::string& id);

// -- tags

inline constexpr size_t kTagsMax = 50;  // of one resource, as AWS
// Puts tags on a resource that has `tags`. Errors: InvalidParameterValue, TagLimitExceeded.
Outcome<Done> add_tags(Tags& tags, const std::vector<aws::Tag>& added);
// Returns the tags that a request gives to a new resource of this type.
Outcome<Tags> tags_for(const IdForm& form,
                       const std::optional<std::vector<aws::TagSpecification>>& specifications);

// -- security groups

// Finds a group by its id, or by its name in the default VPC.
Outcome<SecurityGroup*> group_of(Networks& networks, const std::optional<std::string>& id,
                                 const std::optional<std::string>& name);
// Returns the rules of one direction. Rules with the same protocol and ports become one permission.
std::vector<aws::IpPermission> shown_permissions(const Context& context, const SecurityGroup& group,
                                                 bool egress);

void add_vpcs(OperationTable& table, const Store& store);
void add_subnets(OperationTable& table, const Store& store);
void add_security_groups(OperationTable& table, const Store& store);
void add_security_group_rules(OperationTable& table, const Store& store);
void add_internet_gateways(OperationTable& table, const Store& store);
void add_route_tables(OperationTable& table, const Store& store);
void add_tag_operations(OperationTable& table, const Store& store);
void add_instances(OperationTable& table, const Store& store);
void add_account(OperationTable& table, const Store& store, const Settings& settings);
void add_instance_types(OperationTable& table, const Store& store, const Settings& settings);

}  // namespace trainyard::api::ec2
