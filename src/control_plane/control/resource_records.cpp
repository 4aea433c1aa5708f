#include "control/resource_records.hpp"

#include <variant>

namespace trainyard::control {

ledger::ResourceRecord record_of(const batch::Resource& resource) {
  ledger::ResourceRecord record;
  record.kind = batch::kind_of(resource);
  record.key = batch::key_of(resource);
  if (const auto* definition = std::get_if<batch::JobDefinition>(&resource)) {
    record.revision = definition->revision;
    record.active = definition->active;
  }
  record.body = to_json(resource);
  return record;
}

Result<batch::Resource> resource_of(const ledger::ResourceRecord& record) {
  auto resource = batch::resource_from_json(record.kind, record.body);
  if (!resource)
    return corrupt("ledger: the record of a " + record.kind + ": " + resource.error().message);
  return resource;
}

Result<void> check_resource(const ledger::ResourceRecord& record) {
  TRY(batch::resource_from_json(record.kind, record.body));
  return {};
}

Result<batch::Catalog> catalog_of(const std::vector<ledger::ResourceRecord>& records) {
  batch::Catalog catalog;
  for (const ledger::ResourceRecord& each : records)
    batch::put(catalog, batch::ResourceChange::update, TRY(resource_of(each)));
  return catalog;
}

Result<std::vector<batch::JobDefinition>> definitions_of(
    const std::vector<ledger::ResourceRecord>& records) {
  std::vector<batch::JobDefinition> definitions;
  for (const ledger::ResourceRecord& each : records)
    definitions.push_back(std::get<batch::JobDefinition>(TRY(resource_of(each))));
  return definitions;
}

}  // namespace trainyard::control
