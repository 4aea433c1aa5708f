#include "gradients/fusion/timeline.hpp"

#include <cctype>
#include <chrono>

namespace trainyard::gradients {
namespace {

std::string quoted_name(const std::string& text) {
  std::string result = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') result += '\\';
    result += static_cast<unsigned char>(each) < 0x20 ? ' ' : each;
  }
  return result + '"';
}

// Returns the name of the phase in Horovod's timelines.
std::string name_in_timeline(const Event& event) {
  std::string operation;
  for (const char each : to_string(event.operation))
    if (each != '_') operation += char(std::toupper(static_cast<unsigned char>(each)));
  switch (event.phase) {
    case Phase::negotiate:
      return "NEGOTIATE_" + operation;
    case Phase::copy_in:
      return "MEMCPY_IN_FUSION_BUFFER";
    case Phase::communicate:
      return "TRAINYARD_" + operation;
    case Phase::copy_out:
      return "MEMCPY_OUT_FUSION_BUFFER";
    default:
      return "CYCLE_START";
  }
}

double in_microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// Converts a time of the steady clock to microseconds since 1970.
int64_t wall_microseconds(std::chrono::steady_clock::time_point at) {
  const auto wall = std::chrono::system_clock::now() - (std::chrono::steady_clock::now() - at);
  return std::chrono::duration_cast<std::chrono::microseconds>(wall.time_since_epoch()).count();
}

}  // namespace

Result<void> Timeline::start(const std::string& path, bool mark_cycles,
                             std::chrono::steady_clock::time_point began) {
  const MutexLock lock(mutex_);
  if (file_.is_open())
    return conflict("a timeline is being written already: stop_timeline() ends it");
  file_.open(path, std::ios::trunc);
  if (!file_) return from_errno("writing the timeline " + path);
  file_.precision(3);
  file_ << std::fixed << "[\n"
        << R"({"name":"process_name","ph":"M","pid":0,"args":{"name":"trainyard",)"
        << R"("start_time_since_epoch_in_micros":)" << wall_microseconds(began) << "}},\n";
  mark_cycles_ = mark_cycles;
  events_ = 0;
  rows_.clear();
  return ok();
}

void Timeline::stop() {
  const MutexLock lock(mutex_);
  if (!file_.is_open()) return;
  file_ << R"({"name":"process_name","ph":"M","pid":0,"args":{"name":"trainyard)"
        << (events_ > kEventsMax ? ", the first events only" : "") << "\"}}\n]\n";
  file_.close();
}

int Timeline::row_of(const std::string& name) {
  const auto [place, fresh] = rows_.emplace(name, int(rows_.size()) + 1);
  if (fresh)
    file_ << R"({"name":"thread_name","ph":"M","pid":0,"tid":)" << place->second
          << R"(,"args":{"name":)" << quoted_name(name) << "}},\n";
  return place->second;
}

void Timeline::write(const Event& event) {
  const MutexLock lock(mutex_);
  if (!file_.is_open() || (event.phase == Phase::cycle && !mark_cycles_)) return;
  if (++events_ > kEventsMax) return;
  if (event.phase == Phase::cycle) {
    file_ << R"({"name":"CYCLE_START","ph":"i","s":"g","pid":0,"tid":0,"ts":)"
          << in_microseconds(event.begin) << "},\n";
    return;
  }
  const int row = row_of(event.name);
  file_ << R"({"name":")" << name_in_timeline(event) << R"(","ph":"X","pid":0,"tid":)" << row
        << R"(,"ts":)" << in_microseconds(event.begin) << R"(,"dur":)"
        << in_microseconds(event.end - event.begin) << "},\n";
}

}  // namespace trainyard::gradients
