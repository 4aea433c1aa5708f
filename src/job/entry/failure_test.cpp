#include "entry/failure.hpp"

#include <gtest/gtest.h>

#include "contract/failure_text.hpp"
#include "entry/output_prefix.hpp"

namespace trainyard::entry {
namespace {

constexpr const char* kTraceback =
    "loading\n"
    "Traceback (most recent call last):\n"
    "  File \"train.py\", line 3, in <module>\n"
    "    inner()\n"
    "  File \"train.py\", line 2, in inner\n"
    "    raise ValueError('no such column')\n"
    "ValueError: no such column\n";

TEST(Failure, IsTheExceptionOfTheLastTraceback) {
  EXPECT_EQ(last_exception(kTraceback), "ValueError: no such column");
  EXPECT_EQ(last_exception("no such thing\n"), "");
  EXPECT_EQ(last_exception(
                std::string(kTraceback) + "\nDuring handling of the above exception, another:\n\n" +
                "Traceback (most recent call last):\n  File \"x\", line 1\nKeyError: 'b'\n"),
            "KeyError: 'b'");
  EXPECT_EQ(
      last_exception("[rank1]: Traceback (most recent call last):\n[rank1]:   File \"x\", line 1\n"
                     "[rank1]: RuntimeError: boom\n"),
      "RuntimeError: boom");
  EXPECT_EQ(last_exception(
                "[1,3]<stderr>:Traceback (most recent call last):\n[1,3]<stderr>:  File \"x\"\n"
                "[1,3]<stderr>:OSError: \x1b[31mdisk\x1b[0m\n"),
            "OSError: disk");
  // The last traceback is truncated before its exception, so the last complete one is used.
  EXPECT_EQ(last_exception(std::string(kTraceback) +
                           "Traceback (most recent call last):\n  File \"x\"\n"),
            "ValueError: no such column");
  EXPECT_EQ(last_exception("Traceback (most recent call last):\n  File \"x\"\nValueError: "
                           "shapes\ndiffer: 3, 4\n\nbye\n"),
            "ValueError: shapes\ndiffer: 3, 4");
}

TEST(Failure, DescribesTheErrorHostAndRank) {
  const Failure raised{"algo-2", 3, 1, ""};
  const auto text =
      describe_failure("ExecuteUserScriptError", raised, true, {kTraceback}, "python3 train.py");
  EXPECT_TRUE(text.starts_with(
      "ExecuteUserScriptError: ValueError: no such column (algo-2, rank 3, exit code 1)\n"
      "Command \"python3 train.py\"\nTraceback (most recent call last):\n"))
      << text;
  EXPECT_TRUE(text.ends_with("ValueError: no such column"));

  const auto silent =
      describe_failure("ExecuteUserScriptError", {"algo-1", 0, 139, ""}, false, {""}, "");
  EXPECT_EQ(
      silent,
      "ExecuteUserScriptError: algo-1, killed by SIGSEGV (segmentation fault); it printed nothing");
  const auto killed =
      describe_failure("ExecuteUserScriptError", {"algo-1", 0, 137, ""}, true, {"step 9\n"}, "");
  EXPECT_EQ(killed, "ExecuteUserScriptError: step 9 (algo-1, rank 0, killed by SIGKILL)");
  const auto words =
      describe_failure("ExecuteUserScriptError", {"algo-1", 0, 3, ""}, false, {"a\nb\n"}, "");
  EXPECT_EQ(words, "ExecuteUserScriptError: b (algo-1, exit code 3)\na\nb");
}

TEST(Failure, HasTheLastLinesWithoutAnException) {
  Printed printed{"", ""};
  for (int i = 0; i < 1000; ++i) printed.all += "epoch " + std::to_string(i) + "\n";
  const auto text =
      describe_failure("ExecuteUserScriptError", {"algo-2", 5, 139, ""}, true, printed, "./a.out");
  EXPECT_TRUE(text.starts_with(
      "ExecuteUserScriptError: epoch 999 (algo-2, rank 5, killed by SIGSEGV (segmentation fault))\n"
      "Command \"./a.out\"\nepoch 980\nepoch 981\n"))
      << text;
  EXPECT_TRUE(text.ends_with("\nepoch 999")) << text;
  // Keeps fewer lines if they are long, all complete, so that the text fits.
  printed.all.clear();
  for (int i = 0; i < 30; ++i) printed.all += std::to_string(i) + std::string(200, 'x') + "\n";
  const auto long_text =
      describe_failure("ExecuteUserScriptError", {"algo-1", 0, 1, ""}, false, printed, "");
  EXPECT_LE(long_text.size(), contract::kShownBytesMax);
  EXPECT_TRUE(long_text.ends_with("\n29" + std::string(200, 'x'))) << long_text;
  EXPECT_NE(long_text.find("\n27x"), std::string::npos) << long_text;
}

TEST(Failure, ShowsTheFramedMessageOfALauncher) {
  const std::string dashes(74, '-');
  const auto text =
      describe_failure("ExecuteUserScriptError", {"algo-1", 0, 1, ""}, false,
                       {dashes + "\nNo nodes are available\nfor this job.\n" + dashes + "\n"}, "");
  EXPECT_TRUE(text.starts_with(
      "ExecuteUserScriptError: No nodes are available for this job. (algo-1, exit code 1)\n"))
      << text;
}

TEST(Failure, FitsTheFailureReason) {
  std::string deep = "Traceback (most recent call last):\n";
  for (int i = 0; i < 500; ++i)
    deep += "  File \"train.py\", line " + std::to_string(i) + ", in f\n    f()\n";
  deep += "RecursionError: " + std::string(5000, 'x') + "\n";
  const auto text =
      describe_failure("ExecuteUserScriptError", {"algo-1", 0, 1, ""}, true, {deep}, "python3 x");
  EXPECT_LT(text.size(), 2000u);
  EXPECT_NE(text.substr(0, 1024).find("(algo-1, rank 0, exit code 1)"), std::string::npos);
}

TEST(OutputPrefix, HasTheFormOfSageMaker) {
  const std::vector<std::string> hosts = {"algo-1", "algo-2"};
  EXPECT_EQ(prefix_for_log("[1,3]<stdout>:loss=1", hosts, 2),
            "[1,mpirank:3,algo-2]<stdout>:loss=1");
  EXPECT_EQ(prefix_for_log("[1,12]<stderr>:x", hosts, 1), "[1,mpirank:12]<stderr>:x");
  for (const char* other :
       {"loss=1", "[1,x]<stdout>:", "[12]", "[1,3]<stdin>:x", "", "[,]<stdout>:"})
    EXPECT_EQ(prefix_for_log(other, hosts, 2), other);
}

}  // namespace
}  // namespace trainyard::entry
