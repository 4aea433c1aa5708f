// Converts multi-node parallel jobs: ranges of nodes to groups of hosts, and hosts to descriptions
// of nodes.
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

// Checks the required properties of a definition.
Outcome<Done> check_nodes(const shapes::batch::NodeProperties& properties);

struct Nodes {
  uint32_t main = 0;
  std::vector<domain::InstanceGroup> groups;  // of nodes with the same container, by index
  int64_t volume_gib = 1;
  std::string role_arn;                      // all nodes have it; "" = none
  shapes::batch::NodeProperties properties;  // with overrides and parameters, for descriptions
};
// Converts the nodes of a definition. Requires: check_nodes(properties). `overrides`: the
// request's.
Outcome<Nodes> nodes_of(const shapes::batch::NodeProperties& properties,
                        const std::optional<shapes::batch::NodeOverrides>& overrides,
                        const std::map<std::string, std::string>& parameters,
                        const Settings& settings, const std::string& region);

// Describes node `host` like a job. Requires: job.spec.main_host(), host < job.spec.hosts().
Result<shapes::batch::JobDetail> describe_node(const domain::Job& job, domain::HostIndex host);
shapes::batch::JobSummary summary_of_node(const domain::Job& job, domain::HostIndex host);

}  // namespace trainyard::api::batch_api
