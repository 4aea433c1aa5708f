#include "agent/driver_failure.hpp"

#include <gtest/gtest.h>

#include "agent/output/exit_reason.hpp"
#include "contract/failure_text.hpp"

namespace trainyard::agent {
namespace {

// As SDK 3.27 writes it.
constexpr const char* kDriverFailure =
    "Traceback (most recent call last):\n"
    "  File \"/opt/ml/input/data/sm_drivers/common/utils.py\", line 217, in execute_commands\n"
    "    raise subprocess.CalledProcessError(exitcode, commands)\n"
    "subprocess.CalledProcessError: Command '['/usr/bin/python3', 'train.py']' returned non-zero "
    "exit status 1.\n";
constexpr const char* kShellFailure =
    "Training Execution failed. For more details, see CloudWatch logs at "
    "'aws/sagemaker/TrainingJobs'.\nTrainingJob - mnist\n";

std::string after(const std::string& script) {
  return "Executing command: /usr/bin/python3 train.py\n" + script +
         "Command failed with exit code 1. Traceback: " + kDriverFailure +
         "++ handle_error\n++ EXIT_STATUS=1\nAn error occurred with exit code 1\n";
}

TEST(DriverFailure, RecognisesTheDriversOwnTexts) {
  EXPECT_TRUE(is_driver_failure(kDriverFailure));
  EXPECT_TRUE(is_driver_failure(kShellFailure));
  EXPECT_FALSE(is_driver_failure(""));
  EXPECT_FALSE(is_driver_failure("no such column"));
  EXPECT_FALSE(
      is_driver_failure("Traceback (most recent call last):\n  File \"train.py\", line 1\n"
                        "subprocess.CalledProcessError: Command 'ls' ..\n"))
      << "the script's own command";
}

TEST(ScriptFailure, StartsWithTheException) {
  EXPECT_EQ(script_failure(after("epoch 1\n"
                                 "Traceback (most recent call last):\n"
                                 "File \"/opt/ml/input/data/code/train.py\", line 9, in <module>\n"
                                 "main()\n"
                                 "^^^^^^\n"
                                 "File \"/opt/ml/input/data/code/train.py\", line 5, in main\n"
                                 "raise ValueError(\"no such column\")\n"
                                 "ValueError: no such column\n")),
            "ValueError: no such column\n"
            "Traceback (most recent call last):\n"
            "File \"/opt/ml/input/data/code/train.py\", line 9, in <module>\n"
            "main()\n"
            "^^^^^^\n"
            "File \"/opt/ml/input/data/code/train.py\", line 5, in main\n"
            "raise ValueError(\"no such column\")\n"
            "ValueError: no such column");
}

TEST(ScriptFailure, SkipsExceptionsOfLaunchers) {
  const std::string found = script_failure(
      after("[rank1]: Traceback (most recent call last):\n"
            "[rank1]:   File \"train.py\", line 5, in <module>\n"
            "[rank1]:     raise KeyError('x')\n"
            "[rank1]: KeyError: 'x'\n"
            "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1)\n"
            "Traceback (most recent call last):\n"
            "File \"/usr/lib/python3/torch/distributed/run.py\", line 762, in main\n"
            "run(args)\n"
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
            "train.py FAILED\n"));
  EXPECT_TRUE(found.starts_with("KeyError: 'x'\nTraceback")) << found;
  EXPECT_EQ(found.find("ChildFailedError"), std::string::npos);
}

TEST(ScriptFailure, NamesThePackageThatTheMpiDriverLacks) {
  const std::string found = script_failure(
      "Running MPI Driver\n"
      "Traceback (most recent call last):\n"
      "  File \"/opt/ml/input/data/sm_drivers/distributed_drivers/mpi_utils.py\", "
      "line 24, in <module>\n"
      "    import paramiko\n"
      "ModuleNotFoundError: No module named 'paramiko'\n"
      "++ handle_error\n");
  EXPECT_TRUE(
      found.starts_with("ModuleNotFoundError: No module named 'paramiko' (the SDK's MPI "
                        "driver needs it: add paramiko to requirements.txt; on several hosts the "
                        "image must also have sshd, and keys with which they reach each other: "
                        "Torchrun needs neither)"))
      << found;
}

TEST(ScriptFailure, NamesTheSshSetupThatTheMpiDriverNeeds) {
  const auto of_driver = [](const std::string& error) {
    return script_failure(
        "Traceback (most recent call last):\n"
        "  File \"/opt/ml/input/data/sm_drivers/distributed_drivers/mpi_driver.py\", line 109\n"
        "    main()\n" +
        error + "\n");
  };
  std::string found = of_driver("RuntimeError: SSH daemon not found.");
  EXPECT_TRUE(found.starts_with(
      "RuntimeError: SSH daemon not found. (the SDK's MPI driver starts /usr/sbin/sshd, which the "
      "image must have: Torchrun needs none)"))
      << found;
  found = of_driver("TimeoutError: Timed out waiting for master algo-1 to be reachable.");
  EXPECT_TRUE(found.starts_with(
      "TimeoutError: Timed out waiting for master algo-1 to be reachable. (the SDK's MPI driver "
      "connects the hosts by ssh: the image must have keys with which they reach each other: "
      "Torchrun needs none)"))
      << found;
}

TEST(ScriptFailure, ErrorsOfTheScriptHaveNoHintOfTheDriver) {
  const std::string found = script_failure(
      after("Traceback (most recent call last):\nFile \"train.py\", line 1\nimport paramiko\n"
            "ModuleNotFoundError: No module named 'paramiko'\n"));
  EXPECT_TRUE(found.starts_with("ModuleNotFoundError: No module named 'paramiko'\n")) << found;
}

TEST(ScriptFailure, WithoutAnExceptionIsTheLastLine) {
  EXPECT_EQ(script_failure(after("tar: no such file\n")),
            "tar: no such file\nExecuting command: /usr/bin/python3 train.py");
  EXPECT_EQ(script_failure(after("")), "Executing command: /usr/bin/python3 train.py");
  EXPECT_EQ(script_failure("++ set +x\nRunning Basic Script driver\n" +
                           after("usage: train.py [-h] [--epochs EPOCHS]\n"
                                 "train.py: error: argument --epochs: invalid int value: 'x'\n")),
            "train.py: error: argument --epochs: invalid int value: 'x'\n"
            "Executing command: /usr/bin/python3 train.py\n"
            "usage: train.py [-h] [--epochs EPOCHS]");
  EXPECT_EQ(script_failure("epoch 1\n"), "");
  EXPECT_EQ(script_failure(""), "");
  EXPECT_EQ(script_failure("Traceback (most recent call last):\nFile \"a\", line 1\n"), "");
  const std::string found = script_failure(
      after("Traceback (most recent call last):\nFile \"a\", line 1\nraise E()\nE: " +
            std::string(5'000, 'x') + "\n"));
  EXPECT_TRUE(found.starts_with("E: xxx"));
}

TEST(ScriptFailure, SkipsTheReportOfTorchrunOnItsRanks) {
  for (const char* logger :
       {"ERROR:torch.distributed.elastic.multiprocessing.api:",
        "E1127 06:32:38 18 torch/distributed/elastic/multiprocessing/api.py] "})
    EXPECT_EQ(script_failure(after("usage: train.py [-h]\n"
                                   "train.py: error: invalid int value: 'x'\n"
                                   "WARNING:torch.distributed.elastic.agent: closing signal\n" +
                                   std::string(logger) +
                                   "failed (exitcode: 2) local_rank: 0 (pid: 18)\n"
                                   "Traceback (most recent call last):\n"
                                   "File \"/usr/lib/torch/distributed/run.py\", line 762, in main\n"
                                   "run(args)\n"
                                   "torch.distributed.elastic.multiprocessing.errors."
                                   "ChildFailedError:\n"
                                   "train.py FAILED\nexitcode  : 2 (pid: 19)\n====\n")),
              "train.py: error: invalid int value: 'x'\n"
              "Executing command: /usr/bin/python3 train.py\nusage: train.py [-h]");
}

TEST(ScriptFailure, LeavesOutTheTraceOfTheShell) {
  EXPECT_EQ(script_failure("++ CMD='echo one; ls /nothing'\n"
                           "++ echo 'Executing command: echo one; ls /nothing'\n"
                           "Executing command: echo one; ls /nothing\n"
                           "++ eval 'echo one; ls /nothing'\n"
                           "+++ echo one\none\n+++ ls /nothing\n"
                           "ls: cannot access '/nothing': No such file or directory\n"
                           "++++ handle_error\n++++ EXIT_STATUS=2\n"
                           "An error occurred with exit code 2\n"),
            "ls: cannot access '/nothing': No such file or directory\n"
            "Executing command: echo one; ls /nothing\none");
}

TEST(ScriptFailure, IsTheExitReason) {
  const ProcessEnd end{.failure = kDriverFailure,
                       .last_output = after("Traceback (most recent call last):\n"
                                            "File \"train.py\", line 1, in <module>\n"
                                            "x\n"
                                            "NameError: name 'x' is not defined\n")};
  EXPECT_TRUE(exit_reason(end).starts_with("NameError: name 'x' is not defined\n"))
      << exit_reason(end);
  EXPECT_EQ(exit_reason({.failure = kShellFailure}), kShellFailure) << "nothing else is known";
  EXPECT_EQ(exit_reason({.failure = "my own words", .last_output = end.last_output}),
            "my own words");
}

}  // namespace
}  // namespace trainyard::agent
