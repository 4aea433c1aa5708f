#include "launch/local/plan.hpp"

#include <gtest/gtest.h>

#include <set>

namespace trainyard::launch {
namespace {

networks::Subnet subnet(const char* text) { return *networks::parse_subnet(text); }

TEST(ChooseSubnet, TakesTheFirstFreeOneThatIsLargeEnough) {
  const auto pool = subnet("10.201.0.0/16");
  EXPECT_EQ(choose_subnet(pool, 1, {}, 0)->text(), "10.201.0.0/28");
  EXPECT_EQ(choose_subnet(pool, 13, {}, 0)->text(), "10.201.0.0/28");
  EXPECT_EQ(choose_subnet(pool, 14, {}, 0)->text(), "10.201.0.0/27");
  EXPECT_EQ(choose_subnet(pool, 200, {}, 0)->text(), "10.201.0.0/24");
  EXPECT_EQ(choose_subnet(pool, 2, {subnet("10.201.0.0/24")}, 0)->text(), "10.201.1.0/28");
  EXPECT_EQ(choose_subnet(pool, 200, {subnet("10.201.0.16/28")}, 0)->text(), "10.201.1.0/24");
}

TEST(ChooseSubnet, ContinuesAfterTheLastAndWrapsAround) {
  const auto pool = subnet("10.201.0.0/24");
  EXPECT_EQ(choose_subnet(pool, 1, {}, *networks::parse_address("10.201.0.32"))->text(),
            "10.201.0.32/28");
  EXPECT_EQ(choose_subnet(pool, 30, {}, *networks::parse_address("10.201.0.32"))->text(),
            "10.201.0.64/26");
  EXPECT_EQ(choose_subnet(pool, 1, {}, *networks::parse_address("10.201.1.0"))->text(),
            "10.201.0.0/28");
  EXPECT_EQ(
      choose_subnet(pool, 1, {subnet("10.201.0.240/28")}, *networks::parse_address("10.201.0.240"))
          ->text(),
      "10.201.0.0/28");
}

TEST(ChooseSubnet, NeverGivesTwoGangsTheSameAddresses) {
  const auto pool = subnet("10.201.0.0/24");
  std::vector<networks::Subnet> taken;
  for (;;) {
    const auto chosen = choose_subnet(pool, 1 + taken.size() % 20, taken, pool.base);
    if (!chosen) {
      EXPECT_EQ(chosen.error().kind, Kind::exhausted);
      break;
    }
    for (const auto& other : taken)
      EXPECT_FALSE(other.overlaps(*chosen)) << other.text() << " " << chosen->text();
    taken.push_back(*chosen);
    ASSERT_LE(taken.size(), 16u);
  }
  EXPECT_GE(taken.size(), 8u);
}

TEST(ChooseSubnet, RejectsGangsThatAreTooLarge) {
  const auto chosen = choose_subnet(subnet("10.201.0.0/28"), 14, {}, 0);
  ASSERT_FALSE(chosen);
  EXPECT_EQ(chosen.error().kind, Kind::exhausted);
}

NetworkRequest a_request() {
  NetworkRequest request;
  request.attempt = {17, 1};
  request.hosts = 2;
  request.mark = "3fa91c";
  request.namespace_directory = "/run/trainyard/3fa91c";
  request.comment = "DATA/attempts/j17a1";
  request.relays = {*networks::parse_address("169.254.170.2")};
  return request;
}

TEST(PlanNetwork, NamesEverythingByServerAndAddress) {
  const auto network = plan_network(a_request(), subnet("10.201.0.0/16"), subnet("10.201.1.16/28"));
  EXPECT_EQ(network.bridge, "ty3fa91c0110");
  EXPECT_EQ(network.table, "trainyard_3fa91c_0110");
  EXPECT_EQ(networks::to_text(network.gateway), "10.201.1.17");
  ASSERT_EQ(network.hosts.size(), 2u);
  EXPECT_EQ(network.hosts[1].link, "tv3fa91c0113");
  EXPECT_EQ(network.hosts[1].namespace_file, "/run/trainyard/3fa91c/j17a1-1");
  EXPECT_EQ(networks::to_text(network.hosts[1].address), "10.201.1.19");
  EXPECT_EQ(host_table(network), "127.0.0.1 localhost\n10.201.1.18 algo-1\n10.201.1.19 algo-2\n");
}

TEST(PlanNetwork, GivesASingleHostNoBridgeAndASharedTable) {
  auto request = a_request();
  request.hosts = 1;
  request.direct = true;
  const auto pool = subnet("10.201.0.0/16");
  const auto network = plan_network(request, pool, subnet("10.201.1.16/28"));
  EXPECT_TRUE(network.direct());
  EXPECT_EQ(network.table, "");
  EXPECT_EQ(network.hosts[0].link, "tys3fa91c0110");
  EXPECT_EQ(direct_firewall("3fa91c", pool).links, "tys3fa91c");
  EXPECT_EQ(direct_firewall("3fa91c", pool).table, "trainyard_3fa91c_one");
  const auto again = record_from_json(to_json(Record{{17, 1}, "token", network}));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->network.direct());
  const auto largest = subnet("10.0.0.0/8");
  EXPECT_LE(plan_network(request, largest, subnet("10.255.255.224/28")).hosts[0].link.size(), 15u);
}

TEST(PlanNetwork, MakesNamesThatFitTheKernelInTheLargestPool) {
  const auto network = plan_network(a_request(), subnet("10.0.0.0/8"), subnet("10.255.255.224/28"));
  EXPECT_LE(network.bridge.size(), 15u);
  EXPECT_LE(network.hosts[0].link.size(), 15u);
}

TEST(ServerMark, DiffersByDataDirectory) {
  std::set<std::string> marks;
  for (int i = 0; i < 200; i++) marks.insert(server_mark("/var/lib/trainyard" + std::to_string(i)));
  EXPECT_EQ(marks.size(), 200u);
  EXPECT_EQ(server_mark("/data"), server_mark("/data/"));
  for (const auto& mark : marks) EXPECT_EQ(mark.size(), 6u);
}

TEST(Record, IsEqualAfterWritingAndReading) {
  Record record{{17, 1},
                "secret",
                plan_network(a_request(), subnet("10.201.0.0/16"), subnet("10.201.1.16/28"))};
  record.network.isolated = true;
  const auto back = record_from_json(to_json(record));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(to_json(*back), to_json(record));
}

// This is a record of release 0.1.0.
TEST(Record, ReadsARecordOfTheFirstRelease) {
  const auto json = parse_json(
      R"({"attempt":"j17a1","bridge":"","comment":"trainyard /data/attempts/j17a1","encrypted":false,)"
      R"("gateway":"10.201.1.1","gpus":[[]],"hosts":[{"address":"10.201.1.2","link":"tys0a1b2c0100","namespace":""}],)"
      R"("isolated":false,"pool":"10.201.0.0/16","relays":["127.0.0.2"],"subnet":"10.201.1.0/29","table":"",)"
      R"("token":"secret","version":1})");
  ASSERT_TRUE(json);
  const auto record = record_from_json(*json);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->attempt, (domain::AttemptId{17, 1}));
  EXPECT_TRUE(record->network.direct());
  EXPECT_EQ(to_json(*record), *json) << "it is written unchanged";
}

TEST(Record, KeepsTheStoredFormOfAnEncryptedNetwork) {
  NetworkRequest request = a_request();
  request.encrypted = true;
  request.hosts = 2;
  const Record record{{17, 2},
                      "secret",
                      plan_network(request, subnet("10.201.0.0/16"), subnet("10.201.0.16/28")),
                      {{"/dev/nvidia0", "/dev/nvidia1"}, {}}};
  const std::string golden =
      R"({"attempt":"j17a2","bridge":"ty3fa91c0010","comment":"DATA/attempts/j17a1","encrypted":true,)"
      R"("gateway":"10.201.0.17","gpus":[["/dev/nvidia0","/dev/nvidia1"],[]],"hosts":[)"
      R"({"address":"10.201.0.26","link":"tv3fa91c0012","namespace":"/run/trainyard/3fa91c/j17a1-0","under":"10.201.0.18"},)"
      R"({"address":"10.201.0.27","link":"tv3fa91c0013","namespace":"/run/trainyard/3fa91c/j17a1-1","under":"10.201.0.19"}],)"
      R"("isolated":false,"pool":"10.201.0.0/16","relays":["169.254.170.2"],"subnet":"10.201.0.16/28",)"
      R"("table":"trainyard_3fa91c_0010","token":"secret","version":1})";
  EXPECT_EQ(dump(to_json(record)), golden);
  const auto read = record_from_json(*parse_json(golden));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(dump(to_json(*read)), golden);
}

TEST(Record, RejectsRecordsOfLaterReleases) {
  const auto of_version = [](int64_t version) {
    return record_from_json({{"version", version}, {"of a later release", true}}).error();
  };
  EXPECT_EQ(of_version(2).kind, Kind::conflict);
  EXPECT_EQ(of_version(2).message,
            "the attempt was started by a later release: its record has version 2, but this "
            "server reads versions up to 1; run the newer release");
  EXPECT_EQ(of_version(0).kind, Kind::invalid);
  EXPECT_EQ(of_version(INT64_MIN).kind, Kind::invalid);
}

TEST(Record, RejectsIncompleteRecords) {
  const Record record{
      {17, 1}, "t", plan_network(a_request(), subnet("10.201.0.0/16"), subnet("10.201.1.16/28"))};
  const Json whole = to_json(record);
  for (const auto& [name, value] : whole.items()) {
    Json less = whole;
    less.erase(name);
    EXPECT_EQ(bool(record_from_json(less)), name == "gpus" || name == "encrypted") << name;
    less[name] = Json::array({nullptr});
    EXPECT_FALSE(record_from_json(less)) << name;
  }
  for (const auto& [name, value] : whole["hosts"][0].items()) {
    Json less = whole;
    less["hosts"][0].erase(name);
    EXPECT_FALSE(record_from_json(less)) << "a host without its " << name;
  }
  Json encrypted = whole;
  encrypted["encrypted"] = true;
  EXPECT_FALSE(record_from_json(encrypted)) << "without the hosts' underlay addresses";
}

TEST(WithoutGpus, LeavesOutGpusThatCouldNotBeCleared) {
  const std::vector<std::string> cards = {"/dev/nvidia0", "/dev/nvidia1"};
  const std::vector<Machine> machines = {
      {"named", 4, 1, 2, {"/dev/nvidia4", "/dev/nvidia5"}}, {"whole", 4, 1, 2}, {"none", 4, 1, 0}};
  const auto all = without_gpus(machines, cards, {"/dev/nvidia5", "/dev/nvidia0", "/dev/nvidia9"});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].gpus, 1);
  EXPECT_EQ(all[0].gpu_devices, std::vector<std::string>{"/dev/nvidia4"});
  EXPECT_EQ(all[1].gpus, 1);
  EXPECT_TRUE(all[1].gpu_devices.empty());
  EXPECT_EQ(all[2].gpus, 0);
  EXPECT_EQ(without_gpus(machines, cards, {})[0].gpus, 2);
}

TEST(ChooseGpus, AssignsWholeGpusAndNoneTwice) {
  const std::vector<std::string> all = {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2",
                                        "/dev/nvidia3"};
  struct Case {
    const char* what;
    std::vector<GpuRequest> requests;
    std::set<std::string> taken;
    std::vector<std::vector<std::string>> expected;  // empty: exhausted
  } const cases[] = {
      {"none requested", {{all, 0}}, {}, {{}}},
      {"one", {{all, 1}}, {}, {{"/dev/nvidia0"}}},
      {"a gang on one machine", {{all, 2}, {all, 2}}, {}, {{all[0], all[1]}, {all[2], all[3]}}},
      {"next to another job", {{all, 2}}, {all[0], all[2]}, {{all[1], all[3]}}},
      {"two machines", {{{"/dev/a"}, 1}, {{"/dev/b"}, 1}}, {}, {{"/dev/a"}, {"/dev/b"}}},
      {"a machine without device files", {{{}, 4}}, {}, {{}}},
      {"too many", {{all, 2}, {all, 3}}, {}, {}},
      {"all taken", {{{"/dev/a"}, 1}}, {"/dev/a"}, {}},
  };
  for (const auto& each : cases) {
    const auto chosen = choose_gpus(each.requests, each.taken);
    ASSERT_EQ(bool(chosen), !each.expected.empty()) << each.what;
    if (chosen)
      EXPECT_EQ(*chosen, each.expected) << each.what;
    else
      EXPECT_EQ(chosen.error().kind, Kind::exhausted);
  }
}

TEST(Record, KeepsTheUnderlayOfAnEncryptedNetwork) {
  NetworkRequest request = a_request();
  request.encrypted = true;
  const auto pool = subnet("10.201.0.0/16");
  const auto chosen = choose_subnet(pool, 6, {}, 0, true);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->text(), "10.201.0.0/27");
  request.hosts = 2;
  const auto network = plan_network(request, pool, subnet("10.201.0.16/28"));
  EXPECT_EQ(networks::to_text(network.gateway), "10.201.0.17");
  EXPECT_EQ(networks::to_text(network.hosts[1].under), "10.201.0.19");
  EXPECT_EQ(networks::to_text(network.hosts[1].address), "10.201.0.27");
  EXPECT_EQ(underlay_text(network), "10.201.0.17/29");
  const auto read = record_from_json(to_json(Record{{3, 1}, "token", network}));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->network.encrypted);
  EXPECT_EQ(read->network.hosts[1].under, network.hosts[1].under);
}

TEST(Record, KeepsItsGpus) {
  Record record{{17, 1},
                "token",
                plan_network(a_request(), subnet("10.201.0.0/16"), subnet("10.201.0.0/28")),
                {{"/dev/a"}, {}}};
  const auto read = record_from_json(to_json(record));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->gpus, record.gpus);
  Json of_a_former_version = to_json(record);
  of_a_former_version.erase("gpus");
  EXPECT_TRUE(record_from_json(of_a_former_version)->gpus.empty());
}

TEST(RulesOfRole, AreFoundByNameAndByArnWithAnyAccount) {
  const std::map<std::string, std::vector<networks::EgressRule>> of_roles{
      {"arn:aws:iam::111122223333:role/team/closed", {}}, {"named", {}}};
  const auto found = [&](const std::string& arn) { return rules_of_role(of_roles, arn); };
  const auto* closed = &of_roles.at("arn:aws:iam::111122223333:role/team/closed");
  EXPECT_EQ(found("arn:aws:iam::111122223333:role/team/closed"), closed);
  EXPECT_EQ(found("arn:aws:iam::123456789012:role/team/closed"), closed)
      << "another account does not evade the rules";
  EXPECT_EQ(found("arn:aws:iam::111122223333:role/closed"), nullptr);
  EXPECT_EQ(found("arn:aws:iam::111122223333:role/any/named"), &of_roles.at("named"));
  EXPECT_EQ(found(""), nullptr);
}

TEST(RulesOfRole, PreferTheMostSpecificEntry) {
  const std::map<std::string, std::vector<networks::EgressRule>> of_roles{
      {"*", {}},
      {"t*", {}},
      {"team-*", {}},
      {"team-secret", {}},
      {"arn:aws:iam::*:role/x/*", {}},
      {"inner*", {}}};
  const auto found = [&](const std::string& path) {
    return rules_of_role(of_roles, "arn:aws:iam::111122223333:role/" + path);
  };
  EXPECT_EQ(found("team-secret"), &of_roles.at("team-secret")) << "it precedes patterns";
  EXPECT_EQ(found("team-a"), &of_roles.at("team-*"));
  EXPECT_EQ(found("tea"), &of_roles.at("t*"));
  EXPECT_EQ(found("other"), &of_roles.at("*"));
  EXPECT_EQ(found("x/inner"), &of_roles.at("arn:aws:iam::*:role/x/*")) << "ARNs precede names";
}

}  // namespace
}  // namespace trainyard::launch
