#include "cluster_setup/scripts.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "cluster_setup/machine_facts.hpp"
#include "os/process.hpp"

namespace trainyard::cluster_setup {
namespace {

std::vector<std::string> all_scripts() {
  return {
      inspection_script(),
      prepare_script("lab ws1"),
      install_script({"munge", "slurmd"}),
      write_script({"/etc/slurm/slurm.conf", "ClusterName=x\n", "root:root", "0644", {"slurmd"}}),
      make_key_script({"munge"}),
      read_key_script(),
      record_script("{}"),
      restart_script("slurmd"),
      await_node_script("ws1"),
      drain_script("ws1", true),
      drain_script("ws1", false),
      undo_script(),
      status_script()};
}

TEST(Scripts, AreReadByAPosixShell) {
  for (const std::string& script : all_scripts()) {
    os::Command command;
    command.arguments = {"sh", "-n"};
    command.input = script;
    const auto outcome = os::run(command);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->code, 0) << outcome->errors << script;
  }
}

// A connection that breaks in the middle of a script runs nothing of it.
TEST(Scripts, DoNothingIfTheirEndIsMissing) {
  for (const std::string& script : all_scripts()) {
    const size_t begin = script.find("main() {");
    ASSERT_NE(begin, std::string::npos);
    EXPECT_TRUE(script.ends_with("}\nmain </dev/null\n"));
    for (const size_t size : {begin + 20, (begin + script.size()) / 2}) {
      os::Command command;
      command.arguments = {"sh", "-n"};
      command.input = script.substr(0, size);
      const auto outcome = os::run(command);
      ASSERT_TRUE(outcome);
      EXPECT_NE(outcome->code, 0) << command.input;
    }
  }
}

TEST(Scripts, QuoteWords) {
  EXPECT_NE(drain_script("it's", false).find("node='it'\\''s'"), std::string::npos);
  EXPECT_NE(install_script({"a b"}).find("'a b'"), std::string::npos);
}

TEST(Scripts, HaveContentAsBase64Only) {
  const std::string script = write_script({"/etc/munge/munge.key", std::string("\0'`$x\n", 6)});
  EXPECT_NE(script.find(to_base64(std::string("\0'`$x\n", 6))), std::string::npos);
  EXPECT_EQ(script.find('\0'), std::string::npos);
}

TEST(Inspection, OfThisMachineIsRead) {
  os::Command command;
  command.arguments = {"sh", "-s"};
  command.input = inspection_script();
  const auto output = os::run_or_fail(command);
  ASSERT_TRUE(output) << output.error().message;
  const auto facts = read_machine_facts(*output);
  ASSERT_TRUE(facts) << facts.error().message << *output;
  EXPECT_GT(facts->cpus, 0);
  EXPECT_GT(facts->seconds, 1'700'000'000);
}

}  // namespace
}  // namespace trainyard::cluster_setup
