#include "cluster_setup/machine_facts.hpp"

#include <gtest/gtest.h>

#include "cluster_setup/testing/facts.hpp"

namespace trainyard::cluster_setup {
namespace {

TEST(MachineFacts, AreReadFromAnInspection) {
  const std::string digest(64, 'a');
  const auto facts = read_machine_facts(inspection_of(
      "ws2",
      "gpu 0 NVIDIA A100-SXM4-80GB\ngpu 1 NVIDIA A100-SXM4-80GB\ngpu_file 1\ngpu_file 0\n"
      "reached 10.0.0.2 10.0.0.9\npackage munge 0.5.15-2+deb12u1\nfile " +
          digest + " /etc/munge/munge.key\nwritten " + digest +
          " - /etc/munge/munge.key\nservice munge running\nservice slurmd stopped\n"
          "pending slurmd\nmember lab ws1\nrecord e30=\n"));
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->hostname, "ws2");
  EXPECT_EQ(facts->system, "debian 12");
  EXPECT_TRUE(facts->systemd);
  EXPECT_EQ(facts->memory_mib, 64'300);
  EXPECT_EQ(facts->gpus,
            (std::vector<Gpu>{{0, "nvidia_a100-sxm4-80gb"}, {1, "nvidia_a100-sxm4-80gb"}}));
  EXPECT_EQ(facts->reached_at, "10.0.0.2");
  EXPECT_EQ(facts->reached_from, "10.0.0.9");
  EXPECT_EQ(facts->packages.at("munge"), "0.5.15-2+deb12u1");
  EXPECT_EQ(facts->files.at("/etc/munge/munge.key"), digest);
  EXPECT_EQ(facts->written.at("/etc/munge/munge.key"), (WrittenFile{digest, ""}));
  EXPECT_EQ(facts->services.at("munge"), ServiceState::running);
  EXPECT_EQ(facts->services.at("slurmd"), ServiceState::stopped);
  EXPECT_EQ(facts->pending, std::vector<std::string>{"slurmd"});
  EXPECT_EQ(facts->member, "lab ws1");
  EXPECT_EQ(facts->record, "{}");
}

TEST(MachineFacts, AGpuOfAnUnknownTypeCountsByItsFile) {
  const auto facts = read_machine_facts(inspection_of("ws2", "gpu_file 3\n"));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->gpus, (std::vector<Gpu>{{3, ""}}));
}

TEST(MachineFacts, ASshConnectionByIpv6IsNotUsed) {
  const auto facts = read_machine_facts(inspection_of("ws2", "reached fe80::2 fe80::1\n"));
  ASSERT_TRUE(facts);
  EXPECT_EQ(facts->reached_at, "");
}

// A machine that is not ours yet may print anything.
TEST(MachineFacts, RefuseWhatCouldEndUpInAFileOrScript) {
  for (const char* line : {"hostname ws;reboot",
                           "hostname a b",
                           "cpus 0",
                           "cpus -1",
                           "cpus 99999999999999999999",
                           "memory_kib 12x",
                           "address 10.0.0.2;id",
                           "address 999.1.1.1",
                           "gpu_file 9999",
                           "file zz /etc/passwd",
                           "service cron running",
                           "service munge sleeping",
                           "pending sshd",
                           "written x - /etc/x",
                           "package mun;ge 1",
                           "package munge $(id)",
                           "record ???",
                           "member lab\x01 ws1",
                           "unknown line",
                           ""}) {
    const auto facts = read_machine_facts(inspection_of("ws2", std::string(line) + "\n"));
    ASSERT_FALSE(facts) << line;
    EXPECT_EQ(facts.error().kind, Kind::corrupt);
  }
}

TEST(MachineFacts, HaveLimits) {
  std::string lines;
  for (size_t i = 0; i < kFactsMax; ++i) lines += "cpus 16\n";
  EXPECT_EQ(read_machine_facts(inspection_of("ws2", lines)).error().kind, Kind::exhausted);
  EXPECT_EQ(read_machine_facts(std::string(kInspectionBytesMax + 1, 'x')).error().kind,
            Kind::exhausted);
}

TEST(MachineFacts, OfAConnectionThatBrokeAreIncomplete) {
  const std::string whole = inspection_of("ws2");
  EXPECT_EQ(read_machine_facts(whole.substr(0, whole.size() - 5)).error().message,
            "the inspection ends before its last line");
  const auto other = read_machine_facts("This account is not available\n");
  EXPECT_NE(other.error().message.find("This account is not available"), std::string::npos);
  EXPECT_NE(read_machine_facts(std::string(kInspectionBegin) + "\nend\n")
                .error()
                .message.find("'hostname'"),
            std::string::npos);
}

TEST(GpuType, IsWrittenAsSlurmDoes) {
  EXPECT_EQ(gpu_type_of("NVIDIA GeForce RTX 4090"), "nvidia_geforce_rtx_4090");
  EXPECT_EQ(gpu_type_of("\t NVIDIA T4 "), "nvidia_t4");
  EXPECT_EQ(gpu_type_of("a,b=c;d"), "a_b_c_d");
  EXPECT_EQ(gpu_type_of("..."), "");
  EXPECT_EQ(gpu_type_of(std::string(200, 'a')).size(), 64u);
}

}  // namespace
}  // namespace trainyard::cluster_setup
