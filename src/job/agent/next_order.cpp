#include "agent/next_order.hpp"

#include <unistd.h>

#include "base/log.hpp"
#include "os/files.hpp"
#include "os/name_watch.hpp"
#include "wire/messages.hpp"

namespace trainyard::agent {

void NextOrder::offer() const {
  if (const auto made = os::write_file(path("idle"), std::to_string(wire::kVersion), 0600); !made)
    log(Level::warning, "agent", "cannot offer this agent for another job",
        {{"why", made.error().message}});
}

Result<std::optional<std::string>> NextOrder::take(Duration at_most) const {
  if (!os::exists(path("idle")) && !os::exists(path("taken"))) return std::optional<std::string>();
  if (!TRY(os::await_name(directory_, "taken", at_most)) && ::unlink(path("idle").c_str()) == 0)
    return std::optional<std::string>();
  std::string text = TRY(os::read_file(path("next.json")));
  // Removes the order first: a launcher that finds `next.json` without `taken` assumes that the
  // agent has not got the order.
  for (const char* name : {"next.json", "taken"})
    if (::unlink(path(name).c_str()) != 0) return from_errno("taking the next order");
  return std::optional(std::move(text));
}

void NextOrder::cancel() const { (void)::unlink(path("idle").c_str()); }

}  // namespace trainyard::agent
