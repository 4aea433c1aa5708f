#include "trainyard/clock_file.hpp"

#include "base/log.hpp"
#include "base/text.hpp"
#include "os/files.hpp"

namespace trainyard::apps {
namespace {

constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";
constexpr size_t kClockFileBytesMax = 4096;

Result<control::ClockRecord> read_record(const std::string& path) {
  const Json json = TRY(parse_json(TRY(os::read_file(path, kClockFileBytesMax))));
  return control::clock_record_from_json(json);
}

}  // namespace

control::ClockSettings clock_settings(const std::string& path) {
  control::ClockSettings settings;
  if (const auto boot = os::read_file(kBootId)) settings.boot = trim(*boot);
  settings.unwatched_max = kUnwatchedTimeMax;
  if (auto record = read_record(path))
    settings.record = *std::move(record);
  else if (record.error().kind != Kind::not_found)
    log(Level::warning, "serve", "the clock file cannot be read; using the wall clock",
        {{"file", path}, {"why", record.error().message}});
  settings.keep = [path](const control::ClockRecord& record) {
    if (const auto written = os::write_file_durably(path, dump(to_json(record)) + "\n"); !written)
      log(Level::error, "serve", "the clock file was not written",
          {{"file", path}, {"why", written.error().message}});
  };
  return settings;
}

}  // namespace trainyard::apps
