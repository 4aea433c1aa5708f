#include "contract/entry.hpp"

#include "base/complete_record.hpp"
#include "base/json.hpp"

namespace trainyard::contract {
namespace {

constexpr auto kEntryTold = complete(json_record<EntryTold>(
    "host.json",
    [](auto& side, auto& told) {
      side("gang_secret", told.gang_secret);
      side("cpus", told.cpus);
    },
    [](const EntryTold& told) -> Result<void> {
      if (!(told.cpus >= 0 && told.cpus <= kEntryCpusMax))
        return invalid("invalid cpus: " + Json(told.cpus).dump() + " is not within 0 to " +
                       Json(kEntryCpusMax).dump());
      return {};
    }));

}  // namespace

std::string write_entry_told(const EntryTold& told) { return dump(kEntryTold.write(told)); }

Result<EntryTold> read_entry_told(std::string_view json) {
  const auto document = TRY(parse_json(json).in("host.json"));
  return TRY(kEntryTold.read(document).in("host.json"));
}

}  // namespace trainyard::contract
