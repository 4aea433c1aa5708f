// Declares the helpers of FSx's operations: errors by AWS's names, request tokens, pages and tags.
//
// Threads: pure functions; the registered operations run on stream threads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "file_systems/check.hpp"
#include "file_systems/file_systems.hpp"
#include "operations/services.hpp"
#include "operations/table.hpp"
#include "operations/tags.hpp"
#include "protocol/errors.hpp"
#include "shapes/fsx.hpp"

namespace trainyard::api::fsx {

namespace aws = shapes::fsx;
using file_systems::Snapshot;

// -- errors

inline Failure fsx_failure(std::string_view code, std::string message) {
  return {400, std::string(code), std::move(message)};
}
inline Failure bad_request(std::string message) {
  return fsx_failure("BadRequest", std::move(message));
}
// Makes the failure for an unsupported member. Such members are rejected, never ignored.
inline Failure unsupported_member(std::string_view member, std::string_view instead = "") {
  return bad_request(std::string(member) + " is not offered by this server" +
                     std::string(instead.empty() ? "" : ": ") + std::string(instead));
}
// Converts an error of file_systems to a failure, by its Fault.
Failure failure_of_fsx(const Error& error);

// Converts the error of a result of file_systems.
template <class T>
Outcome<T> with_fsx_failure(Result<T> result) {
  if (!result) return failure_of_fsx(result.error());
  return *std::move(result);
}
inline Outcome<Done> with_fsx_failure(const Result<void>& result) {
  if (!result) return failure_of_fsx(result.error());
  return Done{};
}

// Returns the file systems of the server. Errors: why the server does not offer FSx.
Outcome<file_systems::FileSystems*> file_systems_of(const Services& services);

// -- requests that are repeated with the same token

std::string digest_of(const shapes::Shape& shape, const void* request);
template <class Operation>
file_systems::RequestMark mark_of(const typename Operation::Input& in) {
  return {in.client_request_token.value_or(""), digest_of(*Operation::shape().input, &in)};
}
// Returns the key of the resource that an earlier request with this token created in the region; ""
// = none. Errors: IncompatibleParameterError: the earlier request had other parameters.
template <class T>
Outcome<std::string> find_earlier_request(const std::map<std::string, T>& all,
                                          const std::string& region,
                                          const file_systems::RequestMark& mark) {
  if (mark.token.empty()) return std::string();
  for (const auto& [key, each] : all) {
    if (each.mark.token != mark.token || file_systems::region_of(key) != region) continue;
    if (each.mark.digest == mark.digest) return key;
    return fsx_failure("IncompatibleParameterError",
                       "The client request token was used by a request with other parameters");
  }
  return std::string();
}

// -- pages

inline constexpr int64_t kResultsMax = 1'000;  // of a page whose request has no limit

// Returns a page of the items that `wanted` accepts, after the token's item, ordered by key.
template <class T, class Wanted, class Show>
auto page_of(const std::map<std::string, T>& all, const std::string& region,
             const std::optional<int64_t>& results_max, const std::optional<std::string>& token,
             std::optional<std::string>& next_token, const Wanted& wanted, const Show& show)
    -> Outcome<std::vector<decltype(show(all.begin()->first, all.begin()->second))>> {
  std::vector<decltype(show(all.begin()->first, all.begin()->second))> page;
  std::string after = file_systems::key_of(region, "");
  if (token) {
    const auto text = from_base64(*token);
    if (!text || !text->starts_with(after)) return bad_request("The pagination token is not valid");
    after = *text;
  }
  const auto limit = size_t(std::min(results_max.value_or(kResultsMax), kResultsMax));
  std::string last;
  for (auto at = all.upper_bound(after); at != all.end(); ++at) {
    if (file_systems::region_of(at->first) != region) break;
    if (!wanted(at->second)) continue;
    if (page.size() == limit) {
      next_token = to_base64(last);
      break;
    }
    last = at->first;
    page.push_back(show(at->first, at->second));
  }
  return page;
}

// -- tags

inline constexpr size_t kTagsMax = 50;  // of one resource, as AWS
Outcome<Done> add_tags(file_systems::Tags& tags, const std::vector<aws::Tag>& added);
Outcome<file_systems::Tags> tags_of(const std::optional<std::vector<aws::Tag>>& requested);

// -- texts

std::string lifecycle_text(file_systems::Lifecycle lifecycle);
// Returns the automatic imports of a policy. Errors: BadRequest: an unsupported policy.
Outcome<file_systems::AutoImport> auto_import_of(const std::string& policy);
std::string text_of(file_systems::AutoImport automatic);
// Checks that the bucket of an S3 path exists. Errors: failures with `code` and `message`.
Outcome<Done> check_bucket(const Services& services, const std::string& path, std::string_view code,
                           const std::string& message);

void add_file_systems(OperationTable& table, const Settings& settings, const Services& services);
void add_associations(OperationTable& table, const Services& services);
void add_tasks(OperationTable& table, const Services& services);
void add_tag_operations(OperationTable& table, const Services& services);

}  // namespace trainyard::api::fsx
