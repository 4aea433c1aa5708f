#include "containers/gpu/gpu_monitor.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/testing/test_clock.hpp"
#include "base/text.hpp"
#include "containers/testing/fake_nvml.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::containers {
namespace {

using Usages = std::vector<GpuUsage>;
constexpr const char* kReporter = "TRAINYARD_TEST_REPORT_GPUS";

// With the variable set, this program is the one that a monitor starts: it calls the library of
// that name, and runs no test.
const bool kIsReporter = [] {
  const char* const library = std::getenv(kReporter);
  if (!library) return false;
  report_gpus(library, {"/dev/nvidia0", "/dev/nvidia1"}, os::PacketSocket(os::File(0)), 10ms);
  ::_exit(0);
}();

bool eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 2000 && !holds(); i++) std::this_thread::sleep_for(10ms);
  return holds();
}

// A monitor over a script whose standard input is the socket.
class GpuMonitorTest : public testing::Test {
 protected:
  GpuMonitor& start(const std::string& script, GpuMonitorLimits limits = {}) {
    return monitor_.emplace(std::vector<std::string>{"sh", "-c", script, at("ran"), at("process")},
                            clock_, limits);
  }
  std::string at(const std::string& name) const { return directory_.path() + "/" + name; }
  // Scripts write a line to $0 at their start.
  size_t starts() const {
    const auto text = os::read_file(at("ran"), 1 << 16);
    return text ? split(*text, '\n').size() - 1 : 0;
  }
  bool reports(const Usages& usages) {
    return eventually([&] { return monitor_->latest() == usages; });
  }

  const os::TemporaryDirectory directory_;
  TestClock clock_;
  std::optional<GpuMonitor> monitor_;
};

constexpr const char* kReport = R"(printf '{"gpus":[{"busy":40,"memory_percent":10}]}' >&0; )";

TEST_F(GpuMonitorTest, ReturnsTheLastReport) {
  start(R"(printf '{"gpus":[{"busy":1}]}' >&0; )" + std::string(kReport) + "read end");
  EXPECT_TRUE(reports({{40, 10}}));
}

TEST_F(GpuMonitorTest, StartsNothingBeforeTheFirstCall) {
  start("echo >> $0; " + std::string(kReport) + "read end");
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(starts(), 0u);
  EXPECT_TRUE(reports({{40, 10}}));
  EXPECT_EQ(starts(), 1u);
}

TEST_F(GpuMonitorTest, StartsNothingWithoutGpus) {
  GpuMonitor none({}, clock_);
  EXPECT_TRUE(none.latest().empty());
}

TEST_F(GpuMonitorTest, ForgetsOldReports) {
  start(std::string(kReport) + "sleep 1000");
  ASSERT_TRUE(reports({{40, 10}}));
  clock_.advance(10s);
  EXPECT_EQ(monitor_->latest(), (Usages{{40, 10}}));
  clock_.advance(1ms);
  EXPECT_TRUE(monitor_->latest().empty());
}

TEST_F(GpuMonitorTest, KillsAProcessThatReportsNothingAndStartsAnother) {
  start("echo >> $0; trap '' TERM; sleep 1000",
        {.report_max = 10ms, .restart_interval = Duration(1)});
  EXPECT_TRUE(eventually([&] {
    (void)monitor_->latest();
    clock_.advance(20ms);
    return starts() >= 3;
  }));
}

TEST_F(GpuMonitorTest, StartsAnotherAfterACrash) {
  start("echo >> $0; " + std::string(kReport) + "kill -SEGV $$", {.restart_interval = Duration(1)});
  EXPECT_TRUE(reports({{40, 10}}));
  EXPECT_TRUE(eventually([&] { return starts() >= 3; }));
}

TEST_F(GpuMonitorTest, StartsAnotherAfterAnInvalidReport) {
  for (const char* report : {"x", R"({"gpus":[{"busy":1000}]})", R"({"error":"no driver"})"}) {
    (void)os::remove_all(at("ran"));
    start("echo >> $0; printf '" + std::string(report) + "' >&0; sleep 1000",
          {.restart_interval = Duration(1)});
    EXPECT_TRUE(monitor_->latest().empty());
    EXPECT_TRUE(eventually([&] { return starts() >= 2; })) << report;
    EXPECT_TRUE(monitor_->latest().empty());
  }
}

TEST_F(GpuMonitorTest, WaitsBeforeItStartsAnother) {
  start("echo >> $0");
  (void)monitor_->latest();
  ASSERT_TRUE(eventually([&] { return starts() == 1; }));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(starts(), 1u);
  const auto began = std::chrono::steady_clock::now();
  monitor_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s) << "the end does not wait for the next";
}

TEST_F(GpuMonitorTest, EndsAHungProcess) {
  start("echo $$ > $1; " + std::string(kReport) + "trap '' TERM HUP; sleep 1000; sleep 1000");
  ASSERT_TRUE(reports({{40, 10}}));
  const auto process = parse_int(trim(*os::read_file(at("process"), 100)));
  ASSERT_TRUE(process);
  const auto began = std::chrono::steady_clock::now();
  monitor_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 30s);
  EXPECT_FALSE(os::exists("/proc/" + std::to_string(*process)));
}

TEST_F(GpuMonitorTest, AProgramThatCannotBeStartedDelaysNothing) {
  GpuMonitor missing({"/no/such/program"}, clock_, {.restart_interval = Duration(1)});
  for (int i = 0; i < 10; i++) EXPECT_TRUE(missing.latest().empty());
}

// This program as the reporter, with a library that is opened as the driver's.
class GpuMonitorOfALibrary : public GpuMonitorTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(fake_.compiled());
    ::setenv(kReporter, fake_.library().c_str(), 1);
  }
  void TearDown() override {
    monitor_.reset();
    ::unsetenv(kReporter);
  }
  void start(GpuMonitorLimits limits = {}) {
    monitor_.emplace(std::vector<std::string>{"/proc/self/exe"}, machine_clock_, limits);
  }
  FakeNvml fake_;
  os::MachineClock machine_clock_;
};

TEST_F(GpuMonitorOfALibrary, FollowsItsGpus) {
  fake_.set("0 87 20 80\n1 - 40 80\n");
  start();
  EXPECT_TRUE(reports({{87, 25}, {{}, 50}}));
  fake_.set("0 500 900 80\n1 lost 40 80\n");
  EXPECT_TRUE(reports({{100, 100}}));
}

TEST_F(GpuMonitorOfALibrary, SurvivesItsFaults) {
  start({.age_max = 500ms, .report_max = 1s, .restart_interval = 10ms});
  EXPECT_TRUE(monitor_->latest().empty()) << "the driver is not loaded";
  for (const char* fault : {"0 hangs 0 0\n", "0 crashes 0 0\n", "0 lost 0 0\n", "7 1 1 1\n"}) {
    fake_.set("0 87 20 80\n");
    EXPECT_TRUE(reports({{87, 25}})) << fault;
    fake_.set(fault);
    EXPECT_TRUE(reports({})) << fault;
  }
  fake_.set("0 87 20 80\n");
  EXPECT_TRUE(reports({{87, 25}}));
}

}  // namespace
}  // namespace trainyard::containers
