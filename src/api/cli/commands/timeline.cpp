// `trainyard timeline`: writes the timeline of a job to a file for Perfetto.
#include <algorithm>
#include <string>

#include "base/text.hpp"
#include "cli/commands.hpp"
#include "os/files.hpp"

namespace trainyard::cli {

Result<int> timeline_command(CommandContext& context, const Arguments& arguments) {
  const JobView job = TRY(find_job(context, arguments.operands[0])).job;
  const bool otlp = arguments.has("--otlp");
  const Json answer =
      TRY(call_about(context, job.name, client::Service::trainyard, "GetJobTimeline",
                     {{"JobName", job.name}, {"Format", otlp ? "otlp" : "trace-event"}}));
  const std::string trace = TRY(string_at(answer, "Trace"));
  if (const auto notes = answer.find("Notes"); notes != answer.end() && notes->is_array())
    for (const Json& note : *notes)
      if (note.is_string())
        context.terminal.write_error("note: " + plain_text(note.get<std::string>()) + "\n");
  std::string path = arguments.value("--output");
  if (path == "-") {
    TRY(context.terminal.write(trace));
    return 0;
  }
  if (path.empty()) {
    path = job.name + (otlp ? ".otlp.json" : ".trace.json");
    std::ranges::replace(path, '/', '_');
    // The user chose no file, so a link with this name is replaced, not followed.
    TRY(os::write_file_durably(path, trace));
  } else {
    TRY(os::write_file(path, trace));
  }
  TRY(context.terminal.write("wrote " + plain_text(path) + " (" + human_bytes(trace.size()) +
                             "): " +
                             (otlp ? "post it to /v1/traces of an OpenTelemetry collector"
                                   : "open it in ui.perfetto.dev or chrome://tracing") +
                             "\n"));
  return 0;
}

}  // namespace trainyard::cli
