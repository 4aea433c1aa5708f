#include "gateway/hello_check.hpp"

#include "base/plural.hpp"
#include "wire/codec.hpp"

namespace trainyard::gateway {
namespace {

// Compares in a time that does not depend on the bytes, which would reveal parts of a token.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = difference | (uint8_t(a[i]) ^ uint8_t(b[i]));
  return difference == 0;
}

}  // namespace

std::string refusal_of(const domain::Job& job, const wire::Hello& hello,
                       const std::string& peer_name, const std::optional<LinkedAgent>& other) {
  if (const auto version = wire::common_version(hello); !version) return version.error().message;
  const domain::Attempt* attempt = job.attempt();
  if (!attempt || attempt->number != hello.attempt.number)
    return "the attempt has ended: it is not the job's current attempt";
  if (!same_secret(attempt->token, hello.token)) return "the token is not the attempt's token";
  if (attempt->mutual_tls && peer_name != wire::agent_name(hello.attempt))
    return peer_name.empty() ? "the attempt's agents must connect by TLS"
                             : "the certificate is for another attempt: " + peer_name;
  if (hello.host >= attempt->hosts.size())
    return "unknown host " + std::to_string(hello.host) + ": the attempt has " +
           counted(attempt->hosts.size(), "host");
  if (attempt->hosts[hello.host].state == domain::HostState::lost)
    return "the host was declared lost";
  if (other && other->allocation != hello.allocation)
    return "another agent serves the attempt, in Slurm job " + std::to_string(other->allocation);
  return "";
}

}  // namespace trainyard::gateway
