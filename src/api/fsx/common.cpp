#include "fsx/common.hpp"

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "protocol/json.hpp"

namespace trainyard::api::fsx {
namespace {

constexpr size_t kTagKeyCharactersMax = 128, kTagValueCharactersMax = 256;  // as AWS

struct FaultRow {
  file_systems::Fault fault;
  std::string_view code;
};
constexpr FaultRow kFaults[] = {
    {file_systems::Fault::bad_request, "BadRequest"},
    {file_systems::Fault::incompatible_parameter, "IncompatibleParameterError"},
    {file_systems::Fault::invalid_import_path, "InvalidImportPath"},
    {file_systems::Fault::invalid_export_path, "InvalidExportPath"},
    {file_systems::Fault::invalid_throughput, "InvalidPerUnitStorageThroughput"},
    {file_systems::Fault::unsupported, "UnsupportedOperation"},
    {file_systems::Fault::limit_exceeded, "ServiceLimitExceeded"},
    {file_systems::Fault::file_system_missing, "FileSystemNotFound"},
    {file_systems::Fault::association_missing, "DataRepositoryAssociationNotFound"},
    {file_systems::Fault::task_missing, "DataRepositoryTaskNotFound"},
    {file_systems::Fault::task_executing, "DataRepositoryTaskExecuting"},
    {file_systems::Fault::task_ended, "DataRepositoryTaskEnded"},
};

}  // namespace

Failure failure_of_fsx(const Error& error) {
  for (const FaultRow& row : kFaults)
    if (error.is(row.fault)) return fsx_failure(row.code, error.message);
  return failure_of(aws::kService, error);
}

Outcome<file_systems::FileSystems*> file_systems_of(const Services& services) {
  if (!services.file_systems) return bad_request("FSx is not offered by this server");
  if (const auto& why = services.file_systems->settings().not_offered; !why.empty())
    return bad_request("FSx is not offered by this server: " + why);
  return services.file_systems;
}

std::string digest_of(const shapes::Shape& shape, const void* request) {
  std::string text;
  write_json(shape, request, text);
  return to_hex(bytes_of(sha256(text)));
}

Outcome<Done> add_tags(file_systems::Tags& tags, const std::vector<aws::Tag>& added) {
  for (const aws::Tag& tag : added) {
    const std::string key = tag.key.value_or(""), value = tag.value.value_or("");
    if (key.empty() || count_characters(key) > kTagKeyCharactersMax)
      return bad_request("A tag's key has 1 to 128 characters");
    if (count_characters(value) > kTagValueCharactersMax)
      return bad_request("A tag's value has at most 256 characters");
    if (to_lower(key).starts_with("aws:"))
      return bad_request("Tag keys that begin with 'aws:' are reserved");
    tags[key] = value;
  }
  if (tags.size() > kTagsMax)
    return bad_request("The maximum number of tags per resource is " + std::to_string(kTagsMax));
  return Done{};
}

Outcome<file_systems::Tags> tags_of(const std::optional<std::vector<aws::Tag>>& requested) {
  file_systems::Tags tags;
  if (requested) TRY(add_tags(tags, *requested));
  return tags;
}

std::string lifecycle_text(file_systems::Lifecycle lifecycle) {
  return to_upper(file_systems::kLifecycles.text(lifecycle));
}

Outcome<file_systems::AutoImport> auto_import_of(const std::string& policy) {
  const auto parsed = file_systems::kAutoImports.parse(policy);
  if (parsed) return *parsed;
  return unsupported_member("AutoImportPolicy " + policy,
                            "files whose objects were deleted stay; use NEW_CHANGED");
}
std::string text_of(file_systems::AutoImport automatic) {
  return std::string(file_systems::kAutoImports.text(automatic));
}

Outcome<Done> check_bucket(const Services& services, const std::string& path, std::string_view code,
                           const std::string& message) {
  const auto at = file_systems::parse_repository(path);
  if (!at) return fsx_failure(code, message + ": " + at.error().message);
  const auto found = services.objects.head_bucket(at->bucket);
  if (found) return Done{};
  if (found.error().kind == Kind::unavailable) return found.error();
  return fsx_failure(code, message + ": " + found.error().message);
}

}  // namespace trainyard::api::fsx
