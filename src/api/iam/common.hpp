// Declares the helpers of IAM's operations: reads and changes of identities, pages, and failures.
//
// Threads: pure functions; the registered operations run on stream threads.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "iam/operations.hpp"
#include "operations/identity_store.hpp"
#include "policy/identities.hpp"
#include "policy/identity_changes.hpp"
#include "policy/policy.hpp"
#include "shapes/iam.hpp"

namespace trainyard::api::iam {

namespace iam = shapes::iam;
using policy::EntityKind;
using policy::Identities;

// Converts an error to IAM's failure. `of_removal`: the operation deletes, so a conflict becomes a
// DeleteConflict.
Failure iam_failure(const Error& error, bool of_removal = false);

// Parses a policy document. Errors: MalformedPolicyDocument, LimitExceeded.
Outcome<policy::Document> document_in(const std::string& text, policy::PolicyKind kind,
                                      size_t bytes_max);

// `read`, `edit` and `change` below are functions of these types, or lambdas that convert:
//   read:   (const Identities&, const Context&, const Input&) -> Result<Output>
//   edit:   (Identities&, const Context&, const Input&) -> Outcome<Output>
//   change: (Identities&, const Input&) -> Result<void>

// Adds an operation that reads the snapshot. Its errors are converted to IAM's.
template <class Operation, class Read>
void add_read(OperationTable& table, const Services& services, Read read) {
  table.add<Operation>([&services, read = std::move(read)](const Context& context,
                                                           const typename Operation::Input& in)
                           -> Outcome<typename Operation::Output> {
    Result<typename Operation::Output> output = read(*services.identities->snapshot(), context, in);
    if (!output) return iam_failure(output.error());
    return *std::move(output);
  });
}

// Adds an operation that changes a copy of the snapshot. The changed copy is then made durable.
template <class Operation, class Edit>
void add_edit(OperationTable& table, const Services& services, bool removal, Edit edit) {
  table.add<Operation>(
      [&services, removal, edit = std::move(edit)](
          const Context& context,
          const typename Operation::Input& in) -> Outcome<typename Operation::Output> {
        std::optional<Outcome<typename Operation::Output>> outcome;
        const auto changed = services.identities->change([&](Identities& next) -> Result<void> {
          outcome.emplace(edit(next, context, in));
          if (!*outcome) return cancelled("the change was rejected");
          return {};
        });
        if (!*outcome) {
          auto why = std::move(*outcome).error();
          if (const Error* error = std::get_if<Error>(&why)) return iam_failure(*error, removal);
          return std::get<Failure>(std::move(why));
        }
        if (!changed) return iam_failure(changed.error());
        return std::move(*outcome).value();
      });
}

// Adds an operation that changes a copy of the snapshot and has an empty output.
template <class Operation, class Change>
void add_change(OperationTable& table, const Services& services, Change change) {
  const bool removal = std::string_view(Operation::shape().name).starts_with("Delete");
  add_edit<Operation>(
      table, services, removal,
      [change = std::move(change)](
          Identities& next, const Context&,
          const typename Operation::Input& in) -> Outcome<typename Operation::Output> {
        TRY(change(next, in));
        return typename Operation::Output{};
      });
}

inline constexpr int64_t kItemsDefault = 100;  // in a page

// PageOrder has the items of a page, as positions in the whole list, ordered by key.
struct PageOrder {
  std::vector<size_t> positions;
  bool truncated = false;
};
// Orders keys, and returns at most `max` of them after the marker. Errors: invalid (the marker).
Result<PageOrder> page_order(std::vector<std::string> keys,
                             const std::optional<std::string>& marker, size_t max);

// Returns a page of `all` in the order of keys: at most max_items items after the marker.
template <class In, class Item, class Key, class Out>
Result<std::vector<Item>> page_of(const In& in, std::vector<Item> all, Key key, Out& out) {
  std::vector<std::string> keys;
  for (const Item& item : all) keys.emplace_back(std::invoke(key, item));
  const PageOrder order =
      TRY(page_order(std::move(keys), in.marker, size_t(in.max_items.value_or(kItemsDefault))));
  std::vector<Item> page;
  for (const size_t at : order.positions) page.push_back(std::move(all[at]));
  out.is_truncated = order.truncated;
  if (order.truncated) out.marker = std::string(std::invoke(key, page.back()));
  return page;
}

bool has_prefix(const std::string& path, const std::optional<std::string>& prefix);

std::optional<std::vector<iam::Tag>> shown_tags(const std::vector<policy::Tag>& tags);
std::vector<policy::Tag> tags_in(const std::optional<std::vector<iam::Tag>>& tags);
std::optional<iam::AttachedPermissionsBoundary> shown_boundary(const policy::Entity& entity);

void add_users(OperationTable& table, const Services& services);
void add_keys(OperationTable& table, const Services& services);
void add_roles(OperationTable& table, const Services& services);
void add_instance_profiles(OperationTable& table, const Services& services);
void add_entity_policies(OperationTable& table, const Services& services);
void add_managed_policies(OperationTable& table, const Services& services);
void add_simulation(OperationTable& table, const Services& services);
void add_sts(OperationTable& table, const Settings& settings, const Services& services);

// Describes a role. `whole`: with the members that lists leave out.
iam::Role shown_role(const Identities& identities, const policy::Role& role, bool whole);
// Makes the built-in role for an undefined name (auth/README.md).
policy::Role undefined_role(const std::string& account, const std::string& name);
// Returns the role, or the built-in role if it is not defined. Errors: none.
policy::Role role_or_undefined(const Identities& identities, const std::string& name);

}  // namespace trainyard::api::iam
