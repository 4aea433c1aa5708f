#include "cli/views/event_view.hpp"

#include <initializer_list>

#include "base/text.hpp"
#include "base/time.hpp"

namespace trainyard::cli {
namespace {

constexpr size_t kDetailBytesMax = 200;  // of an event whose shape is not known here

std::string text_in(const Json& object, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (object.is_object())
      if (const auto found = object.find(name); found != object.end() && found->is_string())
        return found->get<std::string>();
  return "";
}

Paint paint_of(const std::string& status) {
  if (status == "Failed" || status == "FAILED" || status == "ALARM") return Paint::red;
  if (status == "Completed" || status == "SUCCEEDED" || status == "OK") return Paint::green;
  if (status == "Stopped" || status == "Stopping") return Paint::yellow;
  return Paint::cyan;
}

}  // namespace

std::string event_line(const OutputStyle& style, const Json& event) {
  const Json none = Json::object();
  const auto found = event.is_object() ? event.find("detail") : event.end();
  const Json& detail = event.is_object() && found != event.end() ? *found : none;
  const std::string name = text_in(detail, {"TrainingJobName", "jobName", "alarmName", "JobName"});
  const std::string id = text_in(detail, {"jobId"});
  const std::string status = text_in(detail, {"TrainingJobStatus", "status"});
  const std::string phase = text_in(detail, {"SecondaryStatus"});
  const bool is_fault = text_in(event, {"source"}) == "trainyard";
  std::string when = text_in(event, {"time"});
  if (const auto at = parse_iso8601(when)) when = time_text(*at);
  std::string line = paint(style, Paint::dim, plain_text(when)) + "  " +
                     plain_text(text_in(event, {"detail-type"}));
  if (!name.empty()) line += "  " + paint(style, Paint::bold, plain_text(name));
  if (!id.empty()) line += "  " + paint(style, Paint::dim, plain_text(id));
  if (!status.empty()) line += "  " + paint(style, paint_of(status), plain_text(status));
  if (!phase.empty() && phase != status) line += "  " + plain_text(phase);
  if (is_fault)
    line += "  " + plain_text(text_in(detail, {"State"})) + ": " +
            plain_text(text_in(detail, {"Message"}));
  if (name.empty() && status.empty())
    line += "  " + plain_text(shorten(dump(detail), kDetailBytesMax));
  return line + "\n";
}

}  // namespace trainyard::cli
