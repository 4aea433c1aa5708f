// Converts multi-node parallel jobs: ranges of nodes become groups of hosts, and hosts are described as nodes.
//
// Threads: pure functions. Errors: ClientException, naming the member.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "domain/job.hpp"
#include "operations/services.hpp"
#include "protocol/errors.hpp"
#include "shapes/batch.hpp"

namespace trainyard::api::batch_api {

// What must be in a definition.
Outcome<Done> check_nodes(const shapes::batch::NodeProperties& properties);

struct Nodes {
  uint32_t main = 0;
  std::vector<domain::InstanceGroup> groups;  // nodes that run the same, in the order of their indices
  int64_t volume_gib = 1;
  std::string role_arn;                      // of all of them; "" where none is named
  shapes::batch::NodeProperties properties;  // with overrides and parameters, for descriptions
};
// `overrides`: of the request. `properties` are a definition's, checked.
Outcome<Nodes> nodes_of(const shapes::batch::NodeProperties& properties,
                        const std::optional<shapes::batch::NodeOverrides>& overrides,
                        const std::map<std::string, std::string>& parameters, const Settings& settings,
                        const std::string& region);

// Requires: job.spec.main_host().
// Node `host` of a job, as a job of its own. Requires also: host < job.spec.hosts().
Result<shapes::batch::JobDetail> describe_node(const domain::Job& job, domain::HostIndex host);
shapes::batch::JobSummary summary_of_node(const domain::Job& job, domain::HostIndex host);

}  // namespace trainyard::api::batch_api
