#include "launch/kubernetes/gang_objects.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "launch/nodes/host_order.hpp"

namespace trainyard::launch {
namespace {

KubernetesJobSettings pod_settings() {
  KubernetesJobSettings settings;
  settings.mark = "3fa91c";
  settings.name_space = "training";
  settings.image = "registry.lan/trainyard:1";
  settings.program_directory = "/opt/trainyard/bin";
  settings.pool = *networks::parse_subnet("10.201.0.0/16");
  settings.stop_grace = 90s;
  return settings;
}

std::vector<KubernetesNode> two_kubernetes_nodes() {
  std::vector<KubernetesNode> nodes(2);
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].name = "n" + std::to_string(i + 1);
    nodes[i].ready = true;
    nodes[i].allocatable = {16'000, int64_t{1} << 30, 4};
  }
  return nodes;
}

Gang pods_on(const std::vector<std::string>& machines) {
  Gang gang;
  gang.attempt = {17, 1};
  gang.token = "secret";
  for (const auto& machine : machines)
    gang.members.push_back({{machine, {1.5, 100 << 20, 0}}, R"({"token":"secret"})"});
  return gang;
}

GangObjects planned(const Gang& gang, const KubernetesJobSettings& settings = pod_settings()) {
  auto objects = plan_objects(settings, gang, two_kubernetes_nodes(), "SEAL");
  EXPECT_TRUE(objects) << objects.error().message;
  return objects ? *objects : GangObjects{};
}

HostOrder order_in(const Json& secret, const std::string& key) {
  auto order = read_host_order(*from_base64(secret["data"][key].get<std::string>()));
  EXPECT_TRUE(order) << order.error().message;
  return order ? *order : HostOrder{};
}

TEST(GangObjects, HaveAJobThatReplacesNoPod) {
  const Json job = planned(pods_on({"n1", "n2"})).job;
  EXPECT_EQ(job["metadata"]["name"], "trainyard-3fa91c-j17a1");
  EXPECT_EQ(job["metadata"]["namespace"], "training");
  EXPECT_EQ(job["metadata"]["labels"][kServerLabel], "3fa91c");
  EXPECT_EQ(job["metadata"]["labels"][kAttemptLabel], "j17a1");
  EXPECT_EQ(job["metadata"]["annotations"][kSealAnnotation], "SEAL");
  const Json& spec = job["spec"];
  EXPECT_EQ(spec["completionMode"], "Indexed");
  EXPECT_EQ(spec["completions"], 2);
  EXPECT_EQ(spec["parallelism"], 2);
  EXPECT_EQ(spec["backoffLimitPerIndex"], 0);
  EXPECT_EQ(spec["suspend"], true);
  EXPECT_EQ(spec["template"]["spec"]["restartPolicy"], "Never");
  EXPECT_EQ(spec["template"]["spec"]["automountServiceAccountToken"], false);
  EXPECT_EQ(spec["template"]["spec"]["terminationGracePeriodSeconds"], 150);
}

TEST(GangObjects, RestrictPodsToTheChosenNodes) {
  const Json pod = planned(pods_on({"n2", "n2"})).job["spec"]["template"]["spec"];
  const Json& terms = pod["affinity"]["nodeAffinity"]
                         ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  ASSERT_EQ(terms.size(), 1u);
  EXPECT_EQ(terms[0]["matchFields"][0]["values"], Json::array({"n2"}));
  EXPECT_EQ(planned(pods_on({"n1", "n2"}))
                .job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
                    ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
                .size(),
            2u);
}

TEST(GangObjects, RequestTheResourcesOfTheLargestHostForEachPod) {
  Gang gang = pods_on({"n1", "n2"});
  gang.members[1].share = {3, 200 << 20, 0};
  const Json container = planned(gang).job["spec"]["template"]["spec"]["containers"][0];
  EXPECT_EQ(container["resources"]["requests"]["cpu"], "3000m");
  EXPECT_EQ(container["resources"]["requests"]["memory"], std::to_string(200 << 20));
  EXPECT_FALSE(container["resources"].contains("limits"));
  gang.members[0].share.gpus = 2;
  EXPECT_EQ(planned(gang).job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"],
            Json({{"nvidia.com/gpu", "2"}}));
}

TEST(GangObjects, HaveTheOrderOfEachHostInASecret) {
  const auto objects = planned(pods_on({"n1", "n2"}));
  ASSERT_EQ(objects.secret["data"].size(), 2u);
  const HostOrder first = order_in(objects.secret, "0"), second = order_in(objects.secret, "1");
  EXPECT_EQ(first.host, 0u);
  EXPECT_EQ(second.host, 1u);
  EXPECT_EQ(second.order, R"({"token":"secret"})");
  EXPECT_EQ(second.own_address, "trainyard-3fa91c-j17a1-1.trainyard-3fa91c-j17a1");
  EXPECT_EQ(second.peers,
            (std::vector<std::string>{"trainyard-3fa91c-j17a1-0.trainyard-3fa91c-j17a1"}));
  EXPECT_NE(first.record.network.gateway, second.record.network.gateway);
  EXPECT_EQ(first.host_table, second.host_table);
}

TEST(GangObjects, HaveTheTokenOnlyInTheSecret) {
  Gang gang = pods_on({"n1"});
  gang.token = gang.members[0].order = "T0KEN";
  const auto objects = planned(gang);
  EXPECT_EQ(dump(objects.job).find("T0KEN"), std::string::npos);
  EXPECT_EQ(dump(objects.service).find("T0KEN"), std::string::npos);
}

TEST(GangObjects, IsolateThePodsOfGangs) {
  const auto objects = planned(pods_on({"n1", "n2"}));
  const Json& policy = objects.network_policy;
  EXPECT_EQ(policy["metadata"], objects.secret["metadata"]);
  const Json labels = objects.job["spec"]["template"]["metadata"]["labels"];
  EXPECT_EQ(policy["spec"]["podSelector"]["matchLabels"], labels);
  EXPECT_EQ(policy["spec"]["policyTypes"], Json::array({"Ingress"}));
  EXPECT_EQ(policy["spec"]["ingress"],
            Json::array({Json::object(
                {{"from", Json::array({{{"podSelector", {{"matchLabels", labels}}}}})},
                 {"ports", Json::array({{{"protocol", "UDP"}, {"port", 4789}}})}})}));
  EXPECT_EQ(planned(pods_on({"n1"})).network_policy["spec"]["ingress"], Json::array())
      << "a single host receives nothing";
}

TEST(GangObjects, MountDirectoriesForJobs) {
  auto settings = pod_settings();
  settings.mounts = {{"/srv/a", {"claimed", ""}}, {"/srv/b", {"", "/mnt/b"}}};
  const Json pod = planned(pods_on({"n1"}), settings).job["spec"]["template"]["spec"];
  const Json& volumes = pod["volumes"];
  ASSERT_EQ(volumes.size(), 4u);
  EXPECT_EQ(volumes[2]["persistentVolumeClaim"]["claimName"], "claimed");
  EXPECT_EQ(volumes[3]["hostPath"]["path"], "/mnt/b");
  const Json& mounts = pod["containers"][0]["volumeMounts"];
  ASSERT_EQ(mounts.size(), 4u);
  EXPECT_EQ(mounts[3], Json({{"name", volumes[3]["name"]}, {"mountPath", "/srv/b"}}));
}

TEST(GangObjects, UseThePlacementsOfQueueAndInstanceType) {
  auto settings = pod_settings();
  settings.placement.node_selector = {{"pool", "small"}};
  settings.placement.tolerations = {{"dedicated", "training", "NoSchedule"}};
  settings.of_queues["urgent"].priority_class = "high";
  settings.of_queues["urgent"].local_queue = "team";
  settings.of_instance_types["ml.c5.large"].node_selector = {{"pool", "large"}};
  Gang gang = pods_on({"n1"});
  gang.queue = "urgent";
  gang.instance_type = "ml.c5.large";
  gang.run_time_max = 90min;
  const Json job = planned(gang, settings).job;
  EXPECT_EQ(placement_of(settings, gang.queue, gang.instance_type).local_queue, "team");
  EXPECT_FALSE(job["metadata"]["labels"].contains(kLocalQueueLabel)) << "it is submitted later";
  const Json& pod = job["spec"]["template"]["spec"];
  EXPECT_EQ(pod["nodeSelector"], Json({{"pool", "large"}}));
  EXPECT_EQ(pod["priorityClassName"], "high");
  EXPECT_EQ(pod["tolerations"], Json::parse(R"([{"key":"dedicated","value":"training",
      "effect":"NoSchedule","operator":"Equal"}])"));
  EXPECT_EQ(pod["activeDeadlineSeconds"], 120 * 60);
}

TEST(GangObjects, CannotBeMadeForUnsupportedGangs) {
  const auto message_of = [](const Gang& gang) {
    const auto objects = plan_objects(pod_settings(), gang, two_kubernetes_nodes(), "SEAL");
    return objects ? "" : objects.error().message;
  };
  EXPECT_NE(message_of(pods_on({"n3"})).find("does not list the node 'n3'"), std::string::npos);
  EXPECT_FALSE(message_of(pods_on({})).empty());
  Gang gang = pods_on({"n1", "n1"});
  gang.members[0].share.cpus = 9;
  EXPECT_NE(message_of(gang).find("n1 cannot have 2 pods"), std::string::npos);
  gang = pods_on({"n1"});
  gang.members[0].share.gpus = 5;
  EXPECT_NE(message_of(gang).find("n1 cannot have 1 pods"), std::string::npos);
  gang = pods_on({"n1", "n2"});
  gang.members[0].order = std::string(600'000, 'x');
  gang.members[1].order = std::string(600'000, 'y');
  EXPECT_NE(message_of(gang).find("a Secret of Kubernetes holds at most"), std::string::npos);
}

TEST(GangObjects, HaveTheSharedPartOfLargeOrdersOnce) {
  const std::string environment(600'000, 'x');
  Gang gang = pods_on({"n1", "n2"});
  for (size_t host = 0; host < gang.members.size(); ++host)
    gang.members[host].order = dump(Json{{"environment", environment}, {"host", host}}, 2) + "\n";
  const auto objects = *plan_objects(pod_settings(), gang, two_kubernetes_nodes(), "SEAL");
  const Json& data = objects.secret["data"];
  ASSERT_EQ(data.size(), 3u);
  const auto value = [&](const char* key) { return *from_base64(data[key].get<std::string>()); };
  for (const char* host : {"0", "1"}) {
    const auto order = join_order(value(kSharedOrderFile), value(host));
    ASSERT_TRUE(order) << order.error().message;
    EXPECT_EQ(std::to_string(order->host), host);
    EXPECT_EQ(order->order, gang.members[order->host].order);
  }
}

TEST(GangObjects, AdmitsNodesByLabelsAndTaints) {
  KubernetesNode node;
  node.labels = {{"pool", "large"}};
  KubernetesPlacement placement;
  EXPECT_TRUE(admits(node, placement));
  placement.node_selector = {{"pool", "large"}};
  EXPECT_TRUE(admits(node, placement));
  node.taints = {{"dedicated", "training", "NoSchedule"}, {"old", "", "PreferNoSchedule"}};
  EXPECT_FALSE(admits(node, placement));
  placement.tolerations = {{"dedicated", "other", ""}};
  EXPECT_FALSE(admits(node, placement));
  placement.tolerations.push_back({"dedicated", "", "NoSchedule"});
  EXPECT_TRUE(admits(node, placement));
  placement.node_selector["pool"] = "small";
  EXPECT_FALSE(admits(node, placement));
}

}  // namespace
}  // namespace trainyard::launch
