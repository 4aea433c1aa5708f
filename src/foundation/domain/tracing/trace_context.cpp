#include "domain/tracing/trace_context.hpp"

#include "base/sha256.hpp"
#include "base/text.hpp"

namespace trainyard::domain {
namespace {

constexpr size_t kTraceIdBytes = 16, kSpanIdBytes = 8;

// Returns a text that identifies the job. Names of accounts, regions and jobs contain no newline.
std::string identity_of(const Job& job) {
  return job.account + "\n" + job.key.region + "\n" + job.key.name + "\n" +
         std::to_string(job.number) + "\n" + std::to_string(to_milliseconds(job.created));
}

}  // namespace

std::string trace_id_of(const Job& job) {
  return to_hex(bytes_of(sha256("trace\n" + identity_of(job))).substr(0, kTraceIdBytes));
}

std::string span_id_of(const Job& job, std::string_view place) {
  const std::string text = "span\n" + identity_of(job) + "\n" + std::string(place);
  return to_hex(bytes_of(sha256(text)).substr(0, kSpanIdBytes));
}

std::string attempt_place(uint32_t attempt) { return "attempt/" + std::to_string(attempt); }

std::string host_place(uint32_t attempt, HostIndex host) {
  return attempt_place(attempt) + "/" + host_name(host);
}

std::string trace_parent_of(const Job& job, uint32_t attempt, HostIndex host) {
  return "00-" + trace_id_of(job) + "-" + span_id_of(job, host_place(attempt, host)) + "-01";
}

}  // namespace trainyard::domain
