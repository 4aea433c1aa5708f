#include "contract/entry.hpp"

#include "base/complete_record.hpp"
#include "base/json.hpp"

namespace trainyard::contract {
namespace {

constexpr auto kEntryConfig = complete(json_record<EntryConfig>(
    "host.json",
    [](auto& side, auto& entry_config) {
      side("gang_secret", entry_config.gang_secret);
      side("cpus", entry_config.cpus);
    },
    [](const EntryConfig& entry_config) -> Result<void> {
      if (!(entry_config.cpus >= 0 && entry_config.cpus <= kEntryCpusMax))
        return invalid("invalid cpus: " + Json(entry_config.cpus).dump() + " is not within 0 to " +
                       Json(kEntryCpusMax).dump());
      return {};
    }));

}  // namespace

std::string write_entry_config(const EntryConfig& entry_config) {
  return dump(kEntryConfig.write(entry_config));
}

Result<EntryConfig> read_entry_config(std::string_view json) {
  const auto document = TRY(parse_json(json).in("host.json"));
  return TRY(kEntryConfig.read(document).in("host.json"));
}

}  // namespace trainyard::contract
