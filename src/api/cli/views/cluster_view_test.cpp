#include "cli/views/cluster_view.hpp"

#include <gtest/gtest.h>

namespace trainyard::cli {
namespace {

const OutputStyle kPlain{};

TEST(ClusterPlanPage, ShowsStepsReasonsAndProblems) {
  const std::vector<MachinePlanView> machines = {
      {"ws1",
       machine_size_text(16, 64'000, 2, "nvidia_t4"),
       "",
       "",
       {{"write /etc/slurm/slurm.conf", "new file"}, {"start munge", ""}}},
      {"ws2", "", "ssh: No route to host\033[2J", "", {}},
      {"ws3", "", "", "", {}}};
  EXPECT_EQ(cluster_plan_page(kPlain, machines),
            "ws1 (16 CPUs, 62.5 GiB of memory, 2 GPUs (nvidia_t4))\n"
            "  write /etc/slurm/slurm.conf (new file)\n"
            "  start munge\n"
            "ws2\n"
            "  is left alone: ssh: No route to host?[2J\n");
}

TEST(ClusterStatusPage, ShowsEachNode) {
  ClusterNodeView head{"ws1", "10.0.0.1", "", 8, 30'720};
  head.is_controller = true, head.runs_jobs = false;
  ClusterNodeView node{"ws2", "10.0.0.2", "drained*", 16, 61'440, 2, "22.05.8", "fan is broken"};
  ClusterNodeView lost{"ws3", "10.0.0.3", "", 16, 61'440};
  const std::string page = cluster_status_page(kPlain, "lab", {head, node, lost});
  EXPECT_NE(page.find("cluster lab\n"), std::string::npos);
  EXPECT_NE(page.find("ws1 (controller)  runs no jobs"), std::string::npos) << page;
  EXPECT_NE(page.find("drained*"), std::string::npos);
  EXPECT_NE(page.find("fan is broken"), std::string::npos);
  EXPECT_NE(page.find("not in Slurm"), std::string::npos);
}

TEST(ClusterStatusPage, PaintsStates) {
  const OutputStyle colours{.colours = true};
  const auto page = [&](const char* state) {
    return cluster_status_page(colours, "lab", {{"ws1", "10.0.0.1", state, 8, 30'720}});
  };
  EXPECT_NE(page("idle").find(paint(colours, Paint::green, "idle")), std::string::npos);
  EXPECT_NE(page("drained").find(paint(colours, Paint::yellow, "drained")), std::string::npos);
  EXPECT_NE(page("idle*").find(paint(colours, Paint::red, "idle*")), std::string::npos);
  EXPECT_NE(page("down").find(paint(colours, Paint::red, "down")), std::string::npos);
}

}  // namespace
}  // namespace trainyard::cli
