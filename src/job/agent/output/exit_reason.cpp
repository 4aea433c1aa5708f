#include "agent/output/exit_reason.hpp"

#include "agent/driver_failure.hpp"
#include "base/text.hpp"
#include "contract/failure_text.hpp"

namespace trainyard::agent {
namespace {

std::string describe_out_of_memory(const ProcessEnd& end) {
  std::string text = "OutOfMemory: exceeded its " + end.limit;
  std::string users;
  for (const auto& process : end.largest)
    users += (users.empty() ? "" : ", ") + process.name + " (" +
             human_bytes(uint64_t(process.bytes)) + ")";
  if (!users.empty()) text += "; largest processes: " + users;
  return text;
}

}  // namespace

std::string exit_reason(const ProcessEnd& end) {
  if (is_driver_failure(end.failure))
    if (std::string own = script_failure(end.last_output); !own.empty()) {
      ProcessEnd of_script = end;
      of_script.failure = std::move(own);
      return exit_reason(of_script);
    }
  std::string head =
      end.out_of_memory ? describe_out_of_memory(end) : contract::describe_signal(end.code);
  if (!end.failure.empty())
    return end.out_of_memory
               ? contract::fit_lines(head + "; " + end.failure, contract::kShownBytesMax)
               : end.failure;
  if (!end.last_output.empty())
    return head.empty()
               ? contract::last_lines(end.last_output, contract::kShownBytesMax)
               : contract::fit_lines(head + "\n" + end.last_output, contract::kShownBytesMax);
  if (end.out_of_memory) return head;
  return (head.empty() ? "" : head + "; ") + "the process left no failure file and printed nothing";
}

}  // namespace trainyard::agent
