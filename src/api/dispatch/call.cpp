#include "dispatch/call.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/log.hpp"
#include "shapes/services.hpp"

namespace trainyard::api {
namespace {

// "" = unknown.
std::string_view name_of(const Call& call) {
  if (call.route.operation) return call.route.operation->name;
  return call.route.shell ? std::string_view(call.route.operation_name) : std::string_view();
}

}  // namespace

const shapes::Service& service_of(const Call& call) {
  return call.route.service ? *call.route.service : *all_services()[0];
}

void accept(Call& call, const Signer& signer) {
  call.context.principal = signer.principal;
  call.context.region = signer.claim.scope.region;
  call.context.source_ip = call.head.peer_address();
  call.context.secure = call.head.tls;
  call.context.user_agent = call.head.headers.get("user-agent");
  if (call.context.principal.source_ip.empty()) return;
  call.context.source_ip = call.context.principal.source_ip;
  call.context.secure = call.context.principal.secure &&
                        (call.head.tls || call.context.principal.peer_key_id.empty());
}

std::string RequestIds::next() {
  std::array<char, kBytes> own;
  {
    const MutexLock lock(mutex_);
    if (left_ == 0) {
      random_.fill(std::as_writable_bytes(std::span(bytes_)));
      left_ = kIdsAtOnce;
    }
    std::copy_n(&bytes_[--left_ * kBytes], kBytes, own.begin());
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id = "00000000-0000-0000-0000-000000000000";
  size_t at = 0;
  for (const char byte : own) {
    if (id[at] == '-') ++at;
    id[at++] = kDigits[uint8_t(byte) >> 4];
    id[at++] = kDigits[uint8_t(byte) & 15];
  }
  return id;
}

CallRecorder::CallRecorder(const Services& services, observe::AuditLog* audit)
    : services_(services), audit_(audit, services.clock), ids_(services.random) {}

void CallRecorder::record(const Call& call, int status, std::string_view code) {
  const auto lasted = services_.clock.monotonic() - call.begun;
  if (services_.statistics) services_.statistics->add(call.route.operation, status, lasted);
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(lasted);
  const std::string_view operation = name_of(call);
  log(status >= 500 && status != 501 ? Level::warning : Level::info, "api",
      operation.empty() ? "unknown operation" : operation,
      {{"request", call.context.request_id},
       {"status", std::to_string(status)},
       {"error", std::string(code.empty() ? "none" : code)},
       {"principal", call.context.principal.arn.empty() ? "unknown" : call.context.principal.arn},
       {"region", call.context.region.empty() ? "unknown" : call.context.region},
       {"microseconds", std::to_string(took.count())}});
  audit(call, status, code);
}

void CallRecorder::record_end_of_shell(const Call& call, std::chrono::nanoseconds opened) {
  Context then = call.context;
  then.now = services_.clock.now();
  const auto lasted =
      std::chrono::floor<std::chrono::seconds>(services_.clock.monotonic() - opened);
  audit_.append({then, *call.route.service, kShellEnded, 200, "", *call.resources, ids_.next(),
                 call.host, lasted});
}

std::optional<Accesses> CallRecorder::note_resources(const Call& call, const void* input) const {
  if (!audit_.is_on() || !access_table_.has(*call.route.operation)) return {};
  Accesses accesses = access_table_.find(call.context, *call.route.operation, input);
  call.resources->clear();
  for (const Access& access : accesses.all) call.resources->push_back(access.resource);
  return accesses;
}

void CallRecorder::audit(const Call& call, int status, std::string_view code) {
  const std::string_view operation = name_of(call);
  if (!audit_.is_on() || operation.empty()) return;
  audit_.append({call.context, *call.route.service, operation, status, code, *call.resources,
                 ids_.next(), call.host});
}

}  // namespace trainyard::api
