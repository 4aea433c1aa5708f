// Declares the helpers of Batch's operations: names of resources in requests, tags, pages of lists,
// and changes, whose answers are sent once they are durable.
//
// Threads: pure functions, except scan_jobs(), change_batch_resource() and remove_batch_resource(),
// which call control.
// Lifetime: services outlive the answers.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/thread_safety.hpp"
#include "batch/arn.hpp"
#include "batch/catalog.hpp"
#include "batch_api/conversions.hpp"
#include "batch_api/operations.hpp"

namespace trainyard::api::batch_api {

// Limits of a listing with a filter: the jobs read from the ledger at a time, and for one page. The
// client continues with the page's token.
inline constexpr size_t kScanJobs = 200;
inline constexpr size_t kScanJobsMax = 20'000;

domain::JobKey batch_resource_key(const Context& context, const std::string& name_or_arn,
                                  std::string_view kind);
std::string batch_resource_arn(const Context& context, std::string_view kind,
                               const std::string& name);

using TagMap = std::map<std::string, std::string>;
// The prefix of a tag that defines a metric. The rest of the key is the metric's name, and the
// tag's value is a regular expression that finds the metric's values in the job's log.
inline constexpr std::string_view kMetricTag = "trainyard:metric:";
// Errors: ClientException (reserved keys, characters that AWS does not allow in tags).
Outcome<std::vector<domain::Tag>> batch_tags_in(const std::optional<TagMap>& tags);
// Converts tags for a response, without those that are internal to the server.
TagMap batch_tags_out(const std::vector<domain::Tag>& tags);

// Errors: ClientException (outside 1 to kPageMaxBatch).
Outcome<int64_t> results_max_of(const std::optional<int64_t>& requested);

// Converts quantities by unit to a list of a response's structures.
template <class Detail>
std::vector<Detail> by_unit(const std::map<std::string, double>& quantities) {
  std::vector<Detail> out;
  for (const auto& [unit, quantity] : quantities) {
    Detail detail;
    detail.capacity_unit = unit;
    detail.quantity = quantity;
    out.push_back(std::move(detail));
  }
  return out;
}

// Reads the revision after the ':' in a definition's name. Returns 0, which no definition has, for
// a text that policies would not match: one with a sign or leading zeros.
uint32_t revision_in(std::string_view digits);

// A definition in a request: "train", "train:3" or an ARN of either.
struct DefinitionName {
  std::string name;
  std::optional<uint32_t> revision;
};
DefinitionName definition_name_in(const std::string& name_or_arn);

Failure no_such_resource(std::string_view what, const std::string& name);

// Convert a request to JSON in the client's form, and back to its structure.
Result<Json> json_in(const shapes::Shape& shape, const void* request);
template <class Operation>
Outcome<Json> json_of(const typename Operation::Input& request) {
  return TRY(json_in(*Operation::shape().input, &request));
}
Result<void> read_json_into(const shapes::Shape& shape, const Json& json, void* structure);
// Returns the shape of the elements of a list in the operation's output.
const shapes::Shape& element_of(const shapes::OperationShape& operation, std::string_view member);

// Returns control's copy of an unfinished job, which has a pending reason; the ledger stores none.
// Returns `stored` for other jobs.
std::shared_ptr<const domain::Job> current_job(const Services& services, const Context& context,
                                               domain::Job stored);

// Returns a page of at most results_max current jobs of `query` that `wanted` accepts, and sets
// query.token for the next page, "" at the end. Jobs that `wanted` rejects count as read, so a page
// may be short.
Outcome<std::vector<std::shared_ptr<const domain::Job>>> scan_jobs(
    const Services& services, const Context& context, ledger::JobQuery& query, size_t results_max,
    const std::function<bool(const domain::Job&)>& wanted);

// Returns whether a pattern ("test1*") matches the name, ignoring case. Without patterns, all names
// match.
bool any_matches(const std::vector<std::string>& patterns, const std::string& name);
// Reads milliseconds since 1970. Errors: ClientException.
Outcome<Instant> filter_instant(const std::string& name, const std::string& value);

// Changes the resource, sets its tags, and answers with the output of `make`. For a definition it
// appends the revision to the ARN.
template <class Output>
void change_batch_resource(const Services& services, trainyard::batch::ResourceChange how,
                           trainyard::batch::Resource resource, std::string arn,
                           std::vector<domain::Tag> tags,
                           std::function<Output(const trainyard::batch::Resource&)> make,
                           Answer<Output> answer) {
  services.control.change_resource(
      {how, std::move(resource)},
      [&control = services.control, arn = std::move(arn), tags = std::move(tags),
       make = std::move(make),
       answer = std::move(answer)](Result<trainyard::batch::Resource> changed) {
        if (!changed) return answer(std::move(changed).error());
        const Output out = make(*changed);
        if (tags.empty()) return answer(out);
        std::string full_arn = arn;
        if (const auto* definition = std::get_if<trainyard::batch::JobDefinition>(&*changed))
          full_arn += ":" + std::to_string(definition->revision);
        control.set_tags(full_arn, tags, {}, [answer, out](Result<std::vector<domain::Tag>> set) {
          if (set) return answer(out);
          answer(std::move(set).error());
        });
      });
}

// Creates or updates the resource of a request, and answers with `out` and the resource's ARN.
// `resource` may be the error that the request is answered with.
template <class Output, class Resource>
void change_named_resource(const Services& services, const Context& context,
                           trainyard::batch::ResourceChange how, std::string_view kind,
                           Outcome<Resource> resource, const std::optional<TagMap>& tags,
                           Output out, std::optional<std::string> Output::*arn,
                           const Answer<Output>& answer) {
  if (!resource) return answer(std::move(resource).error());
  auto stored_tags = batch_tags_in(tags);
  if (!stored_tags) return answer(std::move(stored_tags).error());
  const std::string full_arn = batch_resource_arn(context, kind, resource->key.name);
  out.*arn = full_arn;
  change_batch_resource<Output>(
      services, how, *std::move(resource), full_arn, *std::move(stored_tags),
      [out = std::move(out)](const auto&) { return out; }, answer);
}

// Deleting a resource that does not exist is not an error, as on AWS.
template <class Resource, class Output>
void remove_batch_resource(const Services& services, domain::JobKey key, bool present,
                           const Answer<Output>& answer) {
  if (!present) return answer(Output{});
  Resource resource;
  resource.key = std::move(key);
  change_batch_resource<Output>(
      services, trainyard::batch::ResourceChange::remove, std::move(resource), "", {},
      [](const auto&) { return Output{}; }, answer);
}

inline constexpr size_t kManyJobsMax = 50;  // cancelled or terminated by one request, as on AWS

// Calls `start` for each job. Once all have called back, answers with the ids of the changed jobs
// and the failures of the others. Response and Detail are the types of CancelJobs or of an
// operation with the same members. `start` calls back once, from any thread.
template <class Response, class Detail>
void change_each_job(
    const std::vector<std::string>& ids,
    const std::function<void(const std::string& id, std::function<void(Outcome<Done>)>)>& start,
    Answer<Response> answer) {
  if (ids.empty() || ids.size() > kManyJobsMax)
    return answer(
        client_exception("jobs must name 1 to " + std::to_string(kManyJobsMax) + " jobs"));
  // Shared by the callbacks of all jobs. The last callback is the last owner.
  struct Gathered {
    Mutex mutex;
    std::vector<std::optional<Failure>> failures GUARDED_BY(mutex);
    size_t left GUARDED_BY(mutex) = 0;
    std::vector<std::string> ids;
    Answer<Response> answer;
  };
  auto gathered = std::make_shared<Gathered>();
  {
    const MutexLock lock(gathered->mutex);
    gathered->failures.resize(ids.size());
    gathered->left = ids.size();
  }
  gathered->ids = ids;
  gathered->answer = std::move(answer);
  for (size_t i = 0; i < ids.size(); ++i)
    start(ids[i], [gathered, i](Outcome<Done> done) {
      std::vector<std::optional<Failure>> failures;
      {
        const MutexLock lock(gathered->mutex);
        if (!done) gathered->failures[i] = done.failure(shapes::batch::kService);
        if (--gathered->left > 0) return;
        failures.swap(gathered->failures);
      }
      Response out;
      out.successful.emplace();
      out.errors.emplace();
      for (size_t at = 0; at < gathered->ids.size(); ++at) {
        if (!failures[at]) {
          out.successful->push_back(gathered->ids[at]);
          continue;
        }
        Detail detail;
        detail.job = gathered->ids[at];
        detail.code = failures[at]->code;
        detail.message = failures[at]->message;
        out.errors->push_back(std::move(detail));
      }
      gathered->answer(std::move(out));
    });
}

// Returns a page of the region's resources that `wanted` accepts, described by `make`.
template <class Detail, class Resource>
Outcome<std::vector<Detail>> page_of(const Context& context,
                                     const std::map<domain::JobKey, Resource>& resources,
                                     const std::function<bool(const Resource&)>& wanted,
                                     int64_t results_max, const std::string& token,
                                     std::optional<std::string>& next_token,
                                     const std::function<Outcome<Detail>(const Resource&)>& make) {
  std::vector<Detail> out;
  std::string last;
  for (auto at = resources.upper_bound({context.region, token}); at != resources.end(); ++at) {
    if (at->first.region != context.region) break;
    if (!wanted(at->second)) continue;
    if (int64_t(out.size()) == results_max) {
      next_token = last;
      return out;
    }
    out.push_back(TRY(make(at->second)));
    last = at->first.name;
  }
  return out;
}

// Returns a filter that accepts resources with one of the names or ARNs; all without names.
template <class Resource>
std::function<bool(const Resource&)> named_by(const std::optional<std::vector<std::string>>& names,
                                              std::string_view kind) {
  return [&names, kind](const Resource& resource) {
    return !names || names->empty() || std::ranges::any_of(*names, [&](const auto& name) {
      return trainyard::batch::name_in_arn(name, kind) == resource.key.name;
    });
  };
}

// Each registers the operations on some kinds of resources.
void add_catalog(OperationTable& table, const Settings& settings, const Services& services);
void add_definitions(OperationTable& table, const Settings& settings, const Services& services);
void add_tags(OperationTable& table, const Settings& settings, const Services& services);
void add_jobs(OperationTable& table, const Settings& settings, const Services& services);
void add_policies(OperationTable& table, const Settings& settings, const Services& services);
void add_consumables(OperationTable& table, const Settings& settings, const Services& services);
void add_service(OperationTable& table, const Settings& settings, const Services& services);
void add_snapshot(OperationTable& table, const Settings& settings, const Services& services);

}  // namespace trainyard::api::batch_api
