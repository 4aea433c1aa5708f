#include "batch_api/conversions.hpp"
#include "batch_api/nodes.hpp"

#include <gtest/gtest.h>

#include "base/json.hpp"
#include "batch/arn.hpp"
#include "batch/limits.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;

TEST(BatchParameters, ReplaceTheirReferences) {
  const std::map<std::string, std::string> parameters{
      {"in", "s3://b/k"}, {"in2", "two"}, {"a-b_c", "x"}};
  struct Row {
    std::string word, with;
  };
  for (const Row& row :
       {Row{"Ref::in", "s3://b/k"}, Row{"--in=Ref::in,Ref::in2", "--in=s3://b/k,two"},
        Row{"Ref::out", "Ref::out"}, Row{"Ref::a-b_c.", "x."}, Row{"Ref::", "Ref::"}, Row{"", ""},
        Row{"plain", "plain"}})
    EXPECT_EQ(with_parameters(row.word, parameters), row.with);
}

batch::RegisterJobDefinitionRequest container(std::vector<std::string> command = {"echo",
                                                                                  "Ref::word"}) {
  batch::RegisterJobDefinitionRequest request;
  request.job_definition_name = "train";
  request.type = "container";
  request.container_properties.emplace();
  request.container_properties->image = "machine";
  request.container_properties->command = std::move(command);
  request.container_properties->vcpus = 2;  // the deprecated members
  request.container_properties->memory = 64;
  return request;
}

const Settings& settings() {
  static const Settings all = [] {
    Settings made;
    made.volumes["/fsx"] = {"/srv/fsx", "", "", false};
    made.volumes["/data"] = {"/srv/data", "", "", true};
    made.volumes["/scratch"] = {"", "", "", false};
    made.file_systems["fs-1"] = {"/srv/efs", "EFS", "", false};
    made.devices = {"/dev/fuse"};
    return made;
  }();
  return all;
}

batch::SubmitJobRequest job() {
  batch::SubmitJobRequest request;
  request.job_name = "one";
  request.job_queue = "q";
  request.job_definition = "train";
  return request;
}

Outcome<domain::JobSpec> spec_of(const batch::SubmitJobRequest& request,
                                 const batch::RegisterJobDefinitionRequest& from = container()) {
  auto definition = definition_of(from, "eu-west-1");
  if (!definition) return std::move(definition).error();
  definition->revision = 3;
  return batch_spec_of(request, *definition, "q", "eu-west-1", "123456789012", "the-id",
                       settings());
}

std::string refusal(const Outcome<domain::JobSpec>& outcome) {
  return outcome ? "" : outcome.failure(shapes::batch::kService).message;
}

TEST(BatchSpec, HasTheArgumentsAndResourcesOfTheRequest) {
  auto request = job();
  request.parameters.emplace()["word"] = "hello";
  request.container_overrides.emplace();
  request.container_overrides->resource_requirements.emplace();
  batch::ResourceRequirement gpus;
  gpus.type = "GPU";
  gpus.value = "1";
  request.container_overrides->resource_requirements->push_back(gpus);
  const auto spec = spec_of(request);
  ASSERT_TRUE(spec) << refusal(spec);
  EXPECT_EQ((*spec).arguments, (std::vector<std::string>{"echo", "hello"}));
  ASSERT_EQ((*spec).hosts(), 1u);
  const domain::InstanceGroup& group = (*spec).group(0);
  EXPECT_EQ(group.instance_type, "2 vCPU, 64 MiB, 1 GPU");
  EXPECT_EQ(group.share->cpus, 2);
  EXPECT_EQ(group.share->memory_bytes, 64 << 20);
  EXPECT_EQ(group.share->gpus, 1);
  EXPECT_EQ((*spec).role_arn, "arn:aws:iam::123456789012:role/ecsInstanceRole")
      << "never the owner's own keys";
  EXPECT_EQ((*spec).max_runtime_seconds, catalog::kRuntimeSecondsMax);
  EXPECT_EQ((*spec).definition, "arn:aws:batch:eu-west-1:123456789012:job-definition/train:3");
}

TEST(BatchSpec, ListsMembersWithoutEffectInItsNotes) {
  auto definition = container();
  EXPECT_TRUE((*spec_of(job(), definition)).notes.empty());
  definition.container_properties->execution_role_arn = "arn:aws:iam::123456789012:role/pull";
  definition.container_properties->network_configuration.emplace().assign_public_ip = "ENABLED";
  const auto spec = spec_of(job(), definition);
  ASSERT_TRUE(spec) << refusal(spec);
  ASSERT_EQ((*spec).notes.size(), 2u);
  EXPECT_TRUE((*spec).notes[0].starts_with("executionRoleArn has no effect here: "));
  EXPECT_TRUE((*spec).notes[1].starts_with("networkConfiguration has no effect here: "));
}

TEST(BatchSpec, RequestSettingsOverrideTheDefinition) {
  auto definition = container();
  definition.timeout.emplace();
  definition.timeout->attempt_duration_seconds = 100;
  definition.retry_strategy.emplace();
  definition.retry_strategy->attempts = 2;
  auto request = job();
  EXPECT_EQ((*spec_of(request, definition)).max_runtime_seconds, 100);
  EXPECT_EQ((*spec_of(request, definition)).retry.attempts_max, 2u);
  request.timeout = definition.timeout;
  request.timeout->attempt_duration_seconds = 60;
  request.retry_strategy = definition.retry_strategy;
  request.retry_strategy->attempts = 5;
  EXPECT_EQ((*spec_of(request, definition)).max_runtime_seconds, 60);
  EXPECT_EQ((*spec_of(request, definition)).retry.attempts_max, 5u);
}

batch::ResourceRequirement requirement(const std::string& type, const std::string& value) {
  batch::ResourceRequirement made;
  made.type = type;
  made.value = value;
  return made;
}

// "vcpus memory TYPE=VALUE .." of a described job.
std::string described_resources(const Outcome<domain::JobSpec>& spec) {
  if (!spec) return refusal(spec);
  const Json& container = (*spec).request["container"];
  std::string text;
  for (const char* member : {"vcpus", "memory"})
    text += container.contains(member) ? dump(container[member]) + " " : "- ";
  for (const Json& each : container.value("resourceRequirements", Json::array()))
    text += each["type"].get<std::string>() + "=" + each["value"].get<std::string>() + " ";
  return text;
}

TEST(BatchSpec, OverridesKeepTheFormOfTheDefinition) {
  auto request = job();
  auto& overrides = request.container_overrides.emplace();
  EXPECT_EQ(described_resources(spec_of(request)), "2 64 ");
  overrides.vcpus = 3;
  EXPECT_EQ(described_resources(spec_of(request)), "3 64 ");
  overrides.vcpus.reset();
  overrides.resource_requirements = {requirement("VCPU", "4")};
  EXPECT_EQ(described_resources(spec_of(request)), "4 64 VCPU=4 ");
  EXPECT_EQ((*spec_of(request)).group(0).share->cpus, 4);

  auto definition = container();
  definition.container_properties->vcpus.reset();
  definition.container_properties->memory.reset();
  definition.container_properties->resource_requirements = {requirement("VCPU", "0.25"),
                                                            requirement("MEMORY", "64")};
  EXPECT_EQ(described_resources(spec_of(request, definition)), "- - MEMORY=64 VCPU=4 ");
  overrides.resource_requirements.reset();
  overrides.memory = 128;
  EXPECT_EQ(described_resources(spec_of(request, definition)),
            "This value was submitted in a deprecated key and may conflict with the value provided "
            "by the job definition's resource requirements. Override MEMORY in "
            "containerOverrides.resourceRequirements");
}

TEST(BatchSpec, AcceptsRetryActionsInAnyCase) {
  auto request = job();
  auto& strategy = request.retry_strategy.emplace();
  strategy.attempts = 3;
  strategy.evaluate_on_exit.emplace(1);
  for (const auto& [action, retry] : {std::pair{"EXIT", false},
                                      {"exit", false},
                                      {"Exit", false},
                                      {"RETRY", true},
                                      {"retry", true}}) {
    strategy.evaluate_on_exit->front().action = action;
    const auto spec = spec_of(request);
    ASSERT_TRUE(spec) << refusal(spec);
    EXPECT_EQ((*spec).retry.rules.front().retry, retry) << action;
  }
  strategy.evaluate_on_exit->front().action = "stop";
  EXPECT_EQ(refusal(spec_of(request)),
            "retryStrategy.evaluateOnExit.action must be RETRY or EXIT, not 'stop'");
}

std::string refusal_of_types(std::vector<std::string> types) {
  batch::CreateComputeEnvironmentRequest request;
  request.compute_environment_name = "c";
  request.type = "MANAGED";
  auto& resources = request.compute_resources.emplace();
  resources.type = "EC2";
  resources.maxv_cpus = 4;
  resources.instance_types = std::move(types);
  const auto made = environment_of(request, "eu-west-1");
  return made ? "" : made.failure(shapes::batch::kService).message;
}

TEST(ComputeEnvironment, AcceptsTheInstanceTypesOfAws) {
  for (const char* type : {"optimal", "default_x86_64", "default_arm64", "m5", "c7i-flex",
                           "p3dn.24xlarge", "t2.micro", "c5.metal"})
    EXPECT_EQ(refusal_of_types({type}), "");
  EXPECT_EQ(refusal_of_types({}), "");
  EXPECT_EQ(refusal_of_types({"m5.large", "m5.larg"}),
            "Error executing request, Exception : Instance type can only be one of [optimal, "
            "default_x86_64, default_arm64, a family such as m5, a type such as m5.large], not "
            "'m5.larg'. Did you mean m5.large?");
  EXPECT_TRUE(refusal_of_types({"Optimal"}).ends_with("Did you mean optimal?"));
  EXPECT_TRUE(refusal_of_types({"ml.m5.large"}).ends_with("Did you mean m5.large?"))
      << refusal_of_types({"ml.m5.large"});
  EXPECT_TRUE(refusal_of_types({""}).ends_with("not ''")) << refusal_of_types({""});
}

TEST(ComputeEnvironment, CanBeChangedDespiteAStoredUnknownInstanceType) {
  catalog::ComputeEnvironment present;
  present.key = {"eu-west-1", "c"};
  present.request = {{"type", "MANAGED"},
                     {"computeResources", {{"maxvCpus", 4}, {"instanceTypes", {"m5.larg"}}}}};
  batch::UpdateComputeEnvironmentRequest request;
  request.compute_environment = "c";
  request.state = "DISABLED";
  EXPECT_TRUE(environment_of(request, present));
  request.compute_resources.emplace().instance_types = std::vector<std::string>{"m6.larg"};
  EXPECT_FALSE(environment_of(request, present));
}

TEST(BatchSpec, RejectsUnsupportedJobsWithAnExplanation) {
  auto definition = container();
  definition.container_properties->privileged = true;
  EXPECT_EQ(refusal(spec_of(job(), definition)),
            "A privileged container cannot be run by this server: root in a container is always an "
            "unprivileged user of its machine; leave privileged out");
  auto request = job();
  request.share_identifier = "a-b";
  EXPECT_NE(refusal(spec_of(request)).find("letters and numbers"), std::string::npos);
  request = job();
  request.job_name = "a b";
  EXPECT_NE(refusal(spec_of(request)).find("jobName 'a b'"), std::string::npos);
}

batch::JobDependency dependency(const char* id, const char* type) {
  batch::JobDependency dependency;
  if (*id != 0) dependency.job_id = id;
  if (*type != 0) dependency.type = type;
  return dependency;
}

TEST(BatchSpec, ReadsTheDependenciesOfArrays) {
  auto request = job();
  request.array_properties.emplace().size = 3;
  request.depends_on.emplace();
  for (const auto& each :
       {dependency("a", ""), dependency("", "SEQUENTIAL"), dependency("b", "N_TO_N"),
        dependency("arn:aws:batch:eu-west-1:123456789012:job/c", "N_TO_N")})
    request.depends_on->push_back(each);
  const auto spec = spec_of(request);
  ASSERT_TRUE(spec) << refusal(spec);
  EXPECT_EQ((*spec).array.size, 3u);
  EXPECT_TRUE((*spec).array.sequential);
  EXPECT_EQ((*spec).depends_on, std::vector<std::string>{"a"});
  EXPECT_EQ((*spec).depends_on_alike, (std::vector<std::string>{"b", "c"}));
}

TEST(BatchSpec, RejectsUnsupportedArraysWithAnExplanation) {
  for (const int64_t size : {0, 1, 10'001, -3}) {
    auto request = job();
    request.array_properties.emplace().size = size;
    EXPECT_EQ(refusal(spec_of(request)),
              "arrayProperties.size must be between 2 and 10000, not " + std::to_string(size));
  }
  struct Row {
    bool array;
    const char *id, *type, *said;
  };
  for (const Row& row :
       {Row{false, "", "SEQUENTIAL", "this job has no arrayProperties"},
        Row{false, "a", "N_TO_N", "this job has no arrayProperties"},
        Row{true, "a", "SEQUENTIAL", "has no jobId"}, Row{true, "", "N_TO_N", "needs a jobId"},
        Row{true, "", "", "needs a jobId"}}) {
    auto request = job();
    if (row.array) request.array_properties.emplace().size = 2;
    request.depends_on.emplace().push_back(dependency(row.id, row.type));
    EXPECT_NE(refusal(spec_of(request)).find(row.said), std::string::npos) << row.said;
  }
}

batch::Volume volume(const std::string& name, const std::string& path) {
  batch::Volume volume;
  volume.name = name;
  if (!path.empty()) volume.host.emplace().source_path = path;
  return volume;
}
batch::MountPoint mounted(const std::string& name, const std::string& path,
                          bool read_only = false) {
  batch::MountPoint point;
  point.source_volume = name;
  point.container_path = path;
  point.read_only = read_only;
  return point;
}

TEST(BatchSpec, FindsVolumesInTheConfigOrOnTheHost) {
  struct Row {
    std::string source, at;
    bool read_only;
    domain::VolumeKind kind;
    std::string name, path;
    std::string why;  // "" = accepted
  };
  using enum domain::VolumeKind;
  for (const Row& row :
       {Row{"/fsx", "/fsx", false, shared, "/fsx", "", ""},
        Row{"/fsx/a//b/", "/x/", false, shared, "/fsx", "a/b", ""},
        Row{"/data/y", "/y", true, shared, "/data", "y", ""},
        Row{"/scratch", "/s", false, own, "/scratch", "", ""},
        Row{"/scratch/t", "/s", false, own, "/scratch/t", "", ""},
        Row{"", "/s", false, own, "v", "", ""},
        Row{"/data", "/y", false, shared, "", "", "is read-only by this server's config"},
        Row{"/fsx2", "/y", false, shared, "", "", "[volumes.\"/fsx2\"]"},
        Row{"/etc", "/y", false, shared, "", "", "it has: /data, /fsx, /scratch"},
        Row{"/fsx/../etc", "/y", false, shared, "", "", "without .."},
        Row{"fsx", "/y", false, shared, "", "", "absolute path"},
        Row{"/fsx", "y", false, shared, "", "", "containerPath"},
        Row{"/fsx", "/", false, shared, "", "", "containerPath"}}) {
    auto definition = container();
    definition.container_properties->volumes.emplace().push_back(volume("v", row.source));
    definition.container_properties->mount_points.emplace().push_back(
        mounted("v", row.at, row.read_only));
    const auto spec = spec_of(job(), definition);
    ASSERT_EQ(bool(spec), row.why.empty()) << row.source << " " << refusal(spec);
    if (!spec) {
      EXPECT_NE(refusal(spec).find(row.why), std::string::npos) << refusal(spec);
      continue;
    }
    const auto& given = (*spec).group(0).container_options.volumes.at(0);
    EXPECT_EQ(given.kind, row.kind) << row.source;
    EXPECT_EQ(given.name, row.name);
    EXPECT_EQ(given.path, row.path);
    EXPECT_EQ(given.read_only, row.read_only);
  }
}

batch::RegisterJobDefinitionRequest nodes(int64_t count, int64_t main,
                                          std::vector<std::string> ranges) {
  batch::RegisterJobDefinitionRequest request;
  request.job_definition_name = "nodes";
  request.type = "multinode";
  request.node_properties.emplace();
  request.node_properties->num_nodes = count;
  request.node_properties->main_node = main;
  request.node_properties->node_range_properties.emplace();
  for (const auto& range : ranges) {
    batch::NodeRangeProperty one;
    one.target_nodes = range;
    one.container = container({range, "Ref::word"}).container_properties;
    request.node_properties->node_range_properties->push_back(one);
  }
  return request;
}

TEST(BatchSpec, ConvertsRangesOfNodesToGroupsOfHosts) {
  auto request = job();
  request.parameters.emplace()["word"] = "hello";
  const auto spec = spec_of(request, nodes(6, 2, {"0:", "2:3"}));
  ASSERT_TRUE(spec) << refusal(spec);
  EXPECT_EQ((*spec).main_host(), 2u);
  ASSERT_EQ((*spec).groups.size(), 3u);
  std::string merged;
  for (const auto& group : (*spec).groups)
    merged += group.name + " x " + std::to_string(group.count) + " of " +
              group.program->arguments[0] + " " + group.program->arguments[1] + "; ";
  EXPECT_EQ(merged, "0:1 x 2 of 0: hello; 2:3 x 2 of 2:3 hello; 4:5 x 2 of 0: hello; ");
  EXPECT_EQ((*spec).arguments[0], "2:3") << "what its main node runs";
  EXPECT_EQ((*spec).request["nodeProperties"]["nodeRangeProperties"].size(), 2u)
      << "as they were written";
}

TEST(BatchSpec, SplitsRangesOfNodesAtOverrides) {
  auto request = job();
  request.node_overrides.emplace();
  request.node_overrides->num_nodes = 5;
  batch::NodePropertyOverride change;
  change.target_nodes = "1:2";
  change.container_overrides.emplace().command = {"changed"};
  request.node_overrides->node_property_overrides.emplace().push_back(change);
  const auto spec = spec_of(request, nodes(2, 0, {"0", "1:"}));
  ASSERT_TRUE(spec) << refusal(spec);
  std::string merged;
  for (const auto& group : (*spec).groups)
    merged += group.name + " " + group.program->arguments[0] + "; ";
  EXPECT_EQ(merged, "0:0 0; 1:2 changed; 3:4 1:; ");
  EXPECT_EQ((*spec).hosts(), 5u);
  EXPECT_NE(refusal(spec_of(request, nodes(2, 0, {"0:1"}))).find("has no end"), std::string::npos);
  request.node_overrides->node_property_overrides->front().target_nodes = "5:";
  EXPECT_NE(refusal(spec_of(request, nodes(2, 0, {"0:"}))).find("goes beyond"), std::string::npos);
  request = job();
  request.node_overrides.emplace();
  EXPECT_NE(refusal(spec_of(request)).find("nodeOverrides are for multi-node parallel jobs"),
            std::string::npos);
  request = job();
  request.container_overrides.emplace();
  EXPECT_NE(refusal(spec_of(request, nodes(2, 0, {"0:"}))).find("takes nodeOverrides"),
            std::string::npos);
}

TEST(BatchNodes, DescribesEachNode) {
  const auto spec = spec_of(job(), nodes(3, 1, {"0:", "2"}));
  ASSERT_TRUE(spec);
  domain::Job made;
  made.key = {"eu-west-1", "the-id"};
  made.account = "123456789012";
  made.spec = *spec;
  auto whole = describe(made);
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->container);
  EXPECT_EQ(whole->node_properties->num_nodes, 3);
  EXPECT_EQ(*summary_of_batch(made).node_properties->num_nodes, 3);
  for (domain::HostIndex host = 0; host < 3; ++host) {
    const auto node = describe_node(made, host);
    ASSERT_TRUE(node);
    EXPECT_EQ(*node->job_id, "the-id#" + std::to_string(host));
    EXPECT_EQ(*node->node_details->is_main_node, host == 1);
    EXPECT_EQ(node->container->command->front(), host == 2 ? "2" : "0:");
    EXPECT_EQ(*node->status, "RUNNABLE");
    EXPECT_FALSE(node->node_properties);
    EXPECT_EQ(*summary_of_node(made, host).node_properties->node_index, int64_t(host));
  }
}

TEST(BatchNodes, ShowsAddressesAsNetworkInterfaces) {
  const auto spec = spec_of(job(), nodes(3, 1, {"0:"}));
  ASSERT_TRUE(spec);
  domain::Job made;
  made.key = {"eu-west-1", "the-id"};
  made.account = "123456789012";
  made.spec = *spec;
  made.state = domain::JobState::active;
  made.attempts.emplace_back().hosts.resize(3);
  made.attempts[0].hosts[0].address = "10.1.0.2";
  made.attempts[0].hosts[1].address = "fd00::2";
  const auto first = *describe_node(made, 0)->container->network_interfaces;
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].private_ipv4_address, "10.1.0.2");
  EXPECT_FALSE(first[0].ipv6_address);
  EXPECT_EQ(first[0].attachment_id->size(), 36u);
  EXPECT_EQ(first[0].attachment_id,
            describe_node(made, 0)->container->network_interfaces->at(0).attachment_id);
  const auto second = *describe_node(made, 1)->container->network_interfaces;
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].ipv6_address, "fd00::2");
  EXPECT_NE(second[0].attachment_id, first[0].attachment_id);
  EXPECT_TRUE(describe_node(made, 2)->container->network_interfaces->empty()) << "not known yet";
}

TEST(BatchSpec, OverridesConsumableResourcesAndPriorityByTheRequest) {
  auto definition = container();
  definition.scheduling_priority = 3;
  batch::ConsumableResourceRequirement licences;
  licences.consumable_resource =
      catalog::arn_of("123456789012", "eu-west-1", catalog::kResourceArn, "licences");
  licences.quantity = 2;
  definition.consumable_resource_properties.emplace().consumable_resource_list = {licences};
  const auto kept = spec_of(job(), definition);
  ASSERT_TRUE(kept) << refusal(kept);
  EXPECT_EQ((*kept).queue->priority, 3);
  ASSERT_EQ((*kept).queue->consumes.size(), 1u);
  EXPECT_EQ((*kept).queue->consumes[0].resource, "licences");
  EXPECT_EQ((*kept).queue->consumes[0].quantity, 2);
  auto request = job();
  request.share_identifier = "UserA";
  request.scheduling_priority_override = 9;
  licences.quantity = 5;
  request.consumable_resource_properties_override.emplace().consumable_resource_list = {licences};
  const auto changed = spec_of(request, definition);
  ASSERT_TRUE(changed) << refusal(changed);
  EXPECT_EQ((*changed).queue->share, "UserA");
  EXPECT_EQ((*changed).queue->priority, 9);
  EXPECT_EQ((*changed).queue->consumes[0].quantity, 5);
  request.scheduling_priority_override = 10'000;
  EXPECT_NE(refusal(spec_of(request, definition)).find("between 0 and 9999"), std::string::npos);
  request.scheduling_priority_override = 1;
  request.consumable_resource_properties_override->consumable_resource_list->push_back(licences);
  EXPECT_NE(refusal(spec_of(request, definition)).find("twice"), std::string::npos);
}

TEST(BatchSpec, RejectsInvalidSizes) {
  for (const auto& [type, value, said] :
       {std::tuple("VCPU", "none", "VCPU must be a number above 0"),
        std::tuple("VCPU", "0", "above 0"), std::tuple("VCPU", "nan", "above 0"),
        std::tuple("MEMORY", "3", "at least 4"), std::tuple("MEMORY", "1.5", "whole number"),
        std::tuple("GPU", "0", "at least 1")}) {
    auto request = job();
    request.container_overrides.emplace();
    request.container_overrides->resource_requirements.emplace();
    batch::ResourceRequirement each;
    each.type = type;
    each.value = value;
    request.container_overrides->resource_requirements->push_back(each);
    EXPECT_NE(refusal(spec_of(request)).find(said), std::string::npos) << type << " " << value;
  }
}

TEST(BatchQueue, SortsEnvironmentsByTheirOrder) {
  batch::CreateJobQueueRequest request;
  request.job_queue_name = "q";
  request.priority = 1;
  request.compute_environment_order.emplace();
  for (const auto& [order, name] : {std::pair(5, "late"), std::pair(1, "early")}) {
    batch::ComputeEnvironmentOrder each;
    each.order = order;
    each.compute_environment =
        catalog::arn_of("123456789012", "eu-west-1", catalog::kEnvironmentArn, name);
    request.compute_environment_order->push_back(each);
  }
  const auto queue = queue_of(request, "eu-west-1");
  ASSERT_TRUE(queue);
  EXPECT_EQ((*queue).environments, (std::vector<std::string>{"early", "late"}));
  request.compute_environment_order->back().compute_environment = "late";
  EXPECT_FALSE(queue_of(request, "eu-west-1")) << "named twice";
}

}  // namespace
}  // namespace trainyard::api::batch_api
