#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "collectives/launch.hpp"
#include "sdk/python/engine/engine.h"
#include "sdk/python/engine/said.hpp"

namespace sdk = trainyard::sdk;
using namespace trainyard;

int32_t engine_read_launch(const char* const* variables, const char* const* hosts,
                           int32_t current_host, engine_launch* launch) {
  const auto value_of = [variables](std::string_view name) -> std::optional<std::string> {
    for (const char* const* each = variables; *each; ++each) {
      const std::string_view text = *each;
      if (text.starts_with(name) && text.substr(name.size()).starts_with('='))
        return std::string(text.substr(name.size() + 1));
    }
    return std::nullopt;
  };
  std::optional<collectives::Hosts> all;
  if (hosts) {
    all.emplace();
    for (; *hosts; ++hosts) all->names.emplace_back(*hosts);
    all->current = current_host;
    if (current_host < 0 || size_t(current_host) >= all->names.size())
      return sdk::say(invalid("invalid current_host: " + std::to_string(current_host) +
                              " is not the number of a host"));
  }
  auto read = collectives::read_launch(value_of, all, collectives::kHorovodPorts);
  if (!read) return sdk::say(read.error());
  thread_local collectives::Launch found;
  found = std::move(read).value();
  const auto text = [](const std::optional<collectives::Endpoint>& place) {
    return place ? place->host.c_str() : "";
  };
  *launch = {found.rank,
             found.ranks,
             found.local_rank.value_or(-1),
             found.local_ranks.value_or(-1),
             text(found.rendezvous),
             found.rendezvous ? found.rendezvous->port : 0,
             found.folder.c_str(),
             text(found.service),
             found.service ? found.service->port : 0,
             found.elastic ? 1 : 0,
             found.secret.c_str(),
             found.launcher.c_str()};
  return 0;
}
