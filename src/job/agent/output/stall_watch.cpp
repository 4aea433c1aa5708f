#include "agent/output/stall_watch.hpp"

namespace trainyard::agent {
namespace {

std::string describe_duration(Duration duration) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  return seconds >= 120 ? std::to_string(seconds / 60) + " minutes"
                        : std::to_string(seconds) + " seconds";
}

}  // namespace

std::optional<std::string> StallWatch::update(uint64_t bytes_printed, std::chrono::nanoseconds cpu,
                                              std::chrono::nanoseconds now) {
  const auto elapsed = static_cast<double>((now - checked_at_).count());
  const bool active = !begun_ || bytes_printed != bytes_ ||
                      static_cast<double>((cpu - cpu_).count()) > elapsed * kIdleCores;
  begun_ = true;
  bytes_ = bytes_printed;
  cpu_ = cpu;
  checked_at_ = now;
  if (active) {
    active_at_ = now;
    if (!reported_) return {};
    reported_ = false;
    return "";
  }
  if (reported_ || after_ <= 0ms || now - active_at_ < after_) return {};
  reported_ = true;
  return "seems to hang: no output and no CPU use for " + describe_duration(after_);
}

}  // namespace trainyard::agent
