#include "cluster_setup/cluster_record.hpp"

#include <gtest/gtest.h>

namespace trainyard::cluster_setup {
namespace {

TEST(ClusterRecord, IsReadAsItWasWritten) {
  ClusterRecord record;
  record.name = "lab", record.system = "debian 12";
  record.machines = {{"", "ws1", "10.0.0.1", 8, 30'000, {}, false},
                     {"bob@ws2", "ws2", "10.0.0.2", 16, 60'000, {{0, "t4"}, {1, ""}}, true}};
  const auto again = read_cluster_record(to_text(record));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, record);
}

std::string record_with(const std::string& machine) {
  return R"({"version":1,"name":"lab","system":"debian 12","machines":[)" + machine + "]}";
}

TEST(ClusterRecord, RefusesWhatNoCommandWrote) {
  const std::string good =
      R"({"name":"ws1","address":"10.0.0.1","cpus":8,"memory_mib":100,"runs_jobs":true})";
  ASSERT_TRUE(read_cluster_record(record_with(good)));
  for (const std::string& bad :
       {record_with(""), record_with(good + "," + good), std::string("[]"), std::string("{"),
        record_with(R"({"name":"a b","address":"10.0.0.1","cpus":8,"memory_mib":100})"),
        record_with(R"({"name":"a","address":"10.0.0.1\nx","cpus":8,"memory_mib":100})"),
        record_with(R"({"name":"a","address":"10.0.0.1","cpus":-8,"memory_mib":100})"),
        record_with(R"({"name":"a","address":"10.0.0.1","cpus":8,"memory_mib":100,
                        "destination":"-oProxyCommand=x"})"),
        record_with(R"({"name":"a","address":"10.0.0.1","cpus":8,"memory_mib":100,
                        "gpus":[{"minor":1,"type":"x\ny"}]})"),
        record_with(R"({"name":"a","address":"10.0.0.1","cpus":8,"memory_mib":100,
                        "gpus":[{"minor":1},{"minor":1}]})")})
    EXPECT_FALSE(read_cluster_record(bad)) << bad;
}

TEST(ClusterRecord, OfANewerProgramSaysSo) {
  const auto newer = read_cluster_record(R"({"version":2,"name":"lab","machines":[]})");
  EXPECT_EQ(newer.error().message,
            "the cluster's record has version 2, and this program reads version 1");
}

}  // namespace
}  // namespace trainyard::cluster_setup
