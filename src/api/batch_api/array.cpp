// Converts array jobs: arrayProperties and dependsOn of a request, and the descriptions of arrays
// and their children.
#include "base/text.hpp"
#include "batch/arn.hpp"
#include "batch/limits.hpp"
#include "batch/status.hpp"
#include "batch_api/conversions.hpp"
#include "domain/stage.hpp"

namespace trainyard::api::batch_api {
namespace {

namespace batch = shapes::batch;
namespace catalog = trainyard::batch;

// All seven statuses, as on AWS.
std::map<std::string, int64_t> summary_of(const domain::ChildCounts& counts) {
  std::map<std::string, int64_t> summary;
  for (size_t status = 0; status < counts.of.size(); ++status)
    summary[std::string(catalog::status_name(domain::Stage(status)))] = counts.of[status];
  return summary;
}

template <class Properties, class Description>
void add_array_properties(Description& description, const domain::Job& job,
                          const domain::ChildCounts& counts, Instant now) {
  if (job.parent != 0) {
    description.array_properties.emplace().index = domain::array_index(job);
  } else if (job.is_array()) {
    Properties& properties = description.array_properties.emplace();
    properties.size = job.spec.array.size;
    properties.status_summary = summary_of(counts);
    // The counts are current, and final once the job has finished.
    properties.status_summary_last_updated_at =
        to_milliseconds(job.finished() ? job.modified : now);
  }
}

Outcome<Done> read_dependency(const batch::JobDependency& dependency, domain::JobSpec& spec) {
  const std::string type = dependency.type.value_or("");
  const std::string id(catalog::name_in_arn(dependency.job_id.value_or(""), catalog::kJobArn));
  if (!type.empty() && spec.array.size == 0)
    return client_exception("A dependency of type " + type +
                            " is for array jobs: this job has no arrayProperties");
  if (type == "SEQUENTIAL") {
    if (!id.empty())
      return client_exception(
          "A dependency of type SEQUENTIAL has no jobId: each child depends on the previous one of "
          "its own array");
    spec.array.sequential = true;
    return Done{};
  }
  if (id.empty()) return client_exception("dependsOn needs a jobId");
  (type == "N_TO_N" ? spec.depends_on_alike : spec.depends_on).push_back(id);
  return Done{};
}

}  // namespace

Outcome<Done> read_array(const batch::SubmitJobRequest& request, domain::JobSpec& spec) {
  if (request.array_properties && request.array_properties->size) {
    const int64_t size = *request.array_properties->size;
    if (size < catalog::kArraySizeMin || size > domain::kArraySizeMax)
      return client_exception(
          "arrayProperties.size must be between " + std::to_string(catalog::kArraySizeMin) +
          " and " + std::to_string(domain::kArraySizeMax) + ", not " + std::to_string(size));
    spec.array.size = uint32_t(size);
  }
  if (!request.depends_on) return Done{};
  if (request.depends_on->size() > catalog::kDependenciesMax)
    return client_exception("A job depends on at most " +
                            std::to_string(catalog::kDependenciesMax) + " jobs");
  for (const auto& each : *request.depends_on) TRY(read_dependency(each, spec));
  return Done{};
}

void add_array(batch::JobDetail& detail, const domain::Job& job, const domain::ChildCounts& counts,
               Instant now) {
  add_array_properties<batch::ArrayPropertiesDetail>(detail, job, counts, now);
}

void add_array(batch::JobSummary& summary, const domain::Job& job,
               const domain::ChildCounts& counts, Instant now) {
  add_array_properties<batch::ArrayPropertiesSummary>(summary, job, counts, now);
}

}  // namespace trainyard::api::batch_api
