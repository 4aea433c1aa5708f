// Wires the campaigns of a server: their files in the data directory, their catalogue, and their
// access to regions.
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

// The machines of the config, in the form in which a region reports them.
std::vector<campaign::MachineCapacity> capacities_of(const std::vector<launch::Machine>& machines);

// Opens the campaigns. `own_endpoint` is this server's. Campaigns are clients of this server, with
// the rights of the users that started them. It forwards their requests to regions on other
// servers, also those for data.
// Lifetime: `access`, `clock` and `random` outlive it.
Result<std::unique_ptr<campaign::Campaigns>> open_campaigns(const config::Config& config,
                                                            const DataDirectory& data,
                                                            const std::string& own_endpoint,
                                                            const api::DelegatedAccess& access,
                                                            Clock& clock, Random& random);

}  // namespace trainyard::apps
