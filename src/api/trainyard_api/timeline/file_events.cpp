#include "trainyard_api/timeline/file_events.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/plural.hpp"
#include "base/text.hpp"
#include "trainyard_api/timeline/trace_file.hpp"

namespace trainyard::api::trainyard_api {
namespace {

constexpr size_t kNameBytesMax = 256, kCategoryBytesMax = 128, kIdBytesMax = 64;
constexpr size_t kArgumentsBytesMax = 4 << 10;
constexpr size_t kThreadsMax = 10'000;  // in one file, except those with small numbers
constexpr int64_t kNamedThreadsBegin = 1'000'000'000;  // the first number of such threads
// If a file's clock differs by more, its events would lie outside of the job.
constexpr Duration kClockDifferenceMax = 1min;
// The copied phases: spans, their begins and ends, instants, asynchronous spans, flows and
// counters.
constexpr std::string_view kEventKinds = "XBEiIbnestfC";

std::string text_at(const Json& event, const char* name, size_t bytes_max) {
  const auto found = event.find(name);
  if (found == event.end()) return "";
  return shorten(string_or_dump(*found), bytes_max);
}

int64_t whole_microseconds(double value) { return int64_t(std::floor(value)); }

int64_t microseconds_of(Instant at) { return to_milliseconds(at) * 1000; }

Json arguments_of(const Json& event) {
  const auto found = event.find("args");
  if (found == event.end() || !found->is_object()) return Json::object();
  const size_t bytes = dump(*found).size();
  if (bytes > kArgumentsBytesMax) return {{"bytes_left_out", bytes}};
  return *found;
}

// Converts the events of one file.
class FileEvents {
 public:
  FileEvents(const TraceFile& file, size_t index, int64_t shift, TraceEvents& events)
      : file_(file), index_(index), shift_(shift), events_(events) {}

  void add(const Json& event) {
    const std::string kind = text_at(event, "ph", 8);
    const auto track = track_of(event);
    if (!track) {
      ++skipped_;
    } else if (kind == "M") {
      add_name(event, *track);
    } else if (kind.size() != 1 || kEventKinds.find(kind[0]) == std::string_view::npos) {
      ++skipped_;
    } else if (const auto time = time_of_event(event); !time) {
      ++skipped_;
    } else {
      events_.add(translated(event, kind, *track, *time));
    }
  }

  // Names the file's processes. Called once, after the last event.
  void finish() {
    for (const auto& [id, process] : processes_) {
      const std::string own = named_.contains(process) ? ": " + named_.at(process) : "";
      events_.name_process(process, shorten(file_.name, kNameBytesMax) + own);
    }
  }
  size_t skipped() const { return skipped_; }

 private:
  std::optional<TraceTrack> track_of(const Json& event) {
    const std::string id = text_at(event, "pid", kIdBytesMax);
    auto process = processes_.find(id);
    if (process == processes_.end()) {
      if (int64_t(processes_.size()) == kFileProcessesMax) return std::nullopt;
      const int64_t number =
          kFileProcessesBegin + int64_t(index_) * kFileProcessesMax + int64_t(processes_.size());
      process = processes_.emplace(id, number).first;
    }
    const auto thread = thread_of(event);
    if (!thread) return std::nullopt;
    return TraceTrack{process->second, *thread};
  }

  // Keeps small numbers; numbers other ids.
  std::optional<int64_t> thread_of(const Json& event) {
    const std::string id = text_at(event, "tid", kIdBytesMax);
    if (const auto number = parse_int(id); number && *number >= 0 && *number < kNamedThreadsBegin)
      return *number;
    if (const auto found = threads_.find(id); found != threads_.end()) return found->second;
    if (threads_.size() == kThreadsMax) return std::nullopt;
    return threads_.emplace(id, kNamedThreadsBegin + int64_t(threads_.size())).first->second;
  }

  void add_name(const Json& event, const TraceTrack& track) {
    const std::string kind = text_at(event, "name", kNameBytesMax);
    const auto arguments = event.find("args");
    if (arguments == event.end() || !arguments->is_object()) return;
    const std::string name = text_at(*arguments, "name", kNameBytesMax);
    if (name.empty()) return;
    if (kind == "process_name") named_[track.process] = name;
    if (kind == "thread_name") events_.name_thread(track, name);
  }

  Json translated(const Json& event, const std::string& kind, const TraceTrack& track,
                  const TraceEventTime& time) const {
    const int64_t begin = whole_microseconds(time.begin);
    Json out{{"ph", kind},
             {"name", text_at(event, "name", kNameBytesMax)},
             {"pid", track.process},
             {"tid", track.thread},
             {"ts", shift_ + begin}};
    if (kind == "X") out["dur"] = whole_microseconds(time.begin + time.length) - begin;
    if (event.contains("cat")) out["cat"] = text_at(event, "cat", kCategoryBytesMax);
    if (Json arguments = arguments_of(event); !arguments.empty())
      out["args"] = std::move(arguments);
    // The file's index keeps ids of different files apart.
    if (event.contains("id"))
      out["id"] = std::to_string(index_) + ":" + text_at(event, "id", kIdBytesMax);
    if (kind == "i" || kind == "I") out["s"] = "t";
    if (event.value("bp", Json()) == "e") out["bp"] = "e";
    return out;
  }

  const TraceFile& file_;
  const size_t index_;
  const int64_t shift_;
  TraceEvents& events_;
  std::map<std::string, int64_t> processes_, threads_;
  std::map<int64_t, std::string> named_;
  size_t skipped_ = 0;
};

// Returns the microseconds to add to the instants of a file.
int64_t shift_of(const TraceFile& file, const TraceFileClock& clock, const TraceFrame& frame,
                 std::vector<std::string>& notes) {
  const int64_t ahead = frame.own_ahead.count() * 1000;
  const int64_t first = whole_microseconds(clock.first);
  std::string why = "its clock is unknown";
  if (clock.started) {
    const int64_t shift = whole_microseconds(*clock.started) + ahead;
    if (shift + first >= microseconds_of(frame.begin - kClockDifferenceMax) &&
        shift + first <= microseconds_of(frame.end + kClockDifferenceMax))
      return shift;
    why = "its clock differs";
  }
  notes.push_back(file.name + ": " + why + ", so it is placed where training starts");
  return microseconds_of(frame.trained) - first;
}

}  // namespace

void add_file_events(const std::vector<TraceFile>& files, const TraceFrame& frame, size_t bytes_max,
                     TraceEvents& events, std::vector<std::string>& notes) {
  for (size_t index = 0; index < files.size(); ++index) {
    const TraceFile& file = files[index];
    TraceFileReader reader(file.bytes);
    const TraceFileClock clock = clock_of_file(file.bytes);
    if (!reader.is_trace()) notes.push_back(file.name + ": it has no list of trace events");
    if (clock.events == 0) continue;
    FileEvents translator(file, index, shift_of(file, clock, frame, notes), events);
    const size_t bytes_before = events.bytes(), left_out_before = events.left_out();
    std::optional<Json> event = reader.next();
    for (; event; event = reader.next()) {
      if (events.bytes() - bytes_before >= bytes_max || events.left_out() > left_out_before) break;
      translator.add(*event);
    }
    translator.finish();
    if (event || reader.cut_off() || !file.whole)
      notes.push_back(file.name + ": the first events only");
    if (const size_t skipped = reader.skipped() + translator.skipped(); skipped > 0)
      notes.push_back(file.name + ": " + counted(skipped, "event") + " could not be read");
  }
}

}  // namespace trainyard::api::trainyard_api
