// Returns the timeline of a job, for ui.perfetto.dev and chrome://tracing.
#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "auth/authorizer.hpp"
#include "base/plural.hpp"
#include "domain/tracing/trace_context.hpp"
#include "objects/objects.hpp"
#include "protocol/errors.hpp"
#include "shapes/s3.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/operations.hpp"
#include "trainyard_api/timeline/job_trace.hpp"
#include "trainyard_api/timeline/otlp_trace.hpp"
#include "trainyard_api/timeline/trace_limit.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

// The folder of trace files below the job's output, to which the agent copies
// /opt/ml/output/intermediate while the job runs.
constexpr const char* kTraceFolder = "/output/intermediate/timelines/";
constexpr const char* kOtlpFormat = "otlp";
constexpr size_t kTraceFilesMax = 64;
// The limit of all files together: four times the size of a trace, since members are left out.
constexpr size_t kTraceFilesBytesMax = 4 * kTraceBytesMax;
class Timelines {
 public:
  Timelines(const Settings& settings, const Services& services)
      : services_(services), authorizer_(settings, services) {}

  Outcome<own::GetJobTimelineResponse> of(const Context& context,
                                          const own::GetJobTimelineRequest& request) const {
    const auto found =
        services_.control.find({context.region, *request.job_name}, context.may_see_job());
    if (!found && found.error().kind == Kind::not_found)
      return validation_exception("Requested resource not found.");
    if (!found) return found.error();
    const domain::Job& job = **found;
    if (job.is_array())
      return validation_exception(
          "The job is an array, and its children have timelines: request that of one of them, like "
          "JOB:0.");
    own::GetJobTimelineResponse out;
    out.job_name = job.key.name;
    out.trace_id = domain::trace_id_of(job);
    const Instant now = context.own_time(job.clock_offset);
    if (request.format == kOtlpFormat) {
      out.trace = otlp_trace_of(job, now);
      return out;
    }
    const auto place = limit_.enter(context.principal.name);
    if (!place) return throttled(own::kService);
    std::vector<std::string> notes;
    const auto files = files_of(context, job, notes);
    JobTrace trace = trace_of(job, files, now, job.clock_offset - context.clock_offset);
    std::ranges::move(trace.notes, std::back_inserter(notes));
    out.trace = std::move(trace.text);
    if (!notes.empty()) out.notes = std::move(notes);
    return out;
  }

 private:
  // Reads the trace files of the job that the caller may read. After a fault of the object store,
  // files are left out, since the rest of the trace is useful without them.
  std::vector<TraceFile> files_of(const Context& context, const domain::Job& job,
                                  std::vector<std::string>& notes) const {
    auto folder = objects::parse_s3_uri(job.spec.output_uri);
    if (!folder) return {};
    while (folder->key.ends_with('/')) folder->key.pop_back();
    folder->key += (folder->key.empty() ? "" : "/") + job.key.name + kTraceFolder;
    objects::ListQuery query;
    query.prefix = folder->key;
    query.keys_max = kTraceFilesMax + 1;
    const auto page = services_.objects.list(folder->bucket, query);
    if (!page) {
      if (page.error().kind != Kind::not_found)
        notes.push_back("trace files cannot be listed: " + page.error().message);
      return {};
    }
    if (page->objects.size() > kTraceFilesMax)
      notes.push_back("the first " + std::to_string(kTraceFilesMax) + " trace files only");
    std::vector<TraceFile> files;
    size_t denied = 0;
    const size_t count = std::min(page->objects.size(), kTraceFilesMax);
    for (const objects::ObjectInfo& object : std::span(page->objects).first(count)) {
      if (!object.key.starts_with(folder->key)) continue;  // stores of others may ignore the prefix
      if (authorizer_.check(context, shapes::s3::kService, "s3:GetObject",
                            "arn:aws:s3:::" + folder->bucket + "/" + object.key)) {
        ++denied;
        continue;
      }
      auto file = read(folder->bucket, object, kTraceFilesBytesMax / count);
      file.name = object.key.substr(folder->key.size());
      if (!file.bytes.empty())
        files.push_back(std::move(file));
      else if (object.bytes > 0)
        notes.push_back(file.name + ": it could not be read");
    }
    if (denied > 0)
      notes.push_back(counted(denied, "trace file") +
                      " left out: reading them needs s3:GetObject on " + folder->key + "*");
    return files;
  }

  // Reads the beginning of a file. The result has no bytes if it cannot be read.
  TraceFile read(const std::string& bucket, const objects::ObjectInfo& object,
                 size_t bytes_max) const {
    TraceFile file;
    file.whole = object.bytes <= bytes_max;
    if (object.bytes == 0) return file;
    const auto reader = services_.objects.get(bucket, object.key,
                                              objects::Range{.first = 0, .last = bytes_max - 1});
    if (!reader) return file;
    std::string bytes(std::min<uint64_t>(object.bytes, bytes_max), '\0');
    size_t filled = 0;
    while (filled < bytes.size()) {
      const auto count = (*reader)->read(std::span(bytes).subspan(filled));
      file.whole &= count && *count > 0;
      if (!count || *count == 0) break;
      filled += *count;
    }
    bytes.resize(filled);
    file.bytes = std::move(bytes);
    return file;
  }

  const Services& services_;
  const Authorizer authorizer_;
  mutable TraceLimit limit_;
};

}  // namespace

void add_timelines(OperationTable& table, const Settings& settings, const Services& services) {
  table.add<own::GetJobTimeline>(
      [timelines = std::make_shared<Timelines>(settings, services)](
          const Context& context, const own::GetJobTimelineRequest& request) {
        return timelines->of(context, request);
      });
}

}  // namespace trainyard::api::trainyard_api
