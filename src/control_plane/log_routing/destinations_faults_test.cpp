// Fails each disk operation once, during changes of destinations and filters. Acknowledged changes
// must be stored, and failed changes must leave nothing.
#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <string>

#include "base/file_faults.hpp"
#include "base/testing/test_clock.hpp"
#include "log_routing/destinations.hpp"
#include "observe/testing/test_world.hpp"
#include "observe/watched_logs.hpp"
#include "sqlite/file_watch.hpp"

namespace trainyard::log_routing {
namespace {

constexpr auto kFilterKind = observe::DefinitionKind::metric_filter;
constexpr int kDefinitionChanges = 12;
const std::string kFaultRegion = "eu-west-1";
const std::string kFaultTarget = "arn:aws:logs:eu-west-1:123456789012:log-group:g";

// Destinations and filters of the group g: the step that wrote each, by name.
using DefinitionSteps = std::map<std::string, std::string>;

struct DefinitionWorld {
  std::unique_ptr<observe::Logs> logs;
  LogTargets targets{"123456789012", {}};
  std::unique_ptr<LogDestinations> destinations;

  DefinitionWorld(const std::string& directory, Clock& clock, const std::string& files)
      : logs(*observe::open_watched_logs(directory, clock, {}, files)),
        destinations(std::make_unique<LogDestinations>(logs->definitions(), targets)) {}

  DefinitionSteps stored() {
    DefinitionSteps steps;
    const auto named = destinations->list(kFaultRegion);
    EXPECT_TRUE(named);
    for (const auto& [name, destination] : *named) steps[name] = destination.tags.at("step");
    const auto filters = logs->definitions().list(kFaultRegion, kFilterKind, "g");
    EXPECT_TRUE(filters);
    for (const auto& each : *filters) steps[each.name] = MetricFilter::from(each.body)->value;
    return steps;
  }
  Result<void> put(const std::string& name, const std::string& step) {
    if (name.starts_with("filter")) {
      const MetricFilter filter{.metric_namespace = "N", .metric_name = "m", .value = step};
      return logs->definitions().put(kFaultRegion, kFilterKind, {"g", name, filter.text(), {}},
                                     kMetricFiltersMax);
    }
    TRY(destinations->put(kFaultRegion, name,
                          {.target_arn = kFaultTarget, .tags = {{"step", step}}}));
    return ok();
  }
  Result<void> remove(const std::string& name) {
    return name.starts_with("filter")
               ? logs->definitions().remove(kFaultRegion, kFilterKind, "g", name)
               : destinations->remove(kFaultRegion, name);
  }
};

// Creates, replaces and removes definitions, and returns the acknowledged state.
DefinitionSteps change_definitions(DefinitionWorld& world) {
  DefinitionSteps acknowledged;
  int failed = 0;
  for (int i = 0; i < kDefinitionChanges; ++i) {
    const std::string name = (i % 2 == 0 ? "filter-" : "destination-") + std::to_string(i % 4);
    const std::string step = std::to_string(i);
    const bool removes = i >= kDefinitionChanges / 2 && acknowledged.contains(name) && i % 3 == 0;
    const auto done = removes ? world.remove(name) : world.put(name, step);
    if (!done) {
      ++failed;
      EXPECT_TRUE(done.error().kind == Kind::exhausted || done.error().kind == Kind::unavailable)
          << done.error().message;
    } else if (removes) {
      acknowledged.erase(name);
    } else {
      acknowledged[name] = step;
    }
    EXPECT_EQ(world.stored(), acknowledged);
  }
  EXPECT_LE(failed, 1);
  return acknowledged;
}

void fail_each_definition_step(int error_number) {
  for (uint64_t nth = 1;; ++nth) {
    ASSERT_LT(nth, 1000u);
    const observe::TemporaryDirectory directory;
    TestClock clock;
    NthFileFault fault(nth, error_number);
    sqlite::FileWatch watch(&fault);
    DefinitionSteps acknowledged;
    {
      DefinitionWorld world(directory.path(), clock, watch.name());
      ASSERT_OK(world.logs->ensure_stream({kFaultRegion, "g", "s"}));
      fault.arm();
      acknowledged = change_definitions(world);
    }
    DefinitionWorld world(directory.path(), clock, "");
    EXPECT_EQ(world.stored(), acknowledged) << nth;
    ASSERT_OK(world.put("destination-after", "after"));
    if (!fault.struck()) return;
  }
}

TEST(LogDefinitionFaults, FullDiskLosesNoAcknowledgedChange) { fail_each_definition_step(ENOSPC); }
TEST(LogDefinitionFaults, DiskErrorLosesNoAcknowledgedChange) { fail_each_definition_step(EIO); }

}  // namespace
}  // namespace trainyard::log_routing
