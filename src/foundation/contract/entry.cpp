#include "contract/entry.hpp"

#include "base/json.hpp"

namespace trainyard::contract {

std::string write_entry_told(const EntryTold& told) {
  return dump(Json{{"gang_secret", told.gang_secret}, {"cpus", told.cpus}});
}

Result<EntryTold> read_entry_told(std::string_view json) {
  const auto document = TRY(parse_json(json).in("host.json"));
  EntryTold told;
  told.gang_secret = TRY(string_at(document, "gang_secret").in("host.json"));
  told.cpus = TRY(double_at(document, "cpus").in("host.json"));
  if (!(told.cpus >= 0 && told.cpus <= kEntryCpusMax))
    return invalid("host.json: invalid cpus: " + document["cpus"].dump() + " is not within 0 to " +
                   Json(kEntryCpusMax).dump());
  return told;
}

}  // namespace trainyard::contract
