// Wires the campaigns of a server: their files in the data directory, their catalogue, how they reach regions.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "campaign/campaigns.hpp"
#include "campaign/capacity.hpp"
#include "launch/launcher.hpp"
#include "objects/objects.hpp"
#include "signing/signing.hpp"
#include "trainyard/config.hpp"
#include "trainyard/data_directory.hpp"

namespace trainyard::apps {

// The machines of the config, as a region tells of them.
std::vector<campaign::Room> rooms_of(const std::vector<launch::Machine>& machines);

// `own_endpoint`: of this server; `own_keys`: the owner's, read for each client that is opened. Campaigns are clients of it, for regions of others too: it passes their requests on.
// Data is copied between stores directly. Lifetime: `objects`, `clock` and `random` outlive it.
Result<std::unique_ptr<campaign::Campaigns>> open_campaigns(const Config& config, const DataDirectory& data,
                                                            const std::string& own_endpoint,
                                                            std::function<signing::Keys()> own_keys,
                                                            objects::Objects& objects, Clock& clock,
                                                            Random& random);

}  // namespace trainyard::apps
