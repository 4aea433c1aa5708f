// The image, ready to run: a runtime is this machine's own system and needs nothing; others are unpacked.
#include "host/image.hpp"
#include "agent/steps.hpp"

namespace trainyard::agent {
namespace {

// Each is a record that the server keeps.
constexpr Duration kProgressInterval = 2s;

}  // namespace

std::optional<Failure> ready_image(Site& site) {
  const auto& image = site.order.image;
  if (image.kind == domain::Image::Kind::machine) {
    site.image = {};
  } else {
    std::string said;
    auto next_word = site.world.clock.monotonic();
    auto unpacked = site.world.unpack_image(image, site.path("image"), [&](const std::string& words) {
      if (words != said && site.world.clock.monotonic() >= next_word) {
        said = words;
        next_word = site.world.clock.monotonic() + kProgressInterval;
        wire::StateFact fact;
        fact.state = domain::HostState::downloading;
        fact.message = words;
        site.world.facts.state(std::move(fact));
      }
      return !site.interruption.ordered();
    });
    if (!unpacked)
      return named(site, domain::kCannotPull,
                   failure_of(unpacked.error(), "The image " + site.order.spec.image + " cannot be used"));
    site.image = std::move(*unpacked);
  }
  if (const std::string& user = site.fittings().user; !user.empty()) {
    const auto ids = host::user_of(site.image.root, user);
    if (!ids)
      return named(site, domain::kCannotStart,
                   failure_of(ids.error(), "The container cannot run as the user '" + user + "'"));
    site.image.user_id = ids->user;
    site.image.group_id = ids->group;
  }
  if (!image.entrypoint.empty()) site.image.entrypoint = image.entrypoint;
  for (const auto& [name, value] : image.environment) site.image.environment[name] = value;
  for (const auto& [inside, outside] : image.mounts) {
    host::Mount mount;
    mount.source = outside;
    mount.destination = inside;
    site.image.mounts.push_back(std::move(mount));
  }
  return {};
}

}  // namespace trainyard::agent
