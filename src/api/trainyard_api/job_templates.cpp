// Saves, lists and deletes templates of jobs, as records of the ledger.
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "operations/commit_records.hpp"
#include "protocol/json.hpp"
#include "shapes/sagemaker.hpp"
#include "shapes/trainyard.hpp"
#include "trainyard_api/job_template.hpp"
#include "trainyard_api/operations.hpp"

namespace trainyard::api::trainyard_api {
namespace {

namespace own = shapes::trainyard;

constexpr const char* kTemplateRecord = "job_template";
// The limit of a region. All templates are in memory, some KiB each, and users can still read the
// list.
constexpr size_t kTemplatesMax = 500;
constexpr int64_t kTemplatesListedDefault = 20;
constexpr size_t kArnBytesMax = 2048;
// Retries of a change after commits by other writers of records.
constexpr int kTemplateConflictsMax = 10;

domain::RecordKey template_key(const Context& context, const std::string& name) {
  return {kTemplateRecord, context.region + "/" + name};
}

// Returns the range of the records of a region's templates.
auto templates_of(const domain::Records& records, const Context& context) {
  return std::pair(records.all.lower_bound({kTemplateRecord, context.region + "/"}),
                   records.all.lower_bound({kTemplateRecord, context.region + "0"}));  // after '/'
}

// Returns the request in the form of its model, without members that CreateTrainingJob does not
// have.
Outcome<Json> read_template_request(const std::string& text) {
  const shapes::Shape& shape = *shapes::sagemaker::CreateTrainingJob::shape().input;
  shapes::sagemaker::CreateTrainingJobRequest request;
  if (const auto read = read_json(shape, text, &request); !read)
    return validation_exception("TrainingJobRequest: " + read.error().message);
  std::string known;
  write_json(shape, &request, known);
  return TRY(parse_json(known));
}

// Writes a record. Repeats the write if another writer changed records meanwhile. `check` is called
// with the current records before each write.
Outcome<Done> write_template(
    const Services& services, const domain::RecordKey& key, const std::optional<Json>& document,
    const std::function<std::optional<Failure>(const domain::Records&)>& check) {
  for (int conflicts = 0;; ++conflicts) {
    const auto records = services.control.records();
    if (auto failure = check(*records)) return *std::move(failure);
    const auto committed = commit_records(services.control, {{{key, document}}, records->version});
    if (committed) return Done{};
    if (committed.error().kind != Kind::conflict) return committed.error();
    if (conflicts == kTemplateConflictsMax)
      return Error(unavailable("records are being changed by others: try again"));
  }
}

Outcome<own::PutJobTemplateResponse> put_template(const Services& services, const Context& context,
                                                  const own::PutJobTemplateRequest& request) {
  JobTemplate saved;
  saved.description = request.description.value_or("");
  saved.request = TRY(read_template_request(*request.training_job_request));
  saved.secret_environment = request.secret_environment.value_or(std::vector<std::string>());
  saved.saved_by = context.principal.arn.substr(0, kArnBytesMax);
  saved.saved = context.now;
  if (const auto clean = check_no_secrets(saved); !clean)
    return validation_exception(clean.error().message);
  const auto key = template_key(context, *request.template_name);
  const auto fits = [&](const domain::Records& records) -> std::optional<Failure> {
    const auto [first, end] = templates_of(records, context);
    if (records.all.contains(key) || size_t(std::distance(first, end)) < kTemplatesMax) return {};
    return resource_limit_exceeded("a region has at most " + std::to_string(kTemplatesMax) +
                                   " job templates: delete one first");
  };
  TRY(write_template(services, key, to_json(saved), fits));
  return own::PutJobTemplateResponse{};
}

Outcome<own::DeleteJobTemplateResponse> delete_template(
    const Services& services, const Context& context,
    const own::DeleteJobTemplateRequest& request) {
  const auto key = template_key(context, *request.template_name);
  const auto exists = [&](const domain::Records& records) -> std::optional<Failure> {
    if (records.all.contains(key)) return {};
    return validation_exception("The job template " + *request.template_name + " does not exist");
  };
  TRY(write_template(services, key, std::nullopt, exists));
  return own::DeleteJobTemplateResponse{};
}

own::ListJobTemplatesResponse list_templates(const Services& services, const Context& context,
                                             const own::ListJobTemplatesRequest& request) {
  const auto records = services.control.records();
  const auto [first, end] = templates_of(*records, context);
  const auto wanted = size_t(request.max_results.value_or(kTemplatesListedDefault));
  own::ListJobTemplatesResponse out;
  out.templates.emplace();
  auto at = request.next_token
                ? records->all.upper_bound(template_key(context, *request.next_token))
                : first;
  for (; at != end; ++at) {
    if (out.templates->size() == wanted) {
      out.next_token = out.templates->back().template_name;
      break;
    }
    const auto of = job_template_from_json(at->second->document);
    if (!of) continue;  // a later version of the server wrote it
    own::JobTemplate line;
    line.template_name = at->first.second.substr(context.region.size() + 1);
    set_unless_empty(line.description, of->description);
    line.training_job_request = dump(of->request);
    if (!of->secret_environment.empty()) line.secret_environment = of->secret_environment;
    line.saved_by = of->saved_by;
    line.save_time = of->saved;
    out.templates->push_back(std::move(line));
  }
  return out;
}

}  // namespace

void add_job_templates(OperationTable& table, const Settings&, const Services& services) {
  table.add<own::PutJobTemplate>(
      [&](const Context& context, const own::PutJobTemplateRequest& request) {
        return put_template(services, context, request);
      });
  table.add<own::DeleteJobTemplate>(
      [&](const Context& context, const own::DeleteJobTemplateRequest& request) {
        return delete_template(services, context, request);
      });
  table.add<own::ListJobTemplates>(
      [&](const Context& context, const own::ListJobTemplatesRequest& request) {
        return Outcome<own::ListJobTemplatesResponse>(list_templates(services, context, request));
      });
}

}  // namespace trainyard::api::trainyard_api
