// Wires the campaigns of a server: connects them to their files in the data directory, their
// catalogue, and the APIs of their regions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "auth/delegated_access.hpp"
#include "base/result.hpp"
#include "campaign/campaigns.hpp"
#include "campaign/capacity.hpp"
#include "config/config.hpp"
#include "launch/launcher.hpp"
#include "trainyard/data_directory.hpp"

namespace trainyard::apps {

// Converts machines to the form in which campaigns see the capacity of a region.
std::vector<campaign::MachineCapacity> capacities_of(const std::vector<launch::Machine>& machines);

// Opens the campaigns. They are clients of this server (`own_endpoint`), with the permissions of
// the users that started them. The server forwards their requests for regions on other servers,
// including requests for objects. Lifetime: `access`, `clock` and `random` outlive it.
Result<std::unique_ptr<campaign::Campaigns>> open_campaigns(const config::Config& config,
                                                            const DataDirectory& data,
                                                            const std::string& own_endpoint,
                                                            const api::DelegatedAccess& access,
                                                            Clock& clock, Random& random);

}  // namespace trainyard::apps
