#include "trainyard/operate/scrub.hpp"

#include <cstdio>

#include "base/complete_record.hpp"
#include "base/json.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/status_block.hpp"
#include "objects/scrub.hpp"
#include "os/files.hpp"

namespace trainyard::apps {
namespace {

constexpr Duration kDrawInterval = 200ms;    // fast enough for a smooth bar
constexpr size_t kLastScrubBytesMax = 4096;  // size limit of the file with its counts
constexpr Duration kPauseMax = 1s;           // limit of one wait, so that Ctrl-C takes effect

constexpr auto kLastScrub = complete(json_record<LastScrub>("scrub", [](auto& side, auto& last) {
  side("at_ms", last.at);
  side("objects", last.objects);
  side("broken", last.broken);
}));

// Draws the progress bar, waits to limit the rate, and checks for Ctrl-C.
class Pace {
 public:
  Pace(const ScrubOptions& options, os::Terminal& terminal, const cli::OutputStyle& style,
       Clock& clock)
      : options_(options),
        terminal_(terminal),
        draws_(style.live),
        block_(style),
        clock_(clock),
        began_(clock.monotonic()) {
    terminal_.watch_interrupts();
  }

  bool may_continue(const objects::ScrubProgress& progress) {
    const auto now = clock_.monotonic();
    if (draws_ && (!drawn_ || now - *drawn_ >= kDrawInterval)) {
      drawn_ = now;
      terminal_.write_error(
          block_.show("", {{"", "objects", int64_t(std::min(progress.bytes, progress.bytes_total)),
                            int64_t(progress.bytes_total), false}}));
    }
    for (;;) {
      if (terminal_.wait(pause(progress), false, -1).interrupted) return false;
      if (pause(progress) == Duration{}) return true;
    }
  }
  void end() { terminal_.write_error(block_.clear()); }

 private:
  // Returns the time to wait for the limit of the rate.
  Duration pause(const objects::ScrubProgress& progress) const {
    if (options_.bytes_per_second == 0) return {};
    const auto due =
        std::chrono::duration<double>(double(progress.bytes) / double(options_.bytes_per_second));
    const auto passed = std::chrono::duration<double>(clock_.monotonic() - began_);
    if (due <= passed) return {};
    return std::min(kPauseMax, std::chrono::duration_cast<Duration>(due - passed) + Duration(1));
  }

  const ScrubOptions& options_;
  os::Terminal& terminal_;
  const bool draws_;
  cli::StatusBlock block_;
  Clock& clock_;
  const std::chrono::nanoseconds began_;
  std::optional<std::chrono::nanoseconds> drawn_;
};

std::string json_of(const objects::ScrubReport& report) {
  Json broken = Json::array();
  for (const auto& one : report.broken)
    broken.push_back({{"Bucket", one.bucket}, {"Key", one.key}, {"Reason", one.why}});
  return dump(Json{{"Objects", report.objects},
                   {"Bytes", report.bytes},
                   {"WithoutChecksum", report.without_checksum},
                   {"BrokenCount", report.broken.size() + report.broken_not_named},
                   {"Broken", broken}}) +
         "\n";
}

std::string text_of(const objects::ScrubReport& report, const cli::OutputStyle& style) {
  std::string text;
  std::vector<std::vector<cli::Cell>> rows;
  for (const auto& one : report.broken)
    rows.push_back({{one.bucket}, {one.key}, {one.why, cli::Paint::red}});
  if (!rows.empty())
    text += cli::table(style,
                       {{.title = "BUCKET", .width_min = 12, .overflow = cli::Overflow::middle},
                        {.title = "KEY", .width_min = 20, .overflow = cli::Overflow::wrap},
                        {.title = "REASON",
                         .width_min = 20,
                         .drop = 1,
                         .overflow = cli::Overflow::wrap,
                         .below = true}},
                       rows) +
            "\n";
  if (report.broken_not_named > 0)
    text += "and " + counted(report.broken_not_named, "more broken object") + "\n";
  text += counted(report.objects, "object") + ", " + human_bytes(report.bytes) + ", " +
          std::to_string(report.broken.size() + report.broken_not_named) + " broken\n";
  if (report.without_checksum > 0)
    text += std::to_string(report.without_checksum) +
            " have no checksum of the whole: only their length was compared\n";
  return text;
}

std::string file_of(const std::string& data_directory) { return data_directory + "/scrub.json"; }

// Stores the counts, for the server's metrics.
Result<void> keep(const std::string& data_directory, const objects::ScrubReport& report,
                  Instant now) {
  const Json json =
      kLastScrub.write({now, report.objects, report.broken.size() + report.broken_not_named});
  return os::write_file_durably(file_of(data_directory), dump(json))
      .in("keeping the result of the scrub");
}

}  // namespace

std::optional<LastScrub> last_scrub(const std::string& data_directory) {
  const auto text = os::read_file(file_of(data_directory), kLastScrubBytesMax);
  const auto json = text ? parse_json(*text) : Result<Json>(text.error());
  if (!json) return std::nullopt;
  const auto last = kLastScrub.read(*json);
  return last ? std::optional(*last) : std::nullopt;
}

Result<bool> scrub(const ScrubOptions& options, os::Terminal& terminal,
                   const cli::OutputStyle& style, const cli::OutputStyle& error_style,
                   Clock& clock) {
  Pace pace(options, terminal, error_style, clock);
  objects::ScrubSettings settings;
  settings.bucket = options.bucket;
  settings.may_continue = [&](const objects::ScrubProgress& progress) {
    return pace.may_continue(progress);
  };
  auto report = objects::scrub_directory(options.data_directory + "/objects", settings);
  pace.end();
  if (!report) return std::move(report).error();
  if (!report->whole) return cancelled("interrupted after " + counted(report->objects, "object"));
  if (options.bucket.empty()) TRY(keep(options.data_directory, *report, clock.now()));
  TRY(terminal.write(options.json ? json_of(*report) : text_of(*report, style)));
  return report->broken.empty();
}

}  // namespace trainyard::apps
