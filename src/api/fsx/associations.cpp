// Implements the operations on data repository associations.
#include <algorithm>

#include "fsx/common.hpp"
#include "operations/fsx_tags.hpp"

namespace trainyard::api::fsx {
namespace {

using file_systems::Association;
using file_systems::AutoImport;
using file_systems::Lifecycle;

constexpr size_t kAssociationIdBytes = 8;  // random, after the "0" with which AWS's ids begin

Failure no_association(const std::string& id) {
  return fsx_failure("DataRepositoryAssociationNotFound",
                     "Data repository association '" + shorten(id, 60) + "' does not exist.");
}

aws::DataRepositoryAssociation to_shape(const Context& context, const Association& each) {
  aws::DataRepositoryAssociation out;
  out.association_id = each.id;
  out.resource_arn = fsx_arn(context.region, context.principal.account,
                             "association/" + each.file_system + "/" + each.id);
  out.file_system_id = each.file_system;
  out.lifecycle = lifecycle_text(each.lifecycle);
  if (!each.failure.empty()) out.failure_details = {.message = each.failure};
  out.file_system_path = "/" + each.path;
  out.data_repository_path = each.repository;
  out.batch_import_meta_data_on_create = each.import_on_create;
  out.imported_file_chunk_size = each.chunk_mib;
  std::vector<std::string> events;
  if (each.auto_import != AutoImport::none) events.push_back("NEW");
  if (each.auto_import == AutoImport::added_changed) events.push_back("CHANGED");
  if (!events.empty()) {
    out.s3.emplace().auto_import_policy.emplace().events = std::move(events);
  }
  out.tags = shown_tags<aws::Tag>(each.tags);
  out.creation_time = each.created;
  return out;
}

// Returns the automatic imports of a configuration's events.
Outcome<AutoImport> auto_import_of_events(const aws::S3DataRepositoryConfiguration& s3) {
  if (s3.auto_export_policy && s3.auto_export_policy->events &&
      !s3.auto_export_policy->events->empty())
    return unsupported_member("AutoExportPolicy",
                              "use data repository tasks of EXPORT_TO_REPOSITORY");
  if (!s3.auto_import_policy || !s3.auto_import_policy->events) return AutoImport::none;
  const auto& events = *s3.auto_import_policy->events;
  const auto has = [&](std::string_view event) {
    return std::ranges::find(events, event) != events.end();
  };
  if (has("DELETED"))
    return unsupported_member("The event DELETED of AutoImportPolicy",
                              "files whose objects were deleted stay");
  if (has("CHANGED") && !has("NEW"))
    return unsupported_member("The event CHANGED of AutoImportPolicy without NEW", "add NEW");
  if (!has("NEW")) return AutoImport::none;
  return has("CHANGED") ? AutoImport::added_changed : AutoImport::added;
}

Outcome<Association> association_of(const Services& services, const Context& context,
                                    const aws::CreateDataRepositoryAssociationRequest& in) {
  if (!in.file_system_path) return bad_request("FileSystemPath is required");
  Association out;
  out.id = "dra-0" + services.random.hex(kAssociationIdBytes);
  out.file_system = *in.file_system_id;
  out.mark = mark_of<aws::CreateDataRepositoryAssociation>(in);
  out.created = context.now;
  if (!in.file_system_path->starts_with('/'))
    return bad_request("FileSystemPath must begin with /");
  out.path = TRY(with_fsx_failure(file_systems::parse_directory(*in.file_system_path)));
  out.repository = *in.data_repository_path;
  out.import_on_create = in.batch_import_meta_data_on_create.value_or(false);
  out.chunk_mib = in.imported_file_chunk_size.value_or(out.chunk_mib);
  if (in.s3) out.auto_import = TRY(auto_import_of_events(*in.s3));
  out.tags = TRY(tags_of(in.tags));
  return out;
}

Outcome<aws::CreateDataRepositoryAssociationResponse> create_association(
    const Services& services, const Context& context,
    const aws::CreateDataRepositoryAssociationRequest& in) {
  auto* all = TRY(file_systems_of(services));
  const Association requested = TRY(association_of(services, context, in));
  TRY(check_bucket(services, requested.repository, "BadRequest", "DataRepositoryPath isn't valid"));
  Association made = requested;
  std::optional<Failure> failure;
  TRY(with_fsx_failure(all->change([&](Snapshot& next) -> Result<void> {
    failure.reset();
    auto before = find_earlier_request(next.associations, context.region, requested.mark);
    if (!before) {
      failure = before.failure(aws::kService);
      return {};
    }
    if (!before->empty()) {
      made = next.associations[*before];
      return {};
    }
    TRY(file_systems::check_association(next, context.region, requested));
    next.associations[file_systems::key_of(context.region, requested.id)] = made = requested;
    return {};
  })));
  if (failure) return *failure;
  return aws::CreateDataRepositoryAssociationResponse{.association = to_shape(context, made)};
}

// Returns whether an association matches each filter, which is one of the filter's values.
Outcome<bool> passes(const Association& each, const std::vector<aws::Filter>& filters) {
  for (const aws::Filter& filter : filters) {
    const std::string name = filter.name.value_or("");
    std::string value;
    if (name == "file-system-id")
      value = each.file_system;
    else if (name == "file-system-type")
      value = "LUSTRE";
    else if (name == "data-repository-type")
      value = "S3";
    else
      return bad_request("The filter " + name + " is not offered for associations");
    const auto values = filter.values.value_or(std::vector<std::string>());
    if (std::ranges::find(values, value) == values.end()) return false;
  }
  return true;
}

Outcome<aws::DescribeDataRepositoryAssociationsResponse> describe_associations(
    const Services& services, const Context& context,
    const aws::DescribeDataRepositoryAssociationsRequest& in) {
  const auto* all = TRY(file_systems_of(services));
  const auto present = all->snapshot();
  const auto ids = in.association_ids.value_or(std::vector<std::string>());
  const auto filters = in.filters.value_or(std::vector<aws::Filter>());
  for (const std::string& id : ids)
    if (!present->associations.contains(file_systems::key_of(context.region, id)))
      return no_association(id);
  TRY(passes(Association(), filters));
  aws::DescribeDataRepositoryAssociationsResponse out;
  out.associations = TRY(page_of(
      present->associations, context.region, in.max_results, in.next_token, out.next_token,
      [&](const Association& each) {
        const auto passed = passes(each, filters);
        return passed && *passed && (ids.empty() || std::ranges::find(ids, each.id) != ids.end());
      },
      [&](const std::string&, const Association& each) { return to_shape(context, each); }));
  return out;
}

Outcome<aws::UpdateDataRepositoryAssociationResponse> update_association(
    const Services& services, const Context& context,
    const aws::UpdateDataRepositoryAssociationRequest& in) {
  auto* all = TRY(file_systems_of(services));
  std::optional<AutoImport> automatic;
  if (in.s3) automatic = TRY(auto_import_of_events(*in.s3));
  std::optional<Failure> failure;
  Association after;
  TRY(all->change([&](Snapshot& next) -> Result<void> {
    failure.reset();
    const auto found =
        next.associations.find(file_systems::key_of(context.region, *in.association_id));
    if (found == next.associations.end()) {
      failure = no_association(*in.association_id);
    } else if (found->second.lifecycle != Lifecycle::available) {
      failure = bad_request("Data repository association " + found->second.id +
                            " is not in the AVAILABLE lifecycle state");
    } else {
      if (automatic) found->second.auto_import = *automatic;
      if (in.imported_file_chunk_size) found->second.chunk_mib = *in.imported_file_chunk_size;
      after = found->second;
    }
    return {};
  }));
  if (failure) return *failure;
  return aws::UpdateDataRepositoryAssociationResponse{.association = to_shape(context, after)};
}

Outcome<aws::DeleteDataRepositoryAssociationResponse> delete_association(
    const Services& services, const Context& context,
    const aws::DeleteDataRepositoryAssociationRequest& in) {
  auto* all = TRY(file_systems_of(services));
  const bool with_files = in.delete_data_in_file_system.value_or(false);
  bool found_it = false;
  TRY(all->change([&](Snapshot& next) -> Result<void> {
    const auto found =
        next.associations.find(file_systems::key_of(context.region, *in.association_id));
    found_it = found != next.associations.end();
    if (!found_it || found->second.lifecycle == Lifecycle::deleting) return {};
    found->second.lifecycle = Lifecycle::deleting;
    found->second.delete_files = with_files;
    return {};
  }));
  if (!found_it) return no_association(*in.association_id);
  aws::DeleteDataRepositoryAssociationResponse out;
  out.association_id = *in.association_id;
  out.lifecycle = lifecycle_text(Lifecycle::deleting);
  out.delete_data_in_file_system = with_files;
  return out;
}

}  // namespace

void add_associations(OperationTable& table, const Services& services) {
  table.add<aws::CreateDataRepositoryAssociation>(
      [&](const Context& context, const aws::CreateDataRepositoryAssociationRequest& in) {
        return create_association(services, context, in);
      });
  table.add<aws::DescribeDataRepositoryAssociations>(
      [&](const Context& context, const aws::DescribeDataRepositoryAssociationsRequest& in) {
        return describe_associations(services, context, in);
      });
  table.add<aws::UpdateDataRepositoryAssociation>(
      [&](const Context& context, const aws::UpdateDataRepositoryAssociationRequest& in) {
        return update_association(services, context, in);
      });
  table.add<aws::DeleteDataRepositoryAssociation>(
      [&](const Context& context, const aws::DeleteDataRepositoryAssociationRequest& in) {
        return delete_association(services, context, in);
      });
}

}  // namespace trainyard::api::fsx
