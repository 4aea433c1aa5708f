#include "batch_api/requests.hpp"

#include "base/text.hpp"
#include "batch/arn.hpp"
#include "protocol/json.hpp"
#include "sagemaker/training_job.hpp"

namespace trainyard::api::batch_api {

namespace {

// AWS allows letters and numbers of all languages.
bool has_characters_of_tags(std::string_view text) {
  return std::ranges::all_of(text, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c >= 0x80 || std::string_view(" +-=._:/@").find(char(c)) != std::string_view::npos;
  });
}

}  // namespace

domain::JobKey batch_resource_key(const Context& context, const std::string& name_or_arn,
                                  std::string_view kind) {
  return {context.region, std::string(trainyard::batch::name_in_arn(name_or_arn, kind))};
}

std::string batch_resource_arn(const Context& context, std::string_view kind,
                               const std::string& name) {
  return trainyard::batch::arn_of(context.principal.account, context.region, kind, name);
}

Outcome<std::vector<domain::Tag>> batch_tags_in(const std::optional<TagMap>& tags) {
  std::vector<domain::Tag> out;
  if (!tags) return out;
  for (const auto& [key, value] : *tags) {
    if (to_lower(key).starts_with("aws:"))
      return client_exception("Tag keys that begin with aws: are reserved: " + key);
    if (!has_characters_of_tags(key) ||
        (!key.starts_with(kMetricTag) && !has_characters_of_tags(value)))
      return client_exception("The tag '" + key +
                              "' has other characters than AWS allows in keys and values: letters, "
                              "numbers, spaces and + - = . _ : / @");
    out.push_back({key, value});
  }
  return out;
}

TagMap batch_tags_out(const std::vector<domain::Tag>& tags) {
  TagMap out;
  for (const auto& tag : tags)
    if (tag.key != kCreatedByTag) out[tag.key] = tag.value;
  return out;
}

Outcome<int64_t> results_max_of(const std::optional<int64_t>& requested) {
  if (requested && (*requested < 1 || *requested > kPageMaxBatch))
    return client_exception("maxResults must be between 1 and " + std::to_string(kPageMaxBatch));
  return requested.value_or(kPageMaxBatch);
}

uint32_t revision_in(std::string_view digits) {
  const auto revision = parse_int(digits);
  const bool is_one =
      revision && *revision > 0 && *revision < UINT32_MAX && std::to_string(*revision) == digits;
  return is_one ? uint32_t(*revision) : 0;
}

DefinitionName definition_name_in(const std::string& name_or_arn) {
  const std::string name(
      trainyard::batch::name_in_arn(name_or_arn, trainyard::batch::kDefinitionArn));
  const size_t colon = name.rfind(':');
  if (colon == std::string::npos) return {name, {}};
  return {name.substr(0, colon), revision_in(std::string_view(name).substr(colon + 1))};
}

Failure no_such_resource(std::string_view what, const std::string& name) {
  return client_exception("the " + std::string(what) + " " + shorten(name, 256) +
                          " does not exist");
}

std::shared_ptr<const domain::Job> current_job(const Services& services, const Context& context,
                                               domain::Job stored) {
  if (!stored.finished())
    if (auto live = services.control.find(stored.key, context.may_see_job()))
      return *std::move(live);
  return std::make_shared<const domain::Job>(std::move(stored));
}

Outcome<std::vector<std::shared_ptr<const domain::Job>>> scan_jobs(
    const Services& services, const Context& context, ledger::JobQuery& query, size_t results_max,
    const std::function<bool(const domain::Job&)>& wanted) {
  std::vector<std::shared_ptr<const domain::Job>> found;
  for (size_t scanned = 0; scanned < kScanJobsMax;) {
    query.jobs_max = std::min(kScanJobs, results_max - found.size());
    auto page = services.control.list(query);
    if (!page && page.error().kind == Kind::invalid) return client_exception(page.error().message);
    if (!page) return page.error();
    for (auto& stored : page->jobs)
      if (wanted(stored)) found.push_back(current_job(services, context, std::move(stored)));
    scanned += page->jobs.size();
    query.token = page->next_token;
    if (query.token.empty() || found.size() >= results_max) break;
  }
  return found;
}

bool any_matches(const std::vector<std::string>& patterns, const std::string& name) {
  return patterns.empty() || std::ranges::any_of(patterns, [&](const auto& pattern) {
           return domain::matches(pattern, name);
         });
}

Outcome<Instant> filter_instant(const std::string& name, const std::string& value) {
  const auto at = parse_int(value);
  if (!at) return client_exception(name + " needs milliseconds since 1970");
  return from_milliseconds(*at);
}

Result<Json> json_in(const shapes::Shape& shape, const void* request) {
  std::string text;
  write_json(shape, request, text);
  return parse_json(text);
}

Result<void> read_json_into(const shapes::Shape& shape, const Json& json, void* structure) {
  return read_json(shape, dump(json), structure);
}

const shapes::Shape& element_of(const shapes::OperationShape& operation, std::string_view member) {
  const auto& members = operation.output->members;
  return *std::ranges::find(members, member, &shapes::Member::name)->shape->element;
}

}  // namespace trainyard::api::batch_api
